"""One page of a list: as many instances as were asked for and as fit."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from hq.memory.entry import Entry, frames_of

# Instances that are joined before anybody looks how large that is: what is asked for may be much larger than a page.
_PIECE = 100


class Page:
    """A page being filled.

    Attributes:
        entries: what it holds so far, in order of ids.
        frames: theirs, in pieces of any number of them.
    """

    __slots__ = ("_room", "_room_bytes", "entries", "frames")

    def __init__(self, limit: int, size_bytes: int) -> None:
        """At most `limit` instances (0: any number) and `size_bytes` of frames, but at least one instance."""
        self.entries: list[Entry] = []
        self.frames: list[bytes] = []
        self._room = limit or sys.maxsize
        self._room_bytes = size_bytes

    def add(self, portion: Sequence[Entry]) -> bool:
        """Take what fits of the next instances; return whether some did not."""
        return any(self._add(portion[at : at + _PIECE]) for at in range(0, len(portion), _PIECE))

    def _add(self, portion: Sequence[Entry]) -> bool:
        fitting = portion if len(portion) <= self._room else portion[: self._room]
        frames = frames_of(fitting)
        body = b"".join(frames)  # costs less than to add up their sizes
        if len(body) > self._room_bytes:
            count = self._count_of(frames)
            fitting, body = fitting[:count], b"".join(frames[:count])
        self._room -= len(fitting)
        self._room_bytes -= len(body)
        self.entries += fitting
        self.frames.append(body)
        return len(fitting) < len(portion)

    def _count_of(self, frames: list[bytes]) -> int:
        """How many of these fit."""
        count = bisect_right(list(accumulate(map(len, frames))), self._room_bytes)
        return count or int(not self.entries)
