"""Following the store: one listing, then one watch, kept honest.

Only listed pages and events move `applied`. The watch is opened again behind it after any end whatsoever. Prior art for
the shape: reflectors of Kubernetes' client (list, watch, list again); unlike those, nothing here trusts the age of a
connection, the header of an answer or a progress notification: etcd lets all of them run ahead of events. What proves
freshness is the fence (fence.py).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Protocol

from hq.store.compaction import mark_revision
from hq.store.epoch import Epoch
from hq.store.keys import Keys
from hq.store.port import (
    Batch,
    Change,
    Compacted,
    Disconnected,
    FutureRevision,
    NoSpace,
    Record,
    Store,
    Unavailable,
    UnknownOutcome,
)

log = logging.getLogger(__name__)

_PAGE_BYTES = 2 << 20
_FIRST_PAGE = 500
_BACKOFF_S = (0.05, 2.0)


class Sink(Protocol):
    """Who is told what the store says. Calls come in order and are never concurrent."""

    def reset(self) -> None:
        """Forget everything; a listing follows."""

    def load(self, records: list[Record]) -> None:
        """Part of a listing."""

    def listed(self, revision: int) -> None:
        """The listing is complete; it shows the store at this revision."""

    def apply(self, batch: Batch, *, collapsed: bool) -> None:
        """Complete revisions. Collapsed: the difference over a time that was missed, each key at most once, in no order."""

    def connection(self, up: bool) -> None:
        """A watch is open, or it is not."""

    def keys(self) -> Iterable[bytes]:
        """The keys of all records that are in."""


class EpochMoved(Exception):
    """The epoch record changed: some replica found that the history is another one."""


class Follower:
    """Keeps a sink in step with the store for ever.

    Attributes:
        applied: the revision up to which the sink knows everything; 0 before the first listing.
        restarts: how often the watch was opened again.
        following: set while a watch is open.
        key_count: how many keys lie below the prefix at `applied`.
    """

    def __init__(self, store: Store, keys: Keys, sink: Sink, epoch: Epoch, rng: random.Random) -> None:
        self._store, self._keys, self._sink, self._epoch, self._rng = store, keys, sink, epoch, rng
        self.applied = 0
        self.restarts = 0
        self.key_count = 0
        self.following = asyncio.Event()
        self._last_put: Record | None = None
        # Words that the own fence key may hold: one of a lost try can still arrive late.
        self._own_fence = b""
        self._own_words: deque[bytes] = deque(maxlen=20)
        self._must_list = True
        self._patience: asyncio.Timeout | None = None

    def cut(self) -> None:
        """Open the watch again: it stands, but brings nothing."""
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    def own_fence(self, key: bytes, value: bytes) -> None:
        """A word is about to be put under this replica's fence key: if the history stays the same, it may stand there."""
        self._own_fence = key
        self._own_words.append(value)

    async def run(self) -> None:
        """Follow for ever. Ends only with an error that no retry mends (FormatTooNew), or when cancelled."""
        delay_s = _BACKOFF_S[0]
        while True:
            applied = self.applied
            try:
                await self._follow_once()
            except Compacted as gone:
                log.warning("%s: listing again", gone)
                await self._list_difference_or_all()
            except EpochMoved:
                self._must_list = True
            except (Unavailable, Disconnected, NoSpace, UnknownOutcome) as error:
                log.warning("following the store was interrupted at version %d: %s", self.applied, error)
            self._connection(False)
            self.restarts += 1
            # The first retry comes at once: most ends are those of a connection, not of the store.
            delay_s = _BACKOFF_S[0] if self.applied > applied else min(delay_s * 2, _BACKOFF_S[1])
            await asyncio.sleep(self._rng.uniform(0, delay_s))

    async def _follow_once(self) -> None:
        if self._must_list:
            await self._list_all()
        elif not await self._same_history():
            await self._history_is_over()
            await self._list_all()
        async with self._store.watch(self._keys.prefix, self._keys.end, after=self.applied) as stream:
            self._connection(True)
            try:
                async with asyncio.timeout(None) as self._patience:
                    async for batch in stream:
                        self._apply(batch)
            except TimeoutError:
                raise Disconnected("the watch brought nothing, not even this replica's own fence") from None
        raise Disconnected("the watch ended")

    async def _history_is_over(self) -> None:
        await self._epoch.moved()
        self._must_list = True

    def _connection(self, up: bool) -> None:
        if up:
            self.following.set()
        else:
            self.following.clear()
        self._sink.connection(up)

    def _apply(self, batch: Batch) -> None:
        for change in batch.changes:
            if change.key == self._keys.epoch and self._epoch.contradicts(change.value, change.revision):
                raise EpochMoved
            if change.value is None:
                self.key_count -= 1
            else:
                self.key_count += change.created == change.revision
                self._last_put = Record(change.key, change.value, change.created, change.revision)
        self.applied = batch.revision
        self._sink.apply(batch, collapsed=False)

    # --- is it still the same history? ------------------------------------------------------------------------------

    async def _same_history(self) -> bool:
        """Whether the last put that was applied stands in the store at its revision."""
        last = self._last_put
        if last is None:
            return True
        try:
            found, _ = await self._store.get(last.key, revision=last.modified)
        except FutureRevision:
            return False
        except Compacted:
            return await self._own_fence_stands()
        return found == last

    async def _own_fence_stands(self) -> bool:
        if not self._own_words:
            return False
        found, _ = await self._store.get(self._own_fence)
        return found is not None and found.value in self._own_words

    # --- listing ----------------------------------------------------------------------------------------------------

    async def _list_all(self) -> None:
        """Forget everything and read it: at the last compaction mark where it still stands, else at the head."""
        await self._epoch.settle()
        mark, _ = await self._store.get(self._keys.compaction)
        at = mark_revision(mark.value) if mark else 0
        try:
            revision = await self._list_at(at)
        except (Compacted, FutureRevision):
            revision = await self._list_at(0)
        self.applied = revision
        self._must_list = False
        self._sink.listed(revision)
        log.info("listed %d keys at version %d", self.key_count, revision)

    async def _list_at(self, at: int) -> int:
        self._sink.reset()
        self.key_count, self._last_put = 0, None
        revision = at
        async for records, listed_at in self._pages(at):
            self._count(records)
            self._sink.load(records)
            revision = listed_at
        return revision

    async def _list_difference_or_all(self) -> None:
        """After history was compacted: what changed since `applied`, as one batch at the listing's revision."""
        try:
            if not await self._same_history():
                await self._history_is_over()
                return
            listed: dict[bytes, Record] = {}
            revision = self.applied
            async for records, at in self._pages(0):
                listed.update((record.key, record) for record in records)
                revision = at
        except (Unavailable, Compacted, FutureRevision, NoSpace, UnknownOutcome) as error:
            log.warning("listing after a compaction failed: %s", error)
            return
        difference = list(self._difference(listed, revision))
        self.key_count, self._last_put = 0, None
        self._count(listed.values())
        self.applied = revision
        self._sink.apply(Batch(revision, difference), collapsed=True)

    def _difference(self, listed: dict[bytes, Record], revision: int) -> Iterator[Change]:
        known = set(self._sink.keys())
        for record in listed.values():
            if record.modified > self.applied:
                yield Change(record.key, record.value, record.created, record.modified)
        for key in known - listed.keys():
            yield Change(key, None, 0, revision)

    async def _pages(self, revision: int) -> AsyncIterator[tuple[list[Record], int]]:
        """All records at one revision (0: that of the first page)."""
        start, limit = self._keys.prefix, _FIRST_PAGE
        while True:
            page = await self._store.page(start, self._keys.end, revision=revision, limit=limit)
            revision = revision or page.revision
            yield page.records, revision
            if not page.more:
                return
            start = page.records[-1].key + b"\0"
            size = sum(len(r.value) for r in page.records) // len(page.records) + 64
            limit = max(16, min(_PAGE_BYTES // size, 20_000))

    def _count(self, records: Iterable[Record]) -> None:
        for record in records:
            self.key_count += 1
            if self._last_put is None or record.modified > self._last_put.modified:
                self._last_put = record
