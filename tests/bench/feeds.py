"""What many watches cost: the index of feeds alone, in this process, and 50,000 real ones at one replica.

The watches are of one instance, one node or one service each, all different. What is timed is from the commit's events
to the last watcher's queue; to write a message to each of the few that it concerns comes on top.

Real ones are of one instance each, many on one connection (`crowd.py`): `FEEDS=50000x50` says how many, and how many
of them on a connection.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from hq.keys import HqKeys
from hq.memory.cache import Cache
from hq.memory.fanout import Fanout
from hq.memory.history import VersionEvents, WatchedEvent
from hq.memory.query import Query
from hqpb.v1 import instance_pb2, service_pb2
from store.port import Batch, KeyChange
from tests.bench import raw
from tests.bench.bench import Bench
from tests.bench.machine import ROOT
from tests.bench.population import Population, Stored
from tests.bench.stand import SERVICE, Stand, stand
from tests.bench.stats import percentile
from tests.bench.usage import cpu_s, memory_bytes
from tests.bench.watchers import stamp
from tests.support.replicas import ReplicaProcess

GROUP = "feeds"
SIZES = (4_000, 20_000, 100_000)
_CHANGES, _PER_NODE, _PER_SERVICE = 100, 20, 100
_CLUSTER = "feeds"
_BOOKMARKS_S = (60, 5)  # the cheap one first
_QUIET_S, _ROUNDS, _PAUSE_S = 60.0, 40, 0.25  # quiet: as long as the longest time between bookmarks
_SYNC_S = 300.0

NAMED: dict[str, Callable[[int], service_pb2.InstanceFilter]] = {
    "instance id": lambda n: service_pb2.InstanceFilter(
        instance_id=[f"filler-{n // _PER_SERVICE:05d}.{n % _PER_SERVICE:03d}.{_CLUSTER}"]
    ),
    "node": lambda n: service_pb2.InstanceFilter(node_name=[f"node-{n:06d}.dc1"]),
    "service": lambda n: service_pb2.InstanceFilter(service_id=[f"filler-{n:05d}"]),
}


def name_of(field: str, size: int) -> str:
    """The fact that says it."""
    return f"commit of {_CHANGES} changes, {size:,} watches by {field}: loop held"


async def run(bench: Bench) -> None:
    """The group `feeds`: watches by instance id, node and service, at three sizes; and the same commit without any."""
    commits = _commits()
    rounds = 10 if bench.quick else 50
    note = "from the commit's events to the watchers' queues"
    bench.fact(GROUP, f"commit of {_CHANGES} changes into memory", list(_made(commits, rounds)), "ms")
    for field, size in itertools.product(NAMED, SIZES[:1] if bench.quick else SIZES):
        fanout = Fanout(1 << 30)
        watchers = [fanout.subscribe(Query(NAMED[field](number))) for number in range(size)]
        held_ms = []
        for step in itertools.islice(commits, rounds):
            began = time.perf_counter()
            fanout.publish(step)
            held_ms.append((time.perf_counter() - began) * 1000)
            concerned = sum(1 for watcher in watchers if watcher.take(1 << 30))
            assert concerned == _concerned(field), f"{concerned} watches by {field} heard of a commit"
            await asyncio.sleep(0)
        bench.fact(GROUP, name_of(field, size), held_ms, "ms", size=size, note=note)
    await _real(bench)


def _concerned(field: str) -> int:
    """A commit changes an instance on each of a hundred nodes."""
    return _CHANGES * _PER_NODE // _PER_SERVICE if field == "service" else _CHANGES


def _made(commits: Iterator[VersionEvents], rounds: int) -> Iterator[float]:
    for _ in range(rounds):
        began = time.perf_counter()
        next(commits)
        yield (time.perf_counter() - began) * 1000


def _commits() -> Iterator[VersionEvents]:
    """One commit after the other to the same instances."""
    keys = HqKeys()
    cache = Cache(keys)
    changing = [*itertools.islice(Population(_CHANGES * _PER_NODE, _CLUSTER), 0, None, _PER_NODE)]
    created = {stored.id: number for number, stored in enumerate(changing, 1)}
    for version in itertools.count(len(changing) + 1):
        changes = [KeyChange(keys.spec(s.id), _spec(s, version), created[s.id], version) for s in changing]
        events = cache.apply(Batch(version, changes))
        yield VersionEvents(version, [WatchedEvent(event) for event in events])


def _spec(stored: Stored, version: int) -> bytes:
    """The record, written anew: of fields that come twice the later one holds."""
    return stored.spec + b"\x08" + bytes([version % 128])


async def _real(bench: Bench) -> None:
    """One population for all; a fresh replica for each time between bookmarks."""
    count, each = (int(word) for word in os.environ.get("FEEDS", "5000x50" if bench.quick else "50000x50").split("x"))
    async with stand((bench.kept or bench.directory) / f"{GROUP}-{count}", count, replicas=0) as made:
        ids = made.directory / "ids"
        ids.write_text("\n".join(stored.id for stored in made.population))
        for bookmark_s in _BOOKMARKS_S:
            most = {"connections": count // each + 100, "streams": count + 100}
            limits = [(f"--max-{what}{of}", str(n)) for what, n in most.items() for of in ("", "-per-peer")]
            replica = await made.replica(*itertools.chain.from_iterable(limits))
            await asyncio.sleep(2)
            before_bytes, before_s = memory_bytes(replica.pid), cpu_s([replica.pid])
            async with _crowd(replica, ids, count // each, bookmark_s) as crowd:
                name = f"{count:,} watches, {count // each:,} connections, bookmarks every {bookmark_s} s"
                opened = {
                    "memory for each": ((memory_bytes(replica.pid) - before_bytes) / count / 1024, "KiB"),
                    "CPU to open one": ((cpu_s([replica.pid]) - before_s) / count * 1e6, "µs"),
                }
                for what, (value, unit) in (opened | await _watched(made, replica, crowd)).items():
                    bench.fact(GROUP, f"{name}: {what}", [value], unit, size=count)
            await replica.kill()


async def _watched(
    made: Stand, replica: ReplicaProcess, crowd: asyncio.subprocess.Process
) -> dict[str, tuple[float, str]]:
    """Quiet for a while; then one change, and a hundred at once, again and again."""
    before_s = cpu_s([replica.pid])
    await asyncio.sleep(_QUIET_S)
    quiet = 100 * (cpu_s([replica.pid]) - before_s) / _QUIET_S
    found: dict[str, tuple[float, str]] = {"replica's processor, quiet": (quiet, "% of a core")}
    ids = [stored.id for stored in itertools.islice(made.population, 0, None, _PER_NODE)]
    async with raw.channel(replica.grpc) as channel:
        update = raw.unary(channel, f"{SERVICE}/UpdateInstance")
        for at_once in (1, _CHANGES):
            _line(crowd)
            for turn in range(_ROUNDS):
                changed = [ids[(turn * at_once + n) % len(ids)] for n in range(at_once)]
                await asyncio.gather(*(update(_change(instance_id)) for instance_id in changed))
                await asyncio.sleep(_PAUSE_S)
            await asyncio.sleep(1)
            _line(crowd)
            late_ms = json.loads(await _said(crowd))["late_ms"]
            what = "a change" if at_once == 1 else f"{at_once} changes at once"
            found[f"{what}, p50 delivery"] = percentile(late_ms, 0.5), "ms"
            found[f"{what}, p99 delivery"] = percentile(late_ms, 0.99), "ms"
            found[f"{what}, missing"] = _ROUNDS * at_once - len(late_ms), ""
    return found


def _change(instance_id: str) -> bytes:
    instance = instance_pb2.Instance()
    instance.meta.id, instance.meta.annotations["stamp"] = instance_id, stamp()
    request = service_pb2.UpdateInstanceRequest(instance=instance)
    request.update_mask.paths.append("meta.annotations")
    return request.SerializeToString()


@asynccontextmanager
async def _crowd(
    replica: ReplicaProcess, ids: Path, connections: int, bookmark_s: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.crowd", replica.grpc, str(ids), str(connections), str(bookmark_s)),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 22,
    )
    try:
        if await _said(process) != "synced\n":
            raise RuntimeError("the process of watches ended before all of them were open")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _line(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")


async def _said(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(_SYNC_S):
        return (await process.stdout.readline()).decode()
