"""Heartbeats: one by one and by fifty, against an empty handler, a put per heartbeat and a kept lease per instance."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from aetcd import rpc

from hq.keys import HqKeys
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import service_pb2
from store.etcd import EtcdConfig, EtcdStore
from tests.bench import load, raw
from tests.bench.bench import Bench, Side
from tests.bench.load import Shape
from tests.bench.population import Population, report_of
from tests.bench.stand import PREFIX, Stand, stand

GROUP = "heartbeats"
_REPORTERS = 10  # processes of h2load, each reporting for one instance; together 1,000 calls in flight
_SETTLED_S = 1.5  # the pace of batches counts the heartbeats of a second


def single(population: Population, count: int) -> list[bytes]:
    """ReportStatus for each of the first instances."""
    return [report_of(s).SerializeToString() for s, _ in zip(population, range(count), strict=False)]


def by_fifty(population: Population, count: int) -> list[bytes]:
    """ReportStatuses, fifty instances in each."""
    stored = [s for s, _ in zip(population, range(count * 50), strict=False)]
    groups = [stored[i : i + 50] for i in range(0, len(stored), 50)]
    return [service_pb2.ReportStatusesRequest(report=map(report_of, g)).SerializeToString() for g in groups]


async def run(bench: Bench) -> None:
    """The group `heartbeats`."""
    async with stand(bench.directory / GROUP, 23_000) as made:
        one, fifty = single(made.population, _REPORTERS), by_fifty(made.population, 8)
        await check_heartbeats(made, one[0], fifty[0])
        answers = {"one": await made.ask("ReportStatus", one[0]), "fifty": await made.ask("ReportStatuses", fifty[0])}
        empty = await made.empty(answers)
        await _one_by_one(bench, made, empty.target("one"), one)
        if not bench.quick:
            await _more_at_once(bench, made, empty.target("one"))
        sides: dict[str, Side] = {
            "hq": partial(load.grpc, made.hq("ReportStatus"), one[:8], shape=Shape(1, 8)),
            "empty": partial(load.grpc, empty.target("one"), one[:8], shape=Shape(1, 8)),
        }
        await bench.compare(GROUP, "Heartbeats one by one, 64 callers, gRPC", sides, note="64 calls in flight")
        sides = {
            "hq": partial(load.grpc, made.hq("ReportStatuses"), fifty, shape=Shape(1, 64)),
            "empty": partial(load.grpc, empty.target("fifty"), fifty, shape=Shape(1, 64)),
        }
        await bench.compare(GROUP, "Heartbeats by 50, gRPC", sides, per_answer=50, note="512 calls in flight")
        await _cost_in_etcd(bench, made, one)


async def _one_by_one(bench: Bench, made: Stand, empty: load.Target, one: Sequence[bytes]) -> None:
    shape = Shape(1, 100)
    puts = [
        rpc.PutRequest(key=f"/raw/heartbeat-{i}".encode(), value=b"x" * 13).SerializeToString()
        for i in range(_REPORTERS)
    ]
    leases = [await _lease(made) for _ in range(_REPORTERS)]
    keeps = [rpc.LeaseKeepAliveRequest(ID=lease).SerializeToString() for lease in leases]
    sides: dict[str, Side] = {
        "hq": partial(load.grpc, made.hq("ReportStatus"), one, shape=shape),
        "empty": partial(load.grpc, empty, one, shape=shape),
        "etcd put": partial(load.grpc, made.raw("KV/Put"), puts, shape=shape),
        "etcd lease": partial(load.grpc, made.raw("Lease/LeaseKeepAlive"), keeps, shape=shape),
    }
    await bench.compare(GROUP, "Heartbeats one by one, gRPC", sides, note="1,000 calls in flight")


async def _more_at_once(bench: Bench, made: Stand, empty: load.Target) -> None:
    """A call waits for the next batch, so their rate is bounded by how many wait, and not by what one costs."""
    twice = single(made.population, 2 * _REPORTERS)
    sides: dict[str, Side] = {
        "hq": partial(load.grpc, made.hq("ReportStatus"), twice, shape=Shape(1, 100)),
        "empty": partial(load.grpc, empty, twice, shape=Shape(1, 100)),
    }
    await bench.compare(GROUP, "Heartbeats one by one, twice as many, gRPC", sides, note="2,000 calls in flight")


async def check_heartbeats(made: Stand, one: bytes, fifty: bytes) -> None:
    """These requests are heartbeats: no status is written. Raises AssertionError."""
    store = EtcdStore(EtcdConfig((made.etcd.endpoint,)))
    status = HqKeys(PREFIX).of("status", "")
    before = await store.newest(status, status + b"\xff")
    await made.ask("ReportStatus", one)
    answer = service_pb2.ReportStatusesResponse.FromString(await made.ask("ReportStatuses", fifty))
    after = await store.newest(status, status + b"\xff")
    await store.close()
    if after[:2] != before[:2] or any(result.HasField("error") for result in answer.result):
        raise AssertionError(f"these are no heartbeats: {answer}")


async def _lease(made: Stand) -> int:
    request = rpc.LeaseGrantRequest(TTL=600).SerializeToString()
    answer = await raw.ask(made.etcd.endpoint, "/etcdserverpb.Lease/LeaseGrant", request)
    return int(rpc.LeaseGrantResponse.FromString(answer).ID)


async def _cost_in_etcd(bench: Bench, made: Stand, one: Sequence[bytes]) -> None:
    """Bytes and transactions for heartbeats at about 1,000 heartbeats/s, and at all that comes."""
    seconds = 3.0 if bench.quick else 12.0
    for name, shape in (("at 1,000 heartbeats/s", Shape(1, 100, 100.0)), ("at full load", Shape(1, 100))):
        async with Watched(made) as watched:
            sample = await load.grpc(made.hq("ReportStatus"), one, seconds, shape)
        heartbeats = watched.heartbeats
        bench.fact(
            GROUP, f"etcd value and key bytes per heartbeat, {name}", [watched.size["beats"] / max(1, heartbeats)], "B"
        )
        bench.fact(GROUP, f"etcd transactions for heartbeats, {name}", [watched.per_second("beats")], "/s")
        bench.fact(GROUP, f"rate, {name}", [sample.rate], "heartbeats/s")


class Watched:
    """Counts what goes into etcd meanwhile, by kind of key: transactions, changes, and bytes of keys and values."""

    def __init__(self, made: Stand) -> None:
        self._store = EtcdStore(EtcdConfig((made.etcd.endpoint,)))
        self._keys = HqKeys(PREFIX)
        self.transactions: Counter[str] = Counter()
        self.size: Counter[str] = Counter()
        self.changes: Counter[str] = Counter()
        self.heartbeats = self.revisions = 0
        self._times: dict[str, list[float]] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Watched:
        _, head = await self._store.get(b"\0")
        self._task = asyncio.create_task(self._follow(head))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        await asyncio.sleep(0.5)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._store.close()

    def per_second(self, kind: str) -> float:
        """Transactions that held such keys: the line through their times, so that one that came late does not count.

        The first ones are left out: connections are still being made, and a replica learns how busy it is.
        """
        every = self._times.get(kind, [])
        times = [time for time in every if time - every[0] >= _SETTLED_S]
        return 1 / statistics.linear_regression(range(len(times)), times).slope if len(times) > 1 else 0.0

    async def _follow(self, head: int) -> None:
        async with self._store.watch(self._keys.prefix, self._keys.end, after=head) as stream:
            async for batch in stream:
                seen = set()
                for key, value, _, revision in batch.changes:
                    kind = self._keys.name(key).kind
                    self.size[kind] += len(key) + len(value or b"")
                    self.changes[kind] += 1
                    seen.add((kind, revision))
                    if kind == "beats":
                        self.heartbeats += len(storage_pb2.BeatBatch.FromString(value or b"").uid)
                self.transactions.update(kind for kind, _ in seen)
                self.revisions += len({revision for _, revision in seen})
                for kind, _ in seen:
                    self._times.setdefault(kind, []).append(time.monotonic())
