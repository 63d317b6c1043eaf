"""Reading of the record for callers: in few threads, and not for ever."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from serving.calls.methods import Call
from serving.clock import Clock
from serving.errors import DeadlineExceeded, Retry

_READERS: Final = 2  # threads; what is recorded is written in another one, which must not wait for them
_LONGEST_S: Final = 30.0
_LOOKED_EVERY: Final = 1_000  # changes, some milliseconds
T = TypeVar("T")


class RecordReaders:
    """The threads that all calls share."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._readers = asyncio.Semaphore(_READERS)
        self._turns = WeakValueDictionary[str, asyncio.Lock]()

    async def run(self, read: Callable[[], T], call: Call) -> T:
        """What reading the record gives, in a thread. Raises Retry.

        A caller has one thread at a time, so that one is left for the others, until its reading ends: it goes on when
        the caller has left.
        """
        turn = self._turns.setdefault(call.caller, asyncio.Lock())
        await turn.acquire()
        try:
            await self._readers.acquire()
        except BaseException:
            turn.release()
            raise
        reading = asyncio.ensure_future(asyncio.to_thread(read))
        reading.add_done_callback(partial(self._end, turn))
        try:
            return await asyncio.shield(reading)
        except (sqlite3.Error, OSError) as error:
            raise Retry(f"the record cannot be read: {error}") from error

    def _end(self, turn: asyncio.Lock, reading: asyncio.Future[T]) -> None:
        turn.release()
        self._readers.release()
        if not reading.cancelled():
            reading.exception()  # if the caller has left, nobody else looks at it

    def until(self, call: Call) -> float:
        """When a thread stops looking, which cannot be cancelled."""
        longest = self._clock.now() + _LONGEST_S
        return longest if call.deadline is None else min(call.deadline, longest)

    def in_time(self, items: Iterable[T], until: float) -> Iterator[T]:
        """The items. Raises DeadlineExceeded."""
        for number, item in enumerate(items, 1):
            if number % _LOOKED_EVERY == 0 and self._clock.now() > until:
                raise DeadlineExceeded(
                    "that is too much to look through: name a service, an instance or a shorter time"
                )
            yield item
