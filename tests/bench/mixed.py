"""What the scale model needs beside the other cases, and a mixed load that it is checked against, not fitted to."""

from __future__ import annotations

import asyncio
import time
from itertools import islice

from hqpb.v1 import service_pb2
from tests.bench import load
from tests.bench.bench import Bench
from tests.bench.heartbeats import Watched, by_fifty
from tests.bench.load import Shape
from tests.bench.population import change_of
from tests.bench.stand import Stand, stand
from tests.bench.ticking import sequence
from tests.bench.usage import cpu_s

GROUP = "mixed"
LOOKUPS_PER_S, HEARTBEATS_PER_S, CHANGES_PER_S = 300, 2_000, 20


async def run(bench: Bench) -> None:
    """The group `mixed`."""
    seconds = 3.0 if bench.quick else 8.0
    async with stand(bench.directory / GROUP, 23_000, replicas=2) as made:
        await asyncio.sleep(3)
        idle = await _cores(made, 1, asyncio.sleep(seconds))
        bench.fact(GROUP, "idle replica", [100 * idle], "% of a core")
        await _following(bench, made, seconds, idle)
        alone = await _cores(made, 0, _lookups(made, seconds))
        bench.fact(GROUP, f"{LOOKUPS_PER_S} lookups/s alone: replica's processor", [100 * alone], "% of a core")
        await _measure_mixed(bench, made, seconds)


async def _following(bench: Bench, made: Stand, seconds: float, idle: float) -> None:
    """What a heartbeat and a change cost a replica that others sent them to."""
    heartbeats = by_fifty(made.population, 4)
    paced = Shape(1, 32, HEARTBEATS_PER_S / 50 / 4)
    other = await _cores(made, 1, load.grpc(made.hq("ReportStatuses"), heartbeats, seconds, paced))
    bench.fact(GROUP, "CPU per heartbeat at another replica", [(other - idle) / HEARTBEATS_PER_S * 1e6], "µs")
    async with Watched(made) as watched:
        other = await _cores(made, 1, send_changes(made, seconds, 64))
    rate = watched.changes["status"] / seconds
    bench.fact(GROUP, "CPU per change at another replica", [(other - idle) / max(1.0, rate) * 1e6], "µs")


async def _lookups(made: Stand, seconds: float) -> None:
    """Few enough that each finds the replica idle."""
    lookup = service_pb2.FindInstancesRequest(filter={"service_id": ["lookup-100"]}).SerializeToString()
    await load.grpc(made.hq("FindInstances"), [lookup], seconds, Shape(4, 8, LOOKUPS_PER_S))


async def _measure_mixed(bench: Bench, made: Stand, seconds: float) -> None:
    heartbeats = by_fifty(made.population, 4)
    async with Watched(made) as watched:
        everything = asyncio.gather(
            _lookups(made, seconds),
            load.grpc(made.hq("ReportStatuses"), heartbeats, seconds, Shape(1, 32, HEARTBEATS_PER_S / 50 / 4)),
            send_changes(made, seconds, 4, CHANGES_PER_S / 4),
        )
        cores = await _cores(made, 0, everything)
    bench.fact(GROUP, "mixed load: lookups", [LOOKUPS_PER_S], "/s")
    bench.fact(GROUP, "mixed load: heartbeats", [watched.heartbeats / seconds], "/s")
    bench.fact(GROUP, "mixed load: status changes", [watched.changes["status"] / seconds], "/s")
    bench.fact(GROUP, "mixed load: replica's processor", [100 * cores], "% of a core")
    bench.fact(GROUP, "mixed load: etcd transactions", [watched.revisions / seconds], "/s")
    bench.fact(GROUP, "mixed load: etcd value and key bytes", [sum(watched.size.values()) / seconds], "B/s")


async def send_changes(made: Stand, seconds: float, agents: int, rate: float = 0.0) -> None:
    stored = islice(made.population, 1_000, 1_000 + agents)  # others than those whose heartbeats go on meanwhile
    first = sequence()
    reports = [change_of(s, first).SerializeToString() for s in stored]
    await load.grpc(made.hq("ReportStatus"), reports, seconds, Shape(1, 1, rate), first)


async def _cores(made: Stand, replica: int, work) -> float:  # type: ignore[no-untyped-def]
    """How much of a core a replica uses while the work goes on."""
    pids = [made.replicas[replica].pid]
    before, began = cpu_s(pids), time.monotonic()
    await work
    return (cpu_s(pids) - before) / (time.monotonic() - began)
