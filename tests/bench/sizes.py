"""What a registry's size costs: cold start, memory, and lookups while everybody heartbeats."""

from __future__ import annotations

import asyncio
import time

from hqpb.v1 import service_pb2
from tests.bench import growth, load
from tests.bench.bench import Bench
from tests.bench.heartbeats import by_fifty
from tests.bench.load import Shape
from tests.bench.stand import Stand, stand
from tests.bench.usage import cpu_s, memory_bytes
from tests.support.replicas import ReplicaProcess

GROUP = "sizes"
_READY_S = 300.0
_HEARTBEATS_PER_S = 5_600


async def run(bench: Bench) -> None:
    """The group `sizes`: 10,000, 100,000 and 1,000,000 instances (quick: up to 10,000)."""
    base = await _empty_memory(bench)
    bench.fact(GROUP, "memory of a replica without instances", [base / 1e6], "MB")
    for size in (2_000, 10_000) if bench.quick else (10_000, 100_000, 1_000_000):
        async with stand((bench.kept or bench.directory) / f"{GROUP}-{size}", size, replicas=0) as made:
            await _cold_start(bench, made, size, base)
            if size >= 10_000:
                await _lookups_under_heartbeats(bench, made, size)
            await growth.costs(bench, made, GROUP, size)
            if size == 10_000:
                await growth.batches(bench, made, GROUP)
            # Before anybody is silent for over three minutes: few of these report, and silence is carried along.
            await _start_again(bench, made, size)
            await _at_rest(bench, made, size)


async def _empty_memory(bench: Bench) -> int:
    async with stand(bench.directory / f"{GROUP}-0", 1) as made:
        return memory_bytes(made.replicas[0].pid)


async def _cold_start(bench: Bench, made: Stand, size: int, base: int) -> None:
    (made.directory / "checkpoint").unlink(missing_ok=True)  # of a run before, over the same etcd
    began = time.monotonic()
    replica = await _started(made)
    took_s = time.monotonic() - began
    await asyncio.sleep(3)  # what the start has left behind is given back
    each = (memory_bytes(replica.pid) - base - made.filled_bytes) / size
    bench.fact(GROUP, f"ready to serve, {size:,}", [took_s], "s", size=size)
    bench.fact(GROUP, f"processor time until then, {size:,}", [cpu_s([replica.pid])], "s", size=size)
    bench.fact(GROUP, f"encoded bytes each, {size:,}", [made.filled_bytes / size], "B", size=size)
    bench.fact(GROUP, f"memory each beyond these, {size:,}", [each], "B", size=size)
    bench.fact(GROUP, f"etcd on disk each, {size:,}", [await _db_bytes(made) / size], "B", size=size)


async def _at_rest(bench: Bench, made: Stand, size: int) -> None:
    """What goes on while nobody asks: memory is compared with the store, as counts and slice by slice."""
    seconds = 10.0 if bench.quick else 120.0  # two counts, and slices for a minute each
    pids = {"a replica": made.replicas[0].pid, "etcd": made.etcd.process.pid}
    before = {name: cpu_s([pid]) for name, pid in pids.items()}
    await asyncio.sleep(seconds)
    for name, pid in pids.items():
        share = 100 * (cpu_s([pid]) - before[name]) / seconds
        bench.fact(GROUP, f"at rest, {name}, {size:,}", [share], "% of a core", size=size)


async def _start_again(bench: Bench, made: Stand, size: int) -> None:
    """The stop that writes a checkpoint, and the start that reads it."""
    began = time.monotonic()
    await made.replicas.pop(0).terminate(_READY_S)
    bench.fact(GROUP, f"orderly stop, {size:,}", [time.monotonic() - began], "s", size=size)
    began = time.monotonic()
    replica = await _started(made)
    took_s = time.monotonic() - began
    assert "read a checkpoint" in replica.log_text(), replica.log_text()
    bench.fact(GROUP, f"serves again after an orderly stop, {size:,}", [took_s], "s", size=size)
    bench.fact(GROUP, f"processor time until it serves again, {size:,}", [cpu_s([replica.pid])], "s", size=size)
    await asyncio.sleep(3)
    bench.fact(
        GROUP, f"memory of a replica that started so, {size:,}", [memory_bytes(replica.pid) / 1e6], "MB", size=size
    )


async def _started(made: Stand) -> ReplicaProcess:
    """The replica, when it serves reads; a million take longer than a test would wait."""
    replica = await made.replica("--state-dir", str(made.directory), until_ready=False)
    async with asyncio.timeout(_READY_S):
        while (await replica.get("/readyz"))[0] != 200:
            await asyncio.sleep(0.05)
    return replica


async def _db_bytes(made: Stand) -> int:
    from store.etcd import EtcdConfig, EtcdStore

    store = EtcdStore(EtcdConfig((made.etcd.endpoint,)))
    (member,) = await store.members()
    await store.close()
    return member.db_in_use_bytes


async def _lookups_under_heartbeats(bench: Bench, made: Stand, size: int) -> None:
    """Lookups of a hundred at a steady pace, while all agents of a million instances heartbeat by fifty."""
    seconds = 3.0 if bench.quick else 15.0
    lookup = service_pb2.FindInstancesRequest(filter={"service_id": ["lookup-100"]}).SerializeToString()
    heartbeats = by_fifty(made.population, 8)
    paced = Shape(1, 16, _HEARTBEATS_PER_S / 50 / len(heartbeats))
    reporting = asyncio.create_task(load.grpc(made.hq("ReportStatuses"), heartbeats, seconds + 2, paced))
    await asyncio.sleep(1)
    sample = await load.grpc(made.hq("FindInstances"), [lookup], seconds, Shape(4, 16, 400.0))
    beaten = await reporting
    name = f"under {_HEARTBEATS_PER_S:,} heartbeats/s at {size:,}"
    bench.fact(GROUP, f"lookups {name}: p50", [sample.p50_ms], "ms", size=size)
    bench.fact(GROUP, f"lookups {name}: p99", [sample.p99_ms], "ms", size=size)
    bench.fact(GROUP, f"lookups {name}: slowest", [sample.max_ms], "ms", size=size)
    bench.fact(GROUP, f"lookups {name}: rate", [sample.rate], "/s", size=size)
    bench.fact(GROUP, f"heartbeats, {name}", [beaten.rate * 50], "heartbeats/s", size=size)
