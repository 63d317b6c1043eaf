"""What etcd's database does in an hour of load with compaction, and how soon failures of etcd are over.

The hour is compressed in time: the same records that a replica would write in an hour go in as fast as etcd takes them,
and every compaction comes where five minutes of records end. What the hour's length itself would do (nothing, in etcd)
is not shown.
"""

from __future__ import annotations

import asyncio
import random
import time

from hq.keys import HqKeys
from hqpb.storage.v1 import storage_pb2
from store.embedded import EmbeddedEtcd, find_etcd
from store.etcd import EtcdConfig, EtcdStore
from store.port import Store, Write
from tests.bench.bench import Bench
from tests.bench.filling import MAX_TXN_OPS, fill
from tests.bench.population import Population, Stored
from tests.bench.stand import PREFIX
from tests.bench.usage import written_bytes

GROUP = "storage"
_INSTANCES = 100_000
_HEARTBEATS_PER_S, _FLUSHES_PER_S = 560, 5  # 100,000 instances, one heartbeat in three minutes
_CHANGES_PER_S = 2
_COMPACT_S = 300


async def run(bench: Bench) -> None:
    """The group `storage`."""
    await _hour(bench)


async def _hour(bench: Bench) -> None:
    instances, minutes = (10_000, 20) if bench.quick else (_INSTANCES, 60)
    directory = bench.directory / GROUP
    etcd = EmbeddedEtcd(
        directory,
        binary=find_etcd(),
        quota_bytes=8 << 30,
        extra_flags=(f"--max-txn-ops={MAX_TXN_OPS}", "--max-request-bytes=16777216"),
    )
    await etcd.start()
    store = EtcdStore(EtcdConfig((etcd.endpoint,)))
    try:
        population = Population(instances)
        await fill(etcd.endpoint, population, PREFIX, with_raw=False)
        load = _Hour(store, list(population), instances / _INSTANCES)
        curve = await load.run(minutes, etcd.process.pid)
    finally:
        await store.close()
        await etcd.kill()
    bench.results.curves["etcd database, MB, by minute of load"] = curve
    name = f"{instances:,} instances, {load.heartbeats_per_s:.0f} heartbeats/s, {load.changes_per_s:g} changes/s"
    bench.fact(GROUP, f"etcd database before the hour, {name}", [curve[0][1]], "MB")
    bench.fact(GROUP, f"etcd database, largest within {minutes} minutes", [max(y for _, y in curve)], "MB")
    bench.fact(GROUP, f"etcd database after {minutes} minutes", [curve[-1][1]], "MB")
    bench.fact(GROUP, "etcd bytes on disk written per heartbeat (log and database)", [load.written_per_heartbeat], "B")
    bench.fact(GROUP, "compressed in time by", [minutes * 60 / load.took_s], "times")


class _Hour:
    """Writes what a replica writes, one transaction at a time."""

    def __init__(self, store: Store, stored: list[Stored], scale: float) -> None:
        self._store, self._stored, self._keys, self._rng = store, stored, HqKeys(PREFIX), random.Random(2)
        self.heartbeats_per_s, self.changes_per_s = _HEARTBEATS_PER_S * scale, _CHANGES_PER_S * scale
        self.took_s = self.written_per_heartbeat = 0.0

    async def run(self, minutes: int, etcd_pid: int) -> list[tuple[float, float]]:
        """Return (minute, megabytes of the database)."""
        began, curve, mark = time.monotonic(), [(0.0, await self._db_mb())], 0
        before, heartbeats = written_bytes(etcd_pid), 0.0
        for minute in range(1, minutes + 1):
            await asyncio.gather(*(self._flushes(60 * _FLUSHES_PER_S // 4) for _ in range(4)))
            heartbeats += 60 * self.heartbeats_per_s
            head = await self._changes(round(60 * self.changes_per_s))
            if minute * 60 % _COMPACT_S == 0:
                if mark:
                    await self._store.compact(mark)  # at the mark before: half of the history stays, as HQ keeps it
                mark = head
                await asyncio.sleep(0.3)  # etcd compacts in the background, in batches
            curve.append((float(minute), await self._db_mb()))
        self.took_s = time.monotonic() - began
        self.written_per_heartbeat = (written_bytes(etcd_pid) - before) / heartbeats
        return curve

    async def _flushes(self, count: int) -> None:
        for _ in range(count):
            heard = self._rng.choices(self._stored, k=max(1, round(self.heartbeats_per_s / _FLUSHES_PER_S)))
            batch = storage_pb2.BeatBatch(
                uid=[s.uid for s in heard],
                status_version=[self._rng.randrange(1 << 20) for _ in heard],
                position=[0] * len(heard),
                unix_ms=1_790_000_000_000,
                batch_id=self._rng.getrandbits(64),
            )
            await self._put(self._keys.of("beats", "replica-0"), batch.SerializeToString())

    async def _changes(self, count: int) -> int:
        head = 0
        for s in self._rng.choices(self._stored, k=count):
            head = await self._put(self._keys.status(s.id), s.status)
        return head

    async def _put(self, key: bytes, value: bytes) -> int:
        return (await self._store.commit((), (Write((), ((key, value),)),), 10.0)).revision

    async def _db_mb(self) -> float:
        (member,) = await self._store.members()
        return member.db_size_bytes / 1e6
