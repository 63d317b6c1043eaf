"""Metrics of the process that every server has, whatever it serves."""

from __future__ import annotations

import asyncio
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from serving.surroundings import Surroundings
from serving.telemetry import log_counts, loop_lag, traffic
from serving.telemetry.metrics import Declared, Table


def _version() -> str:
    try:
        return version("hq")
    except PackageNotFoundError:  # run from a tree that is not installed
        return "unknown"


METRICS: Final[tuple[Declared[None], ...]] = (
    Declared(
        "gauge",
        "hq_build_info",
        "Always 1; the label has the version of HQ.",
        lambda _: {(_version(),): 1.0},
        ("version",),
    ),
    Declared("gauge", "hq_tasks", "Tasks of the event loop.", lambda _: len(asyncio.all_tasks())),
)


def process_metrics(shared: Surroundings) -> CollectorRegistry:
    """A registry with the traffic, the event loop's lag, and what is known of the process itself."""
    registry = CollectorRegistry()
    registry.register(Table(METRICS, None))
    registry.register(Table(traffic.METRICS, shared.traffic))
    registry.register(Table(loop_lag.METRICS, shared.loop_lag))
    registry.register(Table(log_counts.METRICS, shared.log_counts))
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry
