"""Reading everything below a prefix, page by page at one revision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import NamedTuple

from google.protobuf.message import DecodeError

from hqpb.storage.v1 import storage_pb2
from store.keys import Keys
from store.port import Page, Record, Store
from store.stride import Stride

_PAGE_BYTES = 1 << 20
_FIRST_PAGE = 500
_LARGEST_PAGE = 20_000


class Part(NamedTuple):
    """Some records, in order of keys, as they were at the revision of the whole listing."""

    records: list[Record]
    revision: int


async def listing(store: Store, keys: Keys, revision: int = 0) -> AsyncGenerator[Part, None]:
    """All records at one revision (0: the head when the first page is read). Raises Compacted, FutureRevision.

    While one part is being used the next page is under way: close the generator where it is left early.
    """
    pages = _Pages(store, keys)
    try:
        page = await pages.read(revision)
        revision = revision or page.revision
        while True:
            ahead = pages.begin(page, revision)
            if page.records or ahead is None:
                yield Part(page.records, revision)
            if ahead is None:
                return
            page = await ahead
    finally:
        await pages.close()


class _Pages:
    """The pages of one listing, in order, and the one that is under way."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._store, self._end = store, keys.end
        self._stride = Stride(keys.prefix, keys.end)
        self._start, self._stop, self._limit = keys.prefix, keys.end, _FIRST_PAGE
        self._ahead: asyncio.Task[Page] | None = None

    def read(self, revision: int) -> asyncio.Task[Page]:
        """The page from where the last one ended."""
        page = self._store.page(self._start, self._stop, revision=revision, limit=self._limit)
        self._ahead = asyncio.create_task(page, name="next page")
        return self._ahead

    def begin(self, last: Page, revision: int) -> asyncio.Task[Page] | None:
        """The page behind this one; None: there is none."""
        if not last.more and self._stop == self._end:
            return None
        stop = last.records[-1].key + b"\0" if last.more else self._stop
        self._stride.saw([record.key for record in last.records], stop, self._limit)
        if last.records:
            size = sum(len(r.value) for r in last.records) // len(last.records) + 64
            self._limit = max(16, min(_PAGE_BYTES // size, _LARGEST_PAGE))
        self._start, self._stop = stop, self._stride.reach(stop)
        return self.read(revision)

    async def close(self) -> None:
        """What is under way is of no use any more."""
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)


async def marked_revision(store: Store, keys: Keys) -> int:
    """The revision that history was last compacted at, says the mark; 0 if there is none that can be read."""
    mark, _ = await store.get(keys.compaction)
    try:
        return max(0, storage_pb2.CompactionRecord.FromString(mark.value).revision) if mark else 0
    except DecodeError:
        return 0
