"""Long JSON is read beside the event loop: four MiB of it take seconds, in which nobody else would be answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_LONG_BYTES: Final = 32 * 1024  # some milliseconds


class Aside:
    """Reads one long request after the other: several at once would take the interpreter from the loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, parse: Callable[[bytes], T], body: bytes) -> T:
        """What `parse` makes of it, in a thread if it is long. Raises what it raises."""
        if len(body) < _LONG_BYTES:
            return parse(body)
        await self._turn.acquire()
        parsing = asyncio.ensure_future(asyncio.to_thread(parse, body))
        parsing.add_done_callback(self._done)
        return await asyncio.shield(parsing)

    def _done(self, parsing: asyncio.Future[T]) -> None:
        # Only now, for a thread goes on though its caller has left.
        self._turn.release()
        if not parsing.cancelled():
            parsing.exception()  # of a caller that has left, nobody else looks at it
