"""How often the event loop gets round while a test waits for something: work in slices lets others go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass
class Turns:
    """Turns of the loop so far."""

    count: int = 0


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Turns]:
    """Count until the block ends."""
    turns = Turns()

    async def go_round() -> None:
        while True:
            turns.count += 1
            await asyncio.sleep(0)

    going = asyncio.create_task(go_round())
    try:
        yield turns
    finally:
        going.cancel()
