"""Reading everything below a prefix, page by page at one revision."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from google.protobuf.message import DecodeError

from hq.store.keys import Keys
from hq.store.port import Record, Store
from hqpb.storage.v1 import storage_pb2

_PAGE_BYTES = 2 << 20
_FIRST_PAGE = 500
_LARGEST_PAGE = 20_000


class Part(NamedTuple):
    """Some records, in order of keys, as they were at the revision of the whole listing."""

    records: list[Record]
    revision: int


async def listing(store: Store, keys: Keys, revision: int = 0) -> AsyncIterator[Part]:
    """All records at one revision (0: the head when the first page is read). Raises Compacted, FutureRevision."""
    start, limit = keys.prefix, _FIRST_PAGE
    while True:
        page = await store.page(start, keys.end, revision=revision, limit=limit)
        revision = revision or page.revision
        yield Part(page.records, revision)
        if not page.more:
            return
        start = page.records[-1].key + b"\0"
        size = sum(len(r.value) for r in page.records) // len(page.records) + 64
        limit = max(16, min(_PAGE_BYTES // size, _LARGEST_PAGE))


async def marked_revision(store: Store, keys: Keys) -> int:
    """The revision that history was last compacted at, says the mark; 0 if there is none that can be read."""
    mark, _ = await store.get(keys.compaction)
    try:
        return max(0, storage_pb2.CompactionRecord.FromString(mark.value).revision) if mark else 0
    except DecodeError:
        return 0
