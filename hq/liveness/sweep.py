"""The sweep: calls revisions not ready whose agents are silent, and never those that HQ itself failed to hear.

No lock. Every replica sweeps; a flip is exact whoever writes it: fence at version F, look again, then one transaction
that compares that no batch of beats is newer than F and that each status record is unchanged. A report always wins.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass

from hq.cache import Cache
from hq.clock import Clock
from hq.entry import Entry
from hq.errors import HqError
from hq.liveness.deadlines import RevisionKey
from hq.liveness.guard import Guard, Verdict
from hq.liveness.orders import Orders
from hq.liveness.presence import Presence
from hq.liveness.tracker import Tracker
from hq.statuses import Draft
from hq.store.commit import MAX_WRITES, Committer, Conflict, Guarded
from hq.store.fence import Fence
from hq.store.keys import Keys, prefix_end
from hq.store.port import Compare, Write
from hq.store.words import new_word
from hqpb.v1 import instance_pb2

log = logging.getLogger(__name__)

_WRITE_TIMEOUT_S = 5.0
_TRIES = 20


@dataclass(frozen=True, slots=True)
class SweepTimes:
    """Seconds. `spread_s`: replicas start each sweep at random within it, so that they do not all write at once."""

    idle_s: float = 1.0
    spread_s: float = 0.5


class Sweep:
    """The loop. Attributes: `verdict` is what the guard said last; `waiting`, how many flips it holds back."""

    def __init__(
        self,
        cache: Cache,
        keys: Keys,
        tracker: Tracker,
        guard: Guard,
        orders: Orders,
        presence: Presence,
        fence: Fence,
        committer: Committer,
        clock: Clock,
        rng: random.Random,
        replica: str,
        times: SweepTimes | None = None,
    ) -> None:
        self._cache, self._keys, self._tracker, self._guard, self._orders = (
            cache,
            keys,
            tracker,
            guard,
            orders,
        )
        self._presence, self._fence, self._committer = presence, fence, committer
        self._clock, self._rng, self._replica = clock, rng, replica
        self._times = times or SweepTimes()
        self._allowance = 0.0
        self.verdict = Verdict(False, False, None, None, "nothing was looked at yet")
        self.waiting = 0

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            await asyncio.sleep(self._times.idle_s + self._rng.uniform(0, self._times.spread_s))
            try:
                await self.once()
            except (HqError, TimeoutError) as error:
                log.info("a sweep was put off: %s", error)

    async def once(self) -> int:
        """One pass; return how many revisions it flipped. Raises HqError when the store does not take part."""
        now = self._clock.now()
        if not self._presence.look(now):
            return 0
        self._judge(now)
        due = self._due(now)
        self.waiting = len(due) if self.verdict.hold else 0
        if not due or self.verdict.hold:
            return 0
        flipped = 0
        for start in range(0, len(due), MAX_WRITES):
            flipped += await self._flip(due[start : start + MAX_WRITES])
        return flipped

    def _judge(self, now: float) -> None:
        census = self._tracker.census(self._cache.nodes())
        before = self.verdict
        self.verdict = self._guard.judge(now, census, self._orders.order())
        if self.verdict.hold and not before.hold:
            log.warning("flips are held back: %s", self.verdict.words)
        elif before.hold and not self.verdict.hold:
            log.warning("flips go ahead again: %s", self.verdict.words)
        rate = self._guard.flips_per_s(census.expected)
        self._allowance = min(self._allowance + rate * self._times.idle_s, max(1.0, rate))

    def _due(self, now: float) -> list[RevisionKey]:
        """Whose deadline has passed, but for planned work; no more than the rate allows if it is limited."""
        due = [key for key in self._tracker.deadlines.expired(now) if not self._suspended(key)]
        if self.verdict.limited and not self.verdict.hold:
            due = due[: int(self._allowance)]
            self._allowance -= len(due)
        return due

    def _suspended(self, key: RevisionKey) -> bool:
        entry = self._cache.get(key.instance_id)
        return entry is not None and self._orders.suspension(entry.traits.node) is not None

    async def _flip(self, keys: list[RevisionKey]) -> int:
        """Flip some revisions unless they are heard of meanwhile; beats of anybody's make it look again."""
        for _ in range(_TRIES):
            version = await self._fence.passed()
            now = self._clock.now()
            if not self._presence.look(now):
                return 0
            still = set(self._tracker.deadlines.expired(now))
            by_instance: dict[str, list[RevisionKey]] = {}
            for key in keys:
                if key in still:
                    by_instance.setdefault(key.instance_id, []).append(key)
            if not by_instance:
                return 0
            try:
                return await self._write(by_instance, version, now)
            except Guarded:
                continue
        log.info("beats kept coming during %d tries to flip %d revisions: next sweep", _TRIES, len(keys))
        return 0

    async def _write(self, by_instance: dict[str, list[RevisionKey]], version: int, now: float) -> int:
        newer = Compare(self._keys.beats, "modified", version + 1, "<", prefix_end(self._keys.beats))
        writes = []
        for instance_id, keys in by_instance.items():
            entry = self._cache.get(instance_id)
            if entry is not None:
                writes.append(self._write_one(entry, keys, version, now, newer))
        results = await asyncio.gather(*writes, return_exceptions=True)
        if any(isinstance(result, Guarded) for result in results):
            raise Guarded
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, Conflict):
                raise result
        return sum(result for result in results if isinstance(result, int))

    async def _write_one(self, entry: Entry, keys: list[RevisionKey], version: int, now: float, newer: Compare) -> int:
        wall_ms, write_id = self._clock.wall_ms(), new_word(self._rng)
        draft = Draft(entry.traits.uid, entry.stored()[1].record, entry.marks)
        for key in keys:
            draft.flip(key.revision_id, self._receipt(entry, key, version, now), wall_ms)
        status_key = self._keys.status(entry.traits.id)
        write = Write(
            (Compare(status_key, "modified", entry.status_version),),
            ((status_key, draft.record(write_id, wall_ms).SerializeToString()),),
        )
        deadline = now + _WRITE_TIMEOUT_S
        await self._committer.commit(entry.traits.id, write, write_id, deadline, guards=(newer,))
        for key in keys:
            log.info("%s/%s is not ready: silent for too long", key.instance_id, key.revision_id)
        return len(keys)

    def _receipt(self, entry: Entry, key: RevisionKey, version: int, now: float) -> instance_pb2.Receipt:
        mark = entry.mark(key.revision_id)
        receipt = instance_pb2.Receipt(
            heard_by=mark.heard_by if mark else "",
            decided_by=self._replica,
            guard_verdict=self.verdict.words,
            decided_at_version=version,
        )
        if mark is not None and mark.heard_ms:
            receipt.last_heartbeat_time.FromMilliseconds(mark.heard_ms)
        receipt.silence.FromMilliseconds(round((self._tracker.deadlines.silence_s(key, now) or 0) * 1000))
        return receipt
