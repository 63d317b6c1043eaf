"""Time as the gateway needs it: for the transports, and for the client's parts that it uses."""

from __future__ import annotations

from typing import Protocol

import hqclient.clock
import serving.clock


class Clock(serving.clock.Clock, hqclient.clock.Clock, Protocol):
    """Where time comes from."""


class SystemClock(serving.clock.SystemClock, hqclient.clock.SystemClock):
    """The machine's clocks."""
