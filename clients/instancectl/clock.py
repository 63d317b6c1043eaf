"""Time as instancectl sees it: the client's clock, and the wall's, for display."""

from __future__ import annotations

import time
from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp

import hqclient.clock


class InstancectlClock(hqclient.clock.ClientClock, Protocol):
    """Where instancectl takes time from."""

    def wall_s(self) -> float:
        """Seconds since 1970, for display. Never base decisions on it."""
        ...


class MachineClock(hqclient.clock.MonotonicClock):
    """The machine's clocks."""

    def wall_s(self) -> float:
        return time.time()


def timestamp(wall_s: float) -> Timestamp:
    """Seconds since 1970 as a message, to the millisecond."""
    made = Timestamp()
    made.FromMilliseconds(round(wall_s * 1000))
    return made
