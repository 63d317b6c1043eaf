"""Metrics of every server's process: its traffic, event loop, log, memory and version."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from serving import compiled
from serving.telemetry.metrics import Declared, Histogram, Table


def _version() -> str:
    try:
        return version("hq-registry")
    except PackageNotFoundError:  # run from a tree that is not installed
        return "unknown"


METRICS: Final[tuple[Declared[None], ...]] = (
    Declared(
        "gauge",
        "hq_build_info",
        "Always 1; the labels have the version of HQ, and whether its transport is compiled or interpreted.",
        lambda _: {(_version(), compiled.form()): 1.0},
        ("version", "transport"),
    ),
    Declared("gauge", "hq_tasks", "Tasks of the event loop.", lambda _: len(asyncio.all_tasks())),
)


def register_process(registry: CollectorRegistry) -> None:
    """Add what is known of any process: version, tasks, memory, descriptors, garbage collection."""
    registry.register(Table(METRICS, None))
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)


BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_EVERY_S: Final = 0.1


class LoopLag:
    """Sleeps, and measures how much longer it slept than it should have."""

    def __init__(self) -> None:
        self.seconds = Histogram(BOUNDS_S)

    async def run(self) -> None:
        """Look for ever, ten times a second."""
        now = asyncio.get_running_loop().time
        while True:
            due = now() + _EVERY_S
            await asyncio.sleep(_EVERY_S)
            self.seconds.add(max(0.0, now() - due))


LOOP_LAG_METRICS: Final[tuple[Declared[LoopLag], ...]] = (
    Declared(
        "histogram",
        "hq_event_loop_lag_seconds",
        "Delay of the event loop, sampled ten times a second.",
        lambda lag: lag.seconds,
    ),
)


class LogCounts(logging.Handler):
    """Counts records of warnings and above, by level; on the root logger while a server serves."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.by_level: Counter[tuple[str, ...]] = Counter({("warning",): 0, ("error",): 0})

    def emit(self, record: logging.LogRecord) -> None:
        self.by_level["error" if record.levelno >= logging.ERROR else "warning",] += 1


LOG_METRICS: Final[tuple[Declared[LogCounts], ...]] = (
    Declared(
        "counter",
        "hq_log_messages_total",
        "Warnings and errors logged; docs/logs.md explains them.",
        lambda counts: counts.by_level,
        ("level",),
    ),
)
