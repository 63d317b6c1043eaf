"""Bad days with real processes, at 1/100 and 1/10 of a million instances: what the drills of `hq plan` are held to."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence

from tests.bench import mixed
from tests.bench.bench import Bench
from tests.bench.hostagents import node_processes, raise_open_files, read_lines, write_reports
from tests.bench.stand import Stand, stand
from tests.bench.usage import cpu_s
from tests.support.replicas import ReplicaProcess

GROUP = "drills"
PER_NODE = 20
CRASHING = 0.05
CYCLE_S = 47.0  # of a crash loop that has calmed down: two seconds up, 30 to 60 down
_WITHIN_S = 120.0
_POLL_S = 0.1  # a page of metrics takes the replica milliseconds: asked for all the time, it would be most of its work
_LIMITS = ("agents", "connections", "connections-per-peer", "streams", "streams-per-peer", "calls", "calls-per-peer")


async def run(bench: Bench) -> None:
    """The group `drills`: 10,000 instances and 100,000 (quick: 2,000)."""
    raise_open_files()
    for size in (2_000,) if bench.quick else (10_000, 100_000):
        flags = [word for limit in _LIMITS for word in (f"--max-{limit}", "20000")]
        async with stand((bench.kept or bench.directory) / f"{GROUP}-{size}", size, flags, replicas=2) as made:
            await _crash_loop(bench, made, size)
            await _replica_lost(bench, made, size)


async def _replica_lost(bench: Bench, made: Stand, size: int) -> None:
    """Half of the host agents lose their replica, and come to the other one."""
    file = made.directory / "reports"
    if not file.exists():
        await asyncio.to_thread(write_reports, made, file)
    nodes, (lost, left) = size // PER_NODE, made.replicas
    async with node_processes(f"{lost.grpc},{left.grpc}", file, "agents", nodes) as processes:
        await read_lines(processes, "synced", _WITHIN_S)
        before, spent_s = await _watchers(left), cpu_s([left.pid])
        await lost.kill()
        began = time.monotonic()
        async with asyncio.timeout(_WITHIN_S):
            while (count := await _watchers(left)) < nodes:
                await asyncio.sleep(_POLL_S)
        took_s, spent_s = time.monotonic() - began, cpu_s([left.pid]) - spent_s
    name = f"a replica is lost, {size:,} instances"
    bench.fact(GROUP, f"{name}: host agents that came back", [count - before], "", size=size)
    bench.fact(GROUP, f"{name}: all back after", [took_s], "s", size=size)
    bench.fact(GROUP, f"{name}: the other one's processor", [spent_s], "s", size=size)


async def _watchers(replica: ReplicaProcess) -> int:
    found = re.search(r"^hq_watchers (\d+)", (await replica.get("/metrics"))[1], re.MULTILINE)
    return int(found[1]) if found else 0


async def _crash_loop(bench: Bench, made: Stand, size: int) -> None:
    """5 % of the instances report, as often as a crash loop that has calmed down, at one replica."""
    seconds, rate = (3.0 if bench.quick else 10.0), size * CRASHING * 2 / CYCLE_S
    agents = max(1, min(64, round(rate / 4)))
    before, began = _spent_s(made.replicas), time.monotonic()
    await mixed.send_changes(made, seconds, agents, rate / agents)
    took_s = time.monotonic() - began
    shares = [(after - was) / took_s for after, was in zip(_spent_s(made.replicas), before, strict=True)]
    name = f"5 % in a crash loop, {size:,} instances"
    bench.fact(GROUP, f"{name}: status changes", [rate * seconds / took_s], "/s", size=size)
    for which, share in zip(("at the replica that is sent them", "at the other one"), shares, strict=True):
        bench.fact(GROUP, f"{name}: processor {which}", [100 * share], "% of a core", size=size)


def _spent_s(replicas: Sequence[ReplicaProcess]) -> list[float]:
    return [cpu_s([replica.pid]) for replica in replicas]
