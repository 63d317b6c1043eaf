"""Time as instancectl sees it: injected, so that tests need not wait."""

from __future__ import annotations

import time
from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from hqclient.clock import SystemClock


class Clock(Protocol):
    """A clock that never steps, for decisions, and the wall's, for display only."""

    def now(self) -> float:
        """Seconds; only differences mean anything."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return when `delay_s` seconds have passed."""
        ...

    def wall_s(self) -> float:
        """Seconds since 1970. Never decide by it."""
        ...


class MachineClock(SystemClock):
    """The machine's clocks."""

    def wall_s(self) -> float:
        return time.time()


def timestamp(wall_s: float) -> Timestamp:
    """Seconds since 1970 as a message, to the millisecond."""
    made = Timestamp()
    made.FromMilliseconds(round(wall_s * 1000))
    return made
