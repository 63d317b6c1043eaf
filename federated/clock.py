"""Time as the gateway needs it: for the transports, and for the client's parts that it uses."""

from __future__ import annotations

import asyncio
from typing import Protocol

import serving.clock


class Clock(serving.clock.Clock, Protocol):
    """Where time comes from."""

    async def sleep(self, delay_s: float) -> None:
        """Return when `delay_s` seconds have passed."""
        ...


class SystemClock(serving.clock.SystemClock):
    """The machine's clocks."""

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
