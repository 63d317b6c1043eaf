"""Compaction: one replica, now and then, gives up history that nobody needs to resume from.

The mark is put first, by compare, so that one replica wins; then the store is compacted at the mark *before* it. A
starting replica lists at that revision and replays from there, which fills its history for watches. The revision
compacted at is always that of a put (of a mark): some etcd versions lose a deletion at exactly the compacted revision.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence

from store.burial import Burial
from store.epoch import Epoch
from store.keys import Keys
from store.port import (
    Compacted,
    Compare,
    ConditionFailed,
    FutureRevision,
    NoSpace,
    Record,
    Store,
    StoreClock,
    StoreError,
    Write,
)
from storepb.v1 import store_pb2

log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
_FIRST_MARK_S = 1.0


class Compactor:
    """Compacts every `every_s` seconds, unless another replica did; also removes the keys of replicas long gone.

    Attributes:
        marked_at: the revision at which the last mark was put; 0: there is none.
        compactions: done by this replica; for metrics.
    """

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: str,
        epoch: Epoch,
        clock: StoreClock,
        rng: random.Random,
        every_s: float,
        kinds: Sequence[str] = (),
    ) -> None:
        """`kinds`: of keys that each process has for itself, besides the store's own; see Burial."""
        self._store, self._keys, self._replica, self._epoch = store, keys, replica, epoch
        self._clock, self._rng, self._every_s = clock, rng, every_s
        self._burial = Burial(store, keys, replica, epoch, clock, kinds)
        self.marked_at = 0
        self._seen_at = clock.now()
        self.compactions = 0

    def on_compaction_mark(self, mark: Record) -> None:
        """Take note of a compaction mark from the watch or a listing."""
        self.marked_at, self._seen_at = mark.modified, self._clock.now()

    async def run(self) -> None:
        """Compact for ever; not at all if `every_s` is 0."""
        if not self._every_s:
            await asyncio.Event().wait()
        while True:
            await asyncio.sleep(min(_FIRST_MARK_S, self._every_s) if not self.marked_at else self._every_s / 8)
            await asyncio.sleep(self._rng.uniform(0, min(2.0, self._every_s / 8)))
            # The first mark comes soon: from then on a restarted replica knows what was before it.
            if self.marked_at and self._clock.now() - self._seen_at < self._every_s:
                continue
            try:
                await self.once()
            except (StoreError, Compacted, FutureRevision) as error:
                log.info("compaction was postponed: %s", error)

    async def once(self) -> bool:
        """Put a new mark and compact at the one before; return whether this replica was the one to do it.

        Raises NoSpace after compacting at the last mark: a full store takes no mark, and needs compaction most.
        """
        before, self._seen_at = self.marked_at, self._clock.now()
        try:
            refused = await self._put_mark(before)
        except NoSpace:
            await self._compact(before)
            raise
        if refused is not None:
            # Another replica's mark has not come through the watch yet, or the mark was deleted.
            self.marked_at = refused.modified[self._keys.compaction]
            return False
        await self._compact(before)
        await self._burial.once()
        return True

    async def _put_mark(self, before: int) -> ConditionFailed | None:
        revision = before
        if not before:
            _, revision = await self._store.get(self._keys.compaction)
        record = store_pb2.CompactionRecord(revision=revision, process=self._replica)
        at = Compare(self._keys.compaction, "modified", before)
        write = Write((at,), ((self._keys.compaction, record.SerializeToString()),))
        commit = await self._store.commit((self._epoch.guard(),), (write,), _TIMEOUT_S)
        outcome = commit.outcomes[0] if commit.guarded else ConditionFailed({self._keys.compaction: before})
        return outcome if isinstance(outcome, ConditionFailed) else None

    async def _compact(self, revision: int) -> None:
        if revision:
            await self._store.compact(revision)
            self.compactions += 1
            log.info("compacted the store's history before version %d", revision)
