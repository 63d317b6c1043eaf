"""One page of a list: as many instances as were asked for and as fit."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from hq.entry import Entry, frames_of


class Page:
    """A page being filled.

    Attributes:
        entries: what it holds so far, in order of ids.
    """

    def __init__(self, limit: int, size_bytes: int) -> None:
        """At most `limit` instances (0: any number) and `size_bytes` of frames, but at least one instance."""
        self.entries: Sequence[Entry] = ()
        self._own: list[Entry] = []  # the same, once it is more than one portion
        self._room = limit or sys.maxsize
        self._room_bytes = size_bytes

    def add(self, portion: Sequence[Entry]) -> bool:
        """Take what fits of the next instances; return whether some did not."""
        fitting = portion if len(portion) <= self._room else portion[: self._room]
        sizes = list(map(len, frames_of(fitting)))
        size = sum(sizes)
        if size > self._room_bytes:
            count = bisect_right(list(accumulate(sizes)), self._room_bytes)
            fitting = fitting[: count or int(not self.entries)]
        self._room -= len(fitting)
        self._room_bytes -= size
        self._append(fitting)
        return len(fitting) < len(portion)

    def _append(self, entries: Sequence[Entry]) -> None:
        if not self.entries:
            self.entries = entries
        elif entries:
            if self._own is not self.entries:
                self.entries = self._own = list(self.entries)
            self._own += entries
