"""How many warnings and errors were logged: what nobody reads, an alert may."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from serving.telemetry.metrics import Declared


class LogCounts(logging.Handler):
    """Counts records from warnings on, by level; on the root logger while a server serves."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.by_level: Counter[tuple[str, ...]] = Counter({("warning",): 0, ("error",): 0})

    def emit(self, record: logging.LogRecord) -> None:
        self.by_level["error" if record.levelno >= logging.ERROR else "warning",] += 1


METRICS: Final[tuple[Declared[LogCounts], ...]] = (
    Declared(
        "counter",
        "hq_log_messages_total",
        "Warnings and errors logged; docs/logs.md explains them.",
        lambda counts: counts.by_level,
        ("level",),
    ),
)
