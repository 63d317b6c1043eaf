"""How late the event loop is: whatever keeps it busy keeps every call waiting."""

from __future__ import annotations

import asyncio
from typing import Final

from serving.telemetry.histogram import Histogram
from serving.telemetry.metrics import Declared

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_EVERY_S: Final = 0.1


class LoopLag:
    """Sleeps and looks how much too long it slept."""

    def __init__(self) -> None:
        self.seconds = Histogram(BOUNDS_S)

    async def run(self) -> None:
        """Look for ever, ten times a second."""
        now = asyncio.get_running_loop().time
        while True:
            due = now() + _EVERY_S
            await asyncio.sleep(_EVERY_S)
            self.seconds.add(max(0.0, now() - due))


METRICS: Final[tuple[Declared[LoopLag], ...]] = (
    Declared(
        "histogram",
        "hq_event_loop_lag_seconds",
        "Delay of the event loop, sampled ten times a second.",
        lambda lag: lag.seconds,
    ),
)
