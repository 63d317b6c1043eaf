"""Time, injected everywhere.

Durations and deadlines are measured on `now` (monotonic, seconds); `wall_ms` is for display only.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Seconds on a clock that never steps; only differences mean anything."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds of Unix time, for display."""
        ...


class SystemClock:
    """The machine's clocks. `now` is the event loop's clock too, so the two can be mixed."""

    now = staticmethod(time.monotonic)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that stands until it is moved; shipped for tests and simulations."""

    def __init__(self, now_s: float = 1_000.0, wall_ms: int = 1_700_000_000_000) -> None:
        self._now_s = now_s
        self._wall_ms = wall_ms

    def now(self) -> float:
        return self._now_s

    def wall_ms(self) -> int:
        return self._wall_ms

    def advance(self, seconds: float) -> None:
        """Move both clocks forward."""
        self._now_s += seconds
        self._wall_ms += round(seconds * 1000)
