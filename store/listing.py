"""Reading everything below a prefix, page by page at one revision; and how such a listing differs from what is known.

etcd counts all keys of a range, however few of them it returns. A page that reaches to the end of everything costs as
much as everything, and a listing made of such pages grows with the square of the number of keys. So a page reaches just
beyond what it can return, judging by how far apart the keys of the last page were, and further if that one was not
full. A wrong guess costs time but no keys: the next page begins where this one ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from google.protobuf.message import DecodeError

from store.keys import Keys
from store.port import KeyChange, Record, Store, StorePage
from storepb.v1 import store_pb2

_PAGE_BYTES = 1 << 20
_FIRST_PAGE = 500
_LARGEST_PAGE = 20_000
_WIDTH = 48  # bytes of a key that are looked at, read as one number
_AIM = 4  # times as many keys as a page returns
_GROWTH = 256  # at most, from one page to the next: a family of keys (say, of a service) ends, and a wide gap follows
_KEYS_PER_TURN = 2_000  # some 2 ms
# Of the loop, until the request for the next page has gone through our tasks and gRPC's, and is on the wire. To take a
# page in holds the loop: a request not sent by then would wait for that, and etcd would be idle.
_TURNS = 10


class ListingPart(NamedTuple):
    """Some records, in order of keys, as they were at the revision of the whole listing."""

    records: list[Record]
    revision: int


async def listing(
    store: Store, start: bytes, end: bytes, revision: int = 0, *, keys_only: bool = False
) -> AsyncGenerator[ListingPart, None]:
    """All records of a range at one revision (0: the head when the first page is read), or their keys only.

    Raises Compacted, FutureRevision.

    While one part is being used the next page is under way: close the generator where it is left early.
    """
    pages = _ListingPages(store, start, end, keys_only=keys_only)
    try:
        page = await pages.read_page(revision)
        revision = revision or page.revision
        while True:
            ahead = pages.begin(page, revision)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            if page.records or ahead is None:
                yield ListingPart(page.records, revision)
            if ahead is None:
                return
            page = await ahead
    finally:
        await pages.close()


class Stride:
    """Guesses where ranges end, from the keys of the range before."""

    def __init__(self, prefix: bytes, end: bytes) -> None:
        """`end` is the first key after the last; all keys begin with `prefix`."""
        self._prefix, self._end = prefix, end
        self._step = 0  # in keys read as numbers; 0: nothing is known yet

    def reach(self, start: bytes) -> bytes:
        """The end of the range that begins at `start`: after it, and never beyond the end of everything."""
        reached = self._number(start) + self._step
        if not self._step or reached >= 1 << 8 * _WIDTH:
            return self._end
        return min(self._prefix + reached.to_bytes(_WIDTH, "big"), self._end)

    def saw(self, keys: Sequence[bytes], stop: bytes, limit: int) -> None:
        """Learn from a page how far apart keys are: it has all keys up to `stop`, and could have had `limit`."""
        if not keys:
            self._step *= _GROWTH
            return
        covered = max(1, self._number(stop) - self._number(keys[0]))
        self._step = covered * min(_AIM * limit // len(keys), _GROWTH)

    def _number(self, key: bytes) -> int:
        if key == self._end:
            return 1 << 8 * _WIDTH
        return int.from_bytes(key[len(self._prefix) :][:_WIDTH].ljust(_WIDTH, b"\0"), "big")


def _common(one: bytes, two: bytes) -> bytes:
    """Return the common prefix of both."""
    return bytes(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


class _ListingPages:
    """The pages of one listing, in order, and the one that is under way."""

    def __init__(self, store: Store, start: bytes, end: bytes, *, keys_only: bool) -> None:
        self._store, self._end, self._keys_only = store, end, keys_only
        self._stride = Stride(_common(start, end), end)
        self._start, self._stop, self._limit = start, end, _FIRST_PAGE
        self._ahead: asyncio.Task[StorePage] | None = None

    def read_page(self, revision: int) -> asyncio.Task[StorePage]:
        """The page from where the last one ended."""
        page = self._store.page(
            self._start, self._stop, revision=revision, limit=self._limit, keys_only=self._keys_only
        )
        self._ahead = asyncio.create_task(page, name="next page")
        return self._ahead

    def begin(self, last: StorePage, revision: int) -> asyncio.Task[StorePage] | None:
        """The page after this one; None: there is none."""
        if not last.more and self._stop == self._end:
            return None
        stop = last.records[-1].key + b"\0" if last.more else self._stop
        self._stride.saw([record.key for record in last.records], stop, self._limit)
        if last.records:
            size = sum(len(r.value) for r in last.records) // len(last.records) + 64
            # Where only keys are sent, etcd reads the values all the same.
            most = _LARGEST_PAGE // 10 if self._keys_only else _LARGEST_PAGE
            self._limit = max(16, min(_PAGE_BYTES // size, most))
        self._start, self._stop = stop, self._stride.reach(stop)
        return self.read_page(revision)

    async def close(self) -> None:
        """Cancel the page under way: nobody needs it any more."""
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)


async def marked_revision(store: Store, keys: Keys) -> int:
    """The revision at which history was last compacted, by the mark; 0 if there is none that can be read."""
    mark, _ = await store.get(keys.compaction)
    try:
        return max(0, store_pb2.CompactionRecord.FromString(mark.value).revision) if mark else 0
    except DecodeError:
        return 0


class Difference:
    """How a listing differs from what is known, found page by page: of what is unchanged, only keys are held.

    Attributes:
        changes: puts after `since`, a key at most once.
        key_count: how many keys were listed.
    """

    def __init__(self, since: int) -> None:
        self._since = since
        self._unseen: set[bytes] = set()
        self.changes: list[KeyChange] = []
        self.key_count = 0

    async def know(self, keys: Iterable[bytes]) -> None:
        """Note the keys known so far, before the first page. It yields to the loop: they must not change meanwhile."""
        left = iter(keys)
        while portion := list(islice(left, _KEYS_PER_TURN)):
            self._unseen.update(portion)
            await asyncio.sleep(0)

    def see(self, records: Sequence[Record]) -> None:
        """Compare a page of the listing."""
        self.key_count += len(records)
        self._unseen.difference_update([record.key for record in records])
        self.changes += [KeyChange(*record) for record in records if record.modified > self._since]

    def deletions(self, revision: int) -> Iterator[KeyChange]:
        """Yield deletions of keys that were known and are on none of the pages, once all were read."""
        return (KeyChange(key, None, 0, revision) for key in self._unseen)
