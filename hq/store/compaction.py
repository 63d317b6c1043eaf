"""Compaction: one replica, now and then, gives up history that nobody needs to resume from.

The mark is put first, by compare, so that one replica wins; then the store is compacted at the mark *before* it. A
starting replica lists at that revision and replays from there, which fills its history for watches. The revision
compacted at is always that of a put (of a mark): some etcd versions lose a deletion at exactly the compacted revision.
"""

from __future__ import annotations

import asyncio
import logging
import random

from google.protobuf.message import DecodeError

from hq.clock import Clock
from hq.errors import HqError
from hq.store.epoch import Epoch
from hq.store.keys import BEATS, COMMITS, FENCE, SESSION, Keys
from hq.store.port import (
    Applied,
    Compacted,
    Compare,
    FutureRevision,
    Record,
    Rejected,
    Store,
    UnknownOutcome,
    Write,
)
from hqpb.storage.v1 import storage_pb2

log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
_DEAD_AFTER_S = 3600.0


class Compactor:
    """Compacts every `every_s` seconds, unless another replica did; also removes the keys of replicas long gone.

    Attributes:
        compactions: done by this replica; for metrics.
    """

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: str,
        epoch: Epoch,
        clock: Clock,
        rng: random.Random,
        every_s: float,
    ) -> None:
        self._store, self._keys, self._replica, self._epoch = store, keys, replica, epoch
        self._clock, self._rng, self._every_s = clock, rng, every_s
        self._mark: Record | None = None
        self._mark_seen_at = clock.now()
        self._fences: dict[str, tuple[int, float]] = {}
        self.compactions = 0

    def seen(self, mark: Record) -> None:
        """A compaction mark came through the watch or a listing."""
        if self._mark is None or mark.modified > self._mark.modified:
            self._mark, self._mark_seen_at = mark, self._clock.now()

    async def run(self) -> None:
        """Compact for ever; not at all if `every_s` is 0."""
        if not self._every_s:
            await asyncio.Event().wait()
        while True:
            await asyncio.sleep(self._every_s * self._rng.uniform(0.1, 0.2))
            if self._clock.now() - self._mark_seen_at < self._every_s:
                continue
            try:
                await self.once()
            except (HqError, UnknownOutcome, Rejected, Compacted, FutureRevision) as error:
                log.info("compaction was put off: %s", error)

    async def once(self) -> bool:
        """Put a new mark and compact at the one before; return whether this replica was the one to do it."""
        last, self._mark_seen_at = self._mark, self._clock.now()
        record = storage_pb2.CompactionRecord(revision=last.modified if last else 0, replica=self._replica)
        at = Compare(self._keys.compaction, "modified", last.modified if last else 0)
        write = Write((at,), ((self._keys.compaction, record.SerializeToString()),))
        commit = await self._store.commit((self._epoch.guard(),), (write,), _TIMEOUT_S)
        if not commit.guarded or not isinstance(commit.outcomes[0], Applied):
            return False
        if last is not None:
            await self._store.compact(last.modified)
            self.compactions += 1
            log.info("compacted the store's history before version %d", last.modified)
        await self._bury()
        return True

    async def _bury(self) -> None:
        """Remove the keys of replicas whose fence has not moved for an hour of this replica's own clock."""
        page = await self._store.page(
            self._keys.of(FENCE, ""), self._keys.of(FENCE, "\U0010ffff"), revision=0, limit=1_000
        )
        now = self._clock.now()
        seen: dict[str, tuple[int, float]] = {}
        for fence in page.records:
            replica = self._keys.name(fence.key).rest
            modified, since = self._fences.get(replica, (0, now))
            seen[replica] = (fence.modified, since if modified == fence.modified else now)
            if replica != self._replica and now - seen[replica][1] > _DEAD_AFTER_S:
                gone = tuple(self._keys.of(kind, replica) for kind in (FENCE, SESSION, BEATS, COMMITS))
                still = Compare(fence.key, "modified", fence.modified)
                await self._store.commit((self._epoch.guard(),), (Write((still,), deletes=gone),), _TIMEOUT_S)
        self._fences = seen


def mark_revision(value: bytes) -> int:
    """The revision that a mark says was compacted; 0 if it cannot be read."""
    try:
        return int(storage_pb2.CompactionRecord.FromString(value).revision)
    except DecodeError:
        return 0
