"""The changes that a recorder which follows a controller has not read yet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message

MOST_UNREAD: Final = 200_000
MOST_UNREAD_BYTES: Final = 256 << 20
_ANSWER_BYTES: Final = 2 << 20  # of entries; one alone may have more
E = TypeVar("E", bound=Message)


class EntryFollower(Generic[E]):
    """The entries that one recorder has not read yet.

    Attributes:
        is_over: nothing comes any more; start over.
    """

    def __init__(self, begin: list[E]) -> None:
        self._unread, self._came = begin, asyncio.Event()
        self._bytes = _bytes_of(begin)
        self._most_bytes = self._bytes + MOST_UNREAD_BYTES
        self._came.set()
        self.is_over = False

    def add(self, new: Sequence[E]) -> None:
        """Add entries; if too many are unread by then, end: the recorder has to start over."""
        if not self.is_over:
            self._unread.extend(new)
            self._bytes += _bytes_of(new)
        if len(self._unread) > MOST_UNREAD + 2 * len(new) or self._bytes > self._most_bytes:
            self.end()
        self._came.set()

    def end(self) -> None:
        """End: nothing comes any more."""
        self.is_over, self._unread, self._bytes = True, [], 0
        self._came.set()

    async def take(self, most: int, timeout_s: float) -> list[E]:
        """The next entries, as many as one answer takes; empty: none came in time, or it is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._came.wait()
        count, size = 0, 0
        for entry in self._unread[:most]:
            size += entry.ByteSize()
            if count and size > _ANSWER_BYTES:
                break
            count += 1
        taken, self._unread = self._unread[:count], self._unread[count:]
        self._bytes -= _bytes_of(taken)
        if not self._unread and not self.is_over:
            self._came.clear()
        return taken


def _bytes_of(entries: Sequence[Message]) -> int:
    return sum(entry.ByteSize() for entry in entries)
