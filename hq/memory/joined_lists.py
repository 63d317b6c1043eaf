"""Cache of encoded answers, per service: copying bytes costs less than walking through entries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple
from weakref import ref

_FEW = 64
_MOST_ASKED: Final = 16  # requests beyond this many do not keep a list any longer
PLAIN: Final = "plain"  # the form of frames with everything


class EncodedList:
    """Pieces of an answer in one form, and the last answer made of them: under load many are byte for byte the same."""

    __slots__ = ("_answer", "_made_for", "_parts", "size_bytes")

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts: Sequence[bytes | memoryview] = parts
        self._answer, self._made_for = b"", None
        self.size_bytes = sum(map(len, parts))

    def answer(self, source: Any, tail: Callable[[], bytes]) -> bytes:
        """All pieces and a tail, which is the same for the same source."""
        if self._made_for is not source:
            parts = self._parts or (memoryview(self._answer)[: self.size_bytes],)
            self._answer, self._made_for, self._parts = b"".join((*parts, tail())), source, ()
        return self._answer


class CacheStats:
    """Cache bookkeeping of one list: the cache that holds it, its size, and recent hits."""

    __slots__ = ("asked", "home", "key", "size_bytes")

    def __init__(self, home: ServiceListCache, key: Hashable) -> None:
        # Only the service's cache holds lists, so that an outdated one is freed at once.
        self.home, self.key = ref(home), key
        self.asked = self.size_bytes = 0

    def is_current(self) -> bool:
        home = self.home()
        listing = home.get(self.key) if home is not None else None
        return listing is not None and listing.note is self

    def drop(self) -> None:
        """Keep the list no longer; nothing happens if another list is kept in its place."""
        if (home := self.home()) is not None and self.is_current():
            home.drop(self.key)


class JoinedList:
    """A list, or a page of one, as it stands.

    Attributes:
        entries: in order of ids. (Untyped, since entry.py imports this file: entries know their home.)
        next_page_token: empty on the last page.
        size_bytes: of the frames.
        forms: what answers are made of, by form; PLAIN is always there.
    """

    __slots__ = ("__weakref__", "_shelf", "entries", "forms", "next_page_token", "note", "size_bytes")

    def __init__(
        self, entries: Sequence[Any], frames: Sequence[bytes], shelf: ListCacheBudget, note: CacheStats, token: str = ""
    ) -> None:
        self.entries, self.next_page_token, self.note = entries, token, note
        plain = EncodedList(frames)
        self.forms: dict[Hashable, EncodedList] = {PLAIN: plain}
        self.size_bytes = plain.size_bytes
        self._shelf = shelf

    def form(self, form: Hashable) -> EncodedList | None:
        """Return the list in this form, if it was requested before."""
        self.note.asked += 1
        return self.forms.get(form)

    def add(self, form: Hashable, joined: EncodedList) -> None:
        """Keep this form, too, if there is room."""
        if self.note.is_current() and self._shelf.grew(self.note, joined.size_bytes):
            self.forms[form] = joined


class ServiceListCache:
    """Encoded lists of one service. Its entries refer to this cache, so that a heartbeat, which has a uid, can void it.

    Attributes:
        listings: replaced by a new dictionary at each change, so that a list being made can tell if it is outdated.
    """

    __slots__ = ("__weakref__", "listings")

    def __init__(self) -> None:
        self.listings: dict[Hashable, JoinedList] = {}

    def get(self, key: Hashable) -> JoinedList | None:
        return self.listings.get(key)

    def drop(self, key: Hashable) -> None:
        del self.listings[key]

    def invalidate(self) -> None:
        """Drop all lists: an instance of the service changed, was added or deleted, or sent a heartbeat."""
        self.listings = {}


class CacheSlot(NamedTuple):
    """Where a list that is being made may be kept."""

    shelf: ListCacheBudget
    home: ServiceListCache
    key: Hashable
    listings: dict[Hashable, JoinedList]

    def keep(self, entries: Sequence[Any], frames: Sequence[bytes], token: str = "") -> JoinedList:
        """Make the list; it is kept unless an instance of the service has changed since it was begun."""
        listing = JoinedList(entries, frames, self.shelf, CacheStats(self.home, self.key), token)
        if self.home.listings is self.listings:
            self.shelf.keep(self.home, listing)
        return listing


class ListCacheBudget:
    """Limits the bytes that the caches of all services keep.

    The cost of making a list grows with its size, so only how often it is asked for matters: the oldest go first,
    except those that were asked for since they were last looked at.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept: deque[CacheStats] = deque()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._swept_at = _FEW  # when there are more than this, void ones are looked for

    def place(self, home: ServiceListCache, key: Hashable) -> CacheSlot:
        """The slot of a list that is about to be joined."""
        return CacheSlot(self, home, key, home.listings)

    def keep(self, home: ServiceListCache, listing: JoinedList) -> None:
        """Keep a list, if there is room."""
        note = listing.note
        if len(self._kept) > self._swept_at:
            self._sweep()
        self._kept.append(note)
        home.listings[note.key] = listing
        if not self.grew(note, listing.size_bytes + 8 * len(listing.entries) + 500):
            note.drop()

    def grew(self, note: CacheStats, size_bytes: int) -> bool:
        """Make room for more bytes of a list; return whether there is any. No list gets more than half of all."""
        if note.size_bytes + size_bytes > self._max_bytes // 2:
            return False
        note.size_bytes += size_bytes
        self._bytes += size_bytes
        while self._bytes > self._max_bytes:
            self._look_at_oldest()
        return True

    def _look_at_oldest(self) -> None:
        oldest = self._kept.popleft()
        if oldest.asked and oldest.is_current():
            oldest.asked = min(oldest.asked, _MOST_ASKED) // 2
            self._kept.append(oldest)
            return
        oldest.drop()
        self._bytes -= oldest.size_bytes

    def _sweep(self) -> None:
        self._kept = deque(note for note in self._kept if note.is_current())
        self._bytes = sum(note.size_bytes for note in self._kept)
        self._swept_at = max(_FEW, 2 * len(self._kept))
