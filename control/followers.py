"""The changes that a recorder which follows a controller has not read yet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

MOST_UNREAD: Final = 200_000
E = TypeVar("E")


class EntryFollower(Generic[E]):
    """Attributes:
    is_over: nothing comes any more; start over.
    """

    def __init__(self, begin: list[E]) -> None:
        self._unread, self._came = begin, asyncio.Event()
        self._came.set()
        self.is_over = False

    def add(self, new: Sequence[E]) -> None:
        """One that does not read loses its place, and starts over."""
        if not self.is_over:
            self._unread.extend(new)
        if len(self._unread) > MOST_UNREAD + 2 * len(new):
            self.end()
        self._came.set()

    def end(self) -> None:
        """End: nothing comes any more."""
        self.is_over, self._unread = True, []
        self._came.set()

    async def take(self, most: int, timeout_s: float) -> list[E]:
        """The next entries, at most so many; none came in time, or it is over: none."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._came.wait()
        taken, self._unread = self._unread[:most], self._unread[most:]
        if not self._unread and not self.is_over:
            self._came.clear()
        return taken
