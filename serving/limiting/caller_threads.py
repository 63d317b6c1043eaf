"""Work in threads for callers: each has one at a time, so that none keeps the others waiting, whatever it asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class CallerThreads:
    """Shared by all callers of a kind of calls."""

    def __init__(self, most: int = 2) -> None:
        """`most`: threads at a time; the process has more, for what it does itself."""
        self._free = asyncio.Semaphore(most)
        self._turns = WeakValueDictionary[str, asyncio.Lock]()

    async def run(self, work: Callable[[], T], caller: str) -> T:
        """Run the work in a thread; return or raise as it does.

        The thread stays taken until the work ends, also if the caller leaves.
        """
        turn = self._turns.setdefault(caller, asyncio.Lock())
        await turn.acquire()
        try:
            await self._free.acquire()
        except BaseException:
            turn.release()
            raise
        working = asyncio.ensure_future(asyncio.to_thread(work))
        working.add_done_callback(partial(self._end, turn))
        return await asyncio.shield(working)

    def _end(self, turn: asyncio.Lock, working: asyncio.Future[T]) -> None:
        turn.release()
        self._free.release()
        if not working.cancelled():
            working.exception()  # if the caller has left, nobody else looks at it
