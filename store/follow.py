"""Following the store: one listing, then one watch, kept honest.

Only listed pages and events move `applied`. However a watch ends, the next one begins after `applied`. Prior art for
the shape: reflectors of Kubernetes' client (list, watch, list again); unlike those, nothing here trusts the age of a
connection, the header of an answer or a progress notification: etcd lets all of them run ahead of events. What proves
freshness is the fence (fence.py); what proves that the history is the same, the anchor (anchor.py).

A replay can be more than the store can deliver in time: etcd puts all that a watch missed into one message, and the
time to split it grows with its square. So a watch that brought nothing is opened again once; if the next one brings
nothing either, the difference is listed at the head, page by page, and the watch begins there.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from enum import Enum, auto

from store.anchor import HistoryCheck
from store.epoch import Epoch
from store.kept import Footing, NotKept, StoreCheckpoint, other_ranges, restore_checkpoint
from store.keys import Keys
from store.listing import Difference, listing, marked_revision
from store.port import (
    Batch,
    Compacted,
    Disconnected,
    FutureRevision,
    KeyChange,
    NoSpace,
    Record,
    Rejected,
    Store,
    StoreError,
    StoreSink,
    Unavailable,
    UnknownOutcome,
    WatchStream,
)

log = logging.getLogger(__name__)

_BACKOFF_S = (0.05, 2.0)
_WHY_S = 3.0


class EpochMoved(Exception):
    """The epoch record changed: some replica found that the history is another one."""


class OtherHistory(Exception):
    """The store does not hold what was applied: it was restored or replaced."""


class _Silent(Disconnected):
    """The watch was open and brought nothing."""


class _RestartPoint(Enum):
    """How much must be read before the next watch."""

    NOTHING = auto()
    GAP = auto()  # the difference: events were compacted away, or do not come
    ALL = auto()
    EPOCH = auto()  # the epoch, then all: the history is another one


class Mend:
    """Keys that were wrong in memory, as the store had them when it was read.

    Attributes:
        word: what the mark will hold.
        listings: the follower's when the reads began. After another listing nothing is mended: `deleted` lacks the keys
            that it dropped.
        done: how many keys were mended, once the mark has come back.
    """

    def __init__(
        self, word: bytes, records: Mapping[bytes, tuple[Record | None, int]], deleted: Iterable[bytes], listings: int
    ) -> None:
        """`records`: by key, with the revision of the read. `deleted`: what was deleted since the reads began."""
        self.word, self._records, self._deleted, self.listings = word, records, deleted, listings
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def changes(self, sink: StoreSink, revision: int) -> list[KeyChange]:
        """Return the changes that are still needed when the sink has reached the mark, at `revision`."""
        changes = []
        for key, (record, read_at) in self._records.items():
            known = sink.version_of(key) or 0
            if known > read_at or (record is not None and known == record.modified):
                continue
            if record is None:
                changes += [KeyChange(key, None, 0, revision)] if known else []
            elif known or key not in self._deleted:
                changes.append(KeyChange(*record))
        return changes


class StoreFollower:
    """Keeps a sink in step with the store for ever.

    Attributes:
        applied: the revision up to which the sink knows everything; 0 before the first listing.
        restarts: how often the watch was opened again.
        following: set while a watch is open.
        opened: set whenever a watch is opened; whoever waits for it clears it.
        key_count: how many keys are below the prefix at `applied`.
        listings: counts up when a listing empties, fills or corrects the sink: what was read before says nothing of it.
        mending: what to mend when its mark comes through the watch.
        kept: an earlier process's checkpoint; tried once, before the first listing.
    """

    def __init__(self, store: Store, keys: Keys, sink: StoreSink, epoch: Epoch, rng: random.Random) -> None:
        self._store, self._keys, self._sink, self._epoch, self._rng = store, keys, sink, epoch, rng
        self.applied = 0
        self.restarts = 0
        self.key_count = 0
        self.listings = 0
        self.mending: Mend | None = None
        self._deleted: set[bytes] | None = None
        self.following, self.opened = asyncio.Event(), asyncio.Event()
        self.kept: StoreCheckpoint | None = None
        self._stands_on_kept = False  # from `kept`, and no watch has yet shown that the store has what follows
        self._anchor = HistoryCheck()
        self._missing = _RestartPoint.ALL
        self._silent = 0  # watches in a row that brought nothing
        self._patience: asyncio.Timeout | None = None

    def cut(self) -> None:
        """Open the watch again: it is open, but brings nothing."""
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def noting_deletions(self) -> Iterator[set[bytes]]:
        """The keys whose deletions are applied from now on. For one user at a time."""
        self._deleted = deleted = set[bytes]()
        try:
            yield deleted
        finally:
            self._deleted = None

    def own_fence(self, key: bytes, value: bytes) -> None:
        """Remember a word that is about to be put under this replica's fence key: the same history may show it."""
        self._anchor.sending_fence(key, value)

    def footing(self) -> Footing | None:
        """Return the changes that prove the history to a later process; None: nothing was applied yet."""
        return self._anchor.footing()

    async def run(self) -> None:
        """Follow for ever. Ends only with an error that no retry fixes (FormatTooNew), or when cancelled."""
        delay_s = _BACKOFF_S[0]
        while True:
            applied = self.applied
            try:
                await self._follow_once()
            except Compacted as gone:
                log.warning("%s: listing again", gone)
                self._lack(_RestartPoint.GAP)
            except EpochMoved:
                self._lack(_RestartPoint.ALL)
            except (OtherHistory, FutureRevision):
                self._lack(_RestartPoint.EPOCH)
            except _Silent as silent:
                log.warning("following the store was interrupted at version %d: %s", self.applied, silent)
                self._give_up_replaying()
            except (Unavailable, Disconnected, NoSpace, UnknownOutcome, Rejected) as error:
                if self.applied:
                    log.warning("following the store was interrupted at version %d: %s", self.applied, error)
                else:
                    log.warning("cannot read the store yet (check --etcd): %s; trying again", await self._why(error))
            self.restarts += 1
            # The first retry comes at once: most ends are those of a connection, not of the store.
            delay_s = _BACKOFF_S[0] if self.applied > applied else min(delay_s * 2, _BACKOFF_S[1])
            await asyncio.sleep(self._rng.uniform(0, delay_s))

    async def _why(self, error: Exception) -> str:
        """What is wrong with each member, or the error itself if that explains more."""
        try:
            async with asyncio.timeout(_WHY_S):
                found = [one.error for one in await self._store.members() if one.error]
        except (StoreError, TimeoutError):
            found = []
        # If a member answered with an error, that is the reason, and not another member that is down.
        return "; ".join(found if found and isinstance(error, Unavailable | Disconnected) else [str(error), *found])

    def _lack(self, missing: _RestartPoint) -> None:
        if self._stands_on_kept:
            missing = _RestartPoint.ALL
        if missing.value > self._missing.value:
            self._missing = missing

    def _give_up_replaying(self) -> None:
        """List the difference after two silent watches, and again after four, eight ...: listings are expensive too."""
        self._silent += 1
        if self._silent > 1 and self._silent.bit_count() == 1:
            log.warning("%d watches in a row delivered nothing: listing instead", self._silent)
            self._lack(_RestartPoint.GAP)

    async def _follow_once(self) -> None:
        if self._missing in (_RestartPoint.ALL, _RestartPoint.EPOCH):
            await self._list_all()
        elif self._missing is _RestartPoint.GAP:
            await self._list_difference()
        async with self._store.watch(self._keys.prefix, self._keys.end, after=self.applied) as stream:
            if not await self._anchor.holds(self._store):
                raise OtherHistory
            self._stands_on_kept = False
            self._connection(True)
            try:
                await self._take(stream)
            finally:
                self._connection(False)

    async def _take(self, stream: WatchStream) -> None:
        try:
            async with asyncio.timeout(None) as self._patience:
                async for batch in stream:
                    self._apply(batch)
        except TimeoutError:
            raise _Silent("the watch delivered nothing, not even this replica's own marker (fence)") from None
        finally:
            self._patience = None
        raise Disconnected("the watch ended")

    def _connection(self, up: bool) -> None:
        if up:
            self.following.set()
            self.opened.set()
        else:
            self.following.clear()
        self._sink.connection(up)

    def _apply(self, batch: Batch) -> None:
        for change in batch.changes:
            if change.key == self._keys.epoch and self._epoch.contradicts(change.value, change.revision):
                raise EpochMoved
            if change.key == self._keys.format:
                self._epoch.check_format(change.value, change.revision)
        self._silent = 0
        self.key_count += sum(_growth(change) for change in batch.changes)
        self._anchor.on_batch_applied(batch)
        self.applied = batch.revision
        if self._deleted is not None:
            self._deleted.update(change.key for change in batch.changes if change.value is None)
        marked = self.mending and next((c.revision for c in batch.changes if c.value == self.mending.word), 0)
        if marked:
            before = [change for change in batch.changes if change.revision <= marked]
            self._sink.apply(Batch(marked, before), collapsed=False)
            self._mend(marked)
            batch = Batch(batch.revision, batch.changes[len(before) :])
        if batch.changes:
            self._sink.apply(batch, collapsed=False)

    def _mend(self, revision: int) -> None:
        """Mend, once the mark has been applied and nothing else at its revision."""
        assert self.mending is not None
        changes = self.mending.changes(self._sink, revision) if self.mending.listings == self.listings else []
        if changes:
            self._sink.mend(changes, revision)
        if not self.mending.done.done():
            self.mending.done.set_result(len(changes))

    # --- listing ----------------------------------------------------------------------------------------------------

    async def _list_all(self) -> None:
        """Forget everything and read it: at the last compaction mark where it still stands, else at the head."""
        # Before another epoch is adopted, in which nothing made from the old memory may be written.
        self._forget()
        if self._missing is _RestartPoint.EPOCH:
            await self._epoch.on_history_changed()
            self._missing = _RestartPoint.ALL
        await self._epoch.settle()
        if await self._went_on():
            return
        try:
            revision = await self._list_at(await marked_revision(self._store, self._keys))
        except (Compacted, FutureRevision):
            revision = await self._list_at(0)
        self.applied = revision
        self.listings += 1
        self._missing = _RestartPoint.NOTHING
        self._sink.on_listing_complete(revision)
        log.info("listed %d keys at version %d", self.key_count, revision)

    async def _went_on(self) -> bool:
        """Begin with an earlier process's checkpoint, if the store proves it, and list the rest; else return False."""
        if (kept := self.kept) is None:
            return False
        self._forget()
        try:
            put = await restore_checkpoint(kept, self._store, self._epoch.current)
            self.key_count = kept.key_count
            for start, end in other_ranges(kept, self._keys):
                await self._load(start, end, kept.version)
        except (NotKept, Compacted, FutureRevision) as why:
            log.warning("reading everything, not the checkpoint of the last stop: %s", why)
            self.kept = None
            return False
        self.kept = None
        self._anchor.stand_on(put, kept.footing)
        self.listings += 1
        self.applied, self._missing, self._stands_on_kept = kept.version, _RestartPoint.NOTHING, True
        self._sink.on_listing_complete(kept.version)
        kept.finish()
        log.info("read a checkpoint of %d keys at version %d", self.key_count, kept.version)
        return True

    def _forget(self) -> None:
        self.listings += 1
        self._stands_on_kept = False
        self._sink.reset()
        self._anchor.clear()
        self.key_count = self.applied = 0

    async def _list_at(self, at: int) -> int:
        self._forget()
        return await self._load(self._keys.prefix, self._keys.end, at)

    async def _load(self, start: bytes, end: bytes, at: int) -> int:
        """Take in a range as it was at a revision (0: as it is now); return the revision."""
        words, revision = dict[bytes, bytes](), at
        async with aclosing(listing(self._store, start, end, at)) as parts:
            async for records, revision in parts:
                self.key_count += len(records)
                self._anchor.on_records_listed(records, revision)
                self._sink.load(records)
                words |= self._words_in(records)
        self._check(words, revision)
        return revision

    async def _list_difference(self) -> None:
        """After history was compacted: what changed since `applied`, as one batch at the listing's revision."""
        difference = Difference(self.applied)
        await difference.know(self._sink.keys())
        telling: list[Record] = []
        words, revision = dict[bytes, bytes](), self.applied
        async with aclosing(listing(self._store, self._keys.prefix, self._keys.end)) as parts:
            async for records, revision in parts:  # noqa: B007  # the last one counts
                difference.see(records)
                telling += self._anchor.telling(records)
                words |= self._words_in(records)
        # Checked afterwards: so the listing was read from the same history all the time.
        if not await self._anchor.holds(self._store):
            raise OtherHistory
        self._check(words, revision)
        self._missing = _RestartPoint.NOTHING
        if revision == self.applied:  # the watch was silent because there was nothing to tell
            return
        self.listings += 1
        self._anchor.clear()
        self._anchor.on_records_listed(telling, revision)
        self.key_count, self.applied = difference.key_count, revision
        self._sink.apply(Batch(revision, [*difference.changes, *difference.deletions(revision)]), collapsed=True)

    def _words_in(self, records: list[Record]) -> dict[bytes, bytes]:
        words = self._keys.epoch, self._keys.format
        if not records or records[0].key > max(words) or records[-1].key < min(words):
            return {}  # as for nearly all pages
        return {record.key: record.value for record in records if record.key in words}

    def _check(self, words: dict[bytes, bytes], revision: int) -> None:
        """Check the format and the epoch in a listing: the watch will not report a change that it already has."""
        self._epoch.check_format(words.get(self._keys.format), revision)
        if self._epoch.contradicts(words.get(self._keys.epoch), revision):
            raise EpochMoved


def _growth(change: KeyChange) -> int:
    """How a change moves the number of keys."""
    return -1 if change.value is None else int(change.created == change.revision)
