"""Reading of the record for callers: in few threads, and not for ever."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from serving.calls.methods import Call
from serving.clock import Clock
from serving.errors import DeadlineExceeded, Retry
from serving.limiting.caller_threads import CallerThreads

_LONGEST_S: Final = 30.0
_LOOKED_EVERY: Final = 1_000  # items, read in some milliseconds
T = TypeVar("T")


class RecordReaders:
    """The threads that all calls share."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._threads = CallerThreads()  # some of the process's threads: the one that writes must not wait for readers

    async def run(self, read: Callable[[], T], call: Call) -> T:
        """Read the record in a thread. Raises Retry."""
        try:
            return await self._threads.run(read, call.caller)
        except (sqlite3.Error, OSError) as error:
            raise Retry(f"the record cannot be read: {error}") from error

    def until(self, call: Call) -> float:
        """When a reading thread stops by itself, as it cannot be cancelled."""
        longest = self._clock.now() + _LONGEST_S
        return longest if call.deadline is None else min(call.deadline, longest)

    def in_time(self, items: Iterable[T], until: float) -> Iterator[T]:
        """Yield the items until then. Raises DeadlineExceeded."""
        for number, item in enumerate(items, 1):
            if number % _LOOKED_EVERY == 0 and self._clock.now() > until:
                raise DeadlineExceeded(
                    "that is too much to look through: name a service, an instance or a shorter time"
                )
            yield item
