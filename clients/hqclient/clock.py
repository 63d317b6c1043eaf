"""Time as the client sees it: injected, so that tests need not wait."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class ClientClock(Protocol):
    """Where the client takes time from."""

    def now(self) -> float:
        """Seconds on a clock that never steps; only differences mean anything."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return when `delay_s` seconds have passed."""
        ...


class MonotonicClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
