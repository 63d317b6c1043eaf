"""Whole lists that are asked for again and again, kept joined: to look at a hundred entries costs more than to copy."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any
from weakref import ref

_FEW = 64


class JoinedList:
    """A list as it stands.

    Attributes:
        entries: in order of ids. This file stands below entry.py, whose entries know their home.
        frames: theirs, joined.
        json: likewise as JSON, with commas between; empty until somebody wanted it.
        answer: the last one that was made of it, behind what it was made for.
        masked: the frames with some fields only, joined, behind the mask; the last one that was asked for.
    """

    __slots__ = ("__weakref__", "answer", "entries", "frames", "json", "masked")

    def __init__(self, entries: Sequence[Any], frames: bytes) -> None:
        self.entries, self.frames = entries, frames
        self.json = b""
        self.answer: tuple[object, bytes] = (None, b"")
        self.masked: tuple[Sequence[str], bytes] = ((), b"")


class Home:
    """The lists kept of one service. Each of its entries knows it, to make it void: heartbeats come by uid."""

    __slots__ = ("_listings",)

    def __init__(self) -> None:
        self._listings: dict[Hashable, JoinedList] = {}

    def get(self, key: Hashable) -> JoinedList | None:
        return self._listings.get(key)

    def put(self, key: Hashable, listing: JoinedList) -> None:
        self._listings[key] = listing

    def drop(self, key: Hashable, listing: JoinedList) -> None:
        """Keep it no longer; nothing happens if it is not this one that is kept."""
        if self._listings.get(key) is listing:
            del self._listings[key]

    def void(self) -> None:
        """An instance of the service changed, came, went or was heard."""
        if self._listings:
            self._listings = {}


class Shelf:
    """Bounds by bytes what all homes keep: the oldest lists go first.

    Only homes hold lists, so that a void one goes at once; what is noted of it here goes, too, before most of the
    notes are of void ones.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept: deque[tuple[Home, Hashable, ref[JoinedList], int]] = deque()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._swept_at = _FEW  # how many there may be until the void ones are looked for

    def keep(self, home: Home, key: Hashable, listing: JoinedList) -> None:
        # The answer and a masked copy take as many bytes again, JSON about three times as many; all that comes later.
        size_bytes = 6 * len(listing.frames) + 500
        home.put(key, listing)
        self._kept.append((home, key, ref(listing), size_bytes))
        self._bytes += size_bytes
        if len(self._kept) > self._swept_at:
            self._sweep()
        while self._bytes > self._max_bytes:
            oldest, oldest_key, gone, size_bytes = self._kept.popleft()
            if (still_there := gone()) is not None:
                oldest.drop(oldest_key, still_there)
            self._bytes -= size_bytes

    def _sweep(self) -> None:
        self._kept = deque(note for note in self._kept if note[2]() is not None)
        self._bytes = sum(note[3] for note in self._kept)
        self._swept_at = max(_FEW, 2 * len(self._kept))
