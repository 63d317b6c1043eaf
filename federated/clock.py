"""Time as the gateway needs it: for the transports, and for the client's parts that it uses."""

from __future__ import annotations

from typing import Protocol

import hqclient.clock
import serving.clock


class FederatedClock(serving.clock.Clock, hqclient.clock.ClientClock, Protocol):
    """Where time comes from."""


class FederatedSystemClock(serving.clock.SystemClock, hqclient.clock.MonotonicClock):
    """The machine's clocks."""
