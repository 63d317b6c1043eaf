"""Records that outlive a restart: HQ's presence, silences, and how much of their time guard and probe have used up.

One replica at a time keeps them: the one that wrote last, or another if that one has not for a while. Silence is stored
as a moment on a clock that counts only HQ's presence. The clock has a key of its own, so a record changes only when
somebody falls silent or is heard. While nobody is silent nothing is written.

A record is only good for a start whose replay begins before it (replay.py), so it is written again when the store's
history is about to be compacted past it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from typing import Final

from hq import keys as k
from hq.liveness.deadlines import K, RevisionKey
from hq.liveness.guard import ExpiryGuard, HoldUse
from hq.liveness.orders import Orders
from hq.liveness.queues import Queues
from hq.liveness.reachability import Reachability
from hq.liveness.replay import AGENT, Carried, SilenceRow, rows_of
from hq.liveness.tracker import Tracker
from hq.memory.cache import Cache
from hqpb.storage.v1 import storage_pb2
from serving.clock import Clock
from store.epoch import Epoch
from store.port import Compare, Store, StoreError, Write

log = logging.getLogger(__name__)

_EVERY_S: Final = 5.0
_SOON_S: Final = 0.2
_SHARE: Final = 20  # looking at all who are silent takes a twentieth of the time at most, however many there are
_AWAY: Final = 3  # rounds that a writer may miss before another one writes
_PARTS: Final = 16
_AT_ONCE_BYTES: Final = 1 << 20
_AT_ONCE: Final = 2_000  # deadlines looked at before other tasks get their turn
_SAME_MS: Final = 1_000
_TIMEOUT_S: Final = 3.0
_CLOCK: Final = "clock"
KNOWN: Final = b"spec.liveness"


_Part = dict[tuple[int, str], SilenceRow]  # by uid and revision


class Presence:
    """Keeps the records of silence, and reads them at a start."""

    def __init__(
        self,
        store: Store,
        keys: k.HqKeys,
        replica: str,
        epoch: Epoch,
        cache: Cache,
        tracker: Tracker,
        guard: ExpiryGuard,
        orders: Orders,
        reachability: Reachability,
        clock: Clock,
        rng: random.Random,
        marked_at: Callable[[], int],
    ) -> None:
        """`marked_at`: the revision of the last compaction mark."""
        self._store, self._keys, self._replica, self._epoch = store, keys, replica, epoch
        self._cache, self._tracker, self._reachability = cache, tracker, reachability
        self._guard, self._orders = guard, orders
        self._clock, self._rng, self._marked_at = clock, rng, marked_at
        self._least_s = self._round_s = min(_EVERY_S, tracker.times.timeout_s / 40)
        self.reset()

    def reset(self) -> None:
        """Forget all records: the store has a new history."""
        self._records: dict[str, storage_pb2.SilenceRecord] = {}
        self._kept = list[storage_pb2.SilenceRecord]()
        self._rows: dict[str, _Part] = {}
        self._stored = storage_pb2.PresenceRecord()
        self._clock_at = 0
        self._is_announced = False
        self._seen_at = float("-inf")
        self._base_s, self._base_at = 0.0, float("-inf")

    def observe(self, rest: str, value: bytes, version: int) -> None:
        """Take in a record. Raises DecodeError."""
        if rest != _CLOCK:
            self._records[rest] = record = storage_pb2.SilenceRecord.FromString(value)
            self._rows[rest] = dict(rows_of(record))
            return
        self._stored = storage_pb2.PresenceRecord.FromString(value)
        self._clock_at = version
        if self._tracker.replay is not None or self._stored.replica != self._replica:
            self._count_on(self._stored)
            self._seen_at = self._clock.now()

    def start(self, because: str) -> None:
        """Begin to measure, with what is left of everybody's timeout: all was read."""
        tracker, carried = self._tracker, Carried({}, {})
        self._base_at = self._clock.now()
        if tracker.replay is not None:
            presence_ms = max(round(self._base_s * 1000), self._stored_ms())
            records = [*self._records.values(), *self._kept]
            carried = tracker.replay.carry_silences(records, self._epoch.current, presence_ms, self._cache.entries())
        tracker.start(self._cache.entries(), because, carried)
        if self._stored_ms():
            self._resume(self._stored)
        if carried.revisions or carried.agents:
            counts = len(carried.revisions), len(carried.agents)
            log.info("%d revisions and %d agents were silent before this start", *counts)
        self._kept = []

    def keep(self) -> tuple[bytes, ...]:
        """All that is known, for a checkpoint: ages on the clock of presence, which stands until the next start."""
        record = self._record(list(self._silent_now()), self._cache.version)
        return self._clock_record(_ms(self._now_s())).SerializeToString(), record.SerializeToString()

    def recall(self, kept: tuple[bytes, ...]) -> None:
        """Take in what another process kept, after the store has proven that it is of this history."""
        if len(kept) == 2:
            clock = storage_pb2.PresenceRecord.FromString(kept[0])
            self._kept = [storage_pb2.SilenceRecord.FromString(kept[1])]
            if clock.presence_ms >= self._stored_ms():
                self._base_s, self._stored = clock.presence_ms / 1000, clock

    async def run(self) -> None:
        """Keep the records for ever."""
        while True:
            await asyncio.sleep(self._rng.uniform(0.8, 1.0) * self._round_s if self._is_announced else _SOON_S)
            if self._tracker.replay is None:
                try:
                    await self._announce()
                    if self._reachability.is_present:
                        await self.once()
                except (StoreError, TimeoutError) as error:
                    log.info("who is silent could not be stored: %s", error)

    async def _announce(self) -> None:
        """Say that this replica knows timeouts of instances. Raises StoreError."""
        if not self._is_announced:
            put = Write((), ((self._keys.of(k.KNOWS, self._replica), KNOWN),))
            commit = await self._store.commit((self._epoch.guard(),), (put,), _TIMEOUT_S)
            self._is_announced = commit.guarded

    async def once(self) -> None:
        """Store what has changed, unless another replica does. Raises StoreError."""
        began = self._clock.now()
        if began - self._seen_at < _AWAY * self._round_s:
            return
        at, parts = self._cache.version, await self._parts()
        self._round_s = max(self._least_s, _SHARE * (self._clock.now() - began))
        dirty = [name for name, part in parts.items() if self._is_dirty(name, part)]
        clock = self._clock_record(_ms(self._now_s()))
        is_idle = not any(parts.values()) and not _has_use(clock) and not _has_use(self._stored)
        if self._tracker.replay is not None or (is_idle and not dirty):
            return
        puts = [(self._keys.of(k.SILENCE, _CLOCK), clock.SerializeToString())]
        size = 0
        for name in dirty:
            value = self._record([(*key, row) for key, row in parts[name].items()], at).SerializeToString()
            size += len(value)
            if size > _AT_ONCE_BYTES and len(puts) > 1:
                break  # the others in the next round
            puts.append((self._keys.of(k.SILENCE, name), value))
        await self._commit(puts)

    async def _commit(self, puts: list[tuple[bytes, bytes]]) -> None:
        unchanged = Compare(puts[0][0], "modified", self._clock_at)
        await self._store.commit((self._epoch.guard(),), (Write((unchanged,), puts),), _TIMEOUT_S)

    def _now_s(self) -> float:
        return self._base_s + self._tracker.present_s(self._base_at)

    def _count_on(self, clock: storage_pb2.PresenceRecord) -> None:
        """Continue from another replica's counts."""
        now_s = max(self._now_s() if self._tracker.replay is None else self._base_s, clock.presence_ms / 1000)
        self._base_s, self._base_at = now_s, self._clock.now()

    def _stored_ms(self) -> int:
        return self._stored.presence_ms if self._stored.epoch == self._epoch.current else 0

    def _resume(self, clock: storage_pb2.PresenceRecord) -> None:
        self._reachability.door.used_s = clock.door_used_ms / 1000
        if clock.is_holding or clock.hold_renewed_in_ms:
            use = HoldUse(clock.is_holding, clock.hold_left_ms / 1000, clock.hold_renewed_in_ms / 1000)
            self._guard.resume(self._clock.now(), use)

    def _clock_record(self, presence_ms: int) -> storage_pb2.PresenceRecord:
        use = self._guard.use(self._clock.now()) or HoldUse(False, 0.0, 0.0)
        return storage_pb2.PresenceRecord(
            epoch=self._epoch.current,
            presence_ms=presence_ms,
            replica=self._replica,
            is_holding=use.is_holding,
            hold_left_ms=_ms(use.left_s),
            hold_renewed_in_ms=_ms(use.renewed_in_s),
            door_used_ms=_ms(self._reachability.door.used_s),
        )

    async def _parts(self) -> dict[str, _Part]:
        """Who is silent now; a row that differs from the stored one by less than a second stays as it is stored."""
        parts: dict[str, _Part] = {str(number): {} for number in range(_PARTS)}
        for number, (uid, of, row) in enumerate(self._silent_now(), 1):
            name = str(uid % _PARTS)
            stored = self._rows.get(name, {}).get((uid, of))
            is_same = stored is not None and abs(stored.heard_ms - row.heard_ms) < _SAME_MS
            parts[name][uid, of] = stored if is_same and stored is not None and not row.refused_ms else row
            if not number % _AT_ONCE:
                await asyncio.sleep(0)
        return parts

    def _silent_now(self) -> Iterator[tuple[int, str, SilenceRow]]:
        now = self._clock.now()
        of_revisions, of_agents = self._tracker.deadlines, self._tracker.agents
        revisions, agents = of_revisions.silent_keys(now), of_agents.silent_keys(now)
        for key in revisions:
            yield from self._row(of_revisions, key, key)
        for instance_id in agents:
            yield from self._row(of_agents, instance_id, RevisionKey(instance_id, AGENT))

    def _row(self, queues: Queues[K], key: K, of: RevisionKey) -> Iterator[tuple[int, str, SilenceRow]]:
        """Yield a silence's record, unless a report came meanwhile, or planned work began there."""
        deadlines = queues.of(key)
        silence, entry = deadlines.silence(key, self._clock.now()), self._cache.get(of.instance_id)
        if silence is None or entry is None or self._orders.suspension(entry.traits.node):
            return
        if silence.silent_s + silence.refused_s > deadlines.times.grace_s:
            heard_ms = _ms(self._now_s() - silence.silent_s)
            yield entry.traits.uid, of.revision_id, SilenceRow(heard_ms, _ms(silence.refused_s))

    def _is_dirty(self, name: str, part: _Part) -> bool:
        record = self._records.get(name)
        if record is None or record.epoch != self._epoch.current:
            return bool(part)
        return part != self._rows[name] or (bool(part) and record.at < self._marked_at())

    def _record(self, rows: list[tuple[int, str, SilenceRow]], at: int) -> storage_pb2.SilenceRecord:
        names = {AGENT: 0}
        for _, of, _ in rows:
            names.setdefault(of, len(names))
        return storage_pb2.SilenceRecord(
            epoch=self._epoch.current,
            at=at,
            revision=list(names)[1:],
            uid=[uid for uid, _, _ in rows],
            of=[names[of] for _, of, _ in rows],
            heard_ms=[row.heard_ms for _, _, row in rows],
            refused_ms=[row.refused_ms for _, _, row in rows],
        )


def _has_use(clock: storage_pb2.PresenceRecord) -> bool:
    return bool(clock.is_holding or clock.hold_renewed_in_ms or clock.door_used_ms)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
