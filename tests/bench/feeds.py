"""How long one commit holds the event loop among many watches: the index of feeds alone, in this process.

The watches are of one instance, one node or one service each, all different. What is timed is from the commit's events
to the last watcher's queue; to write a message to each of the few that it concerns comes on top: that is in `watch`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator

from hq.keys import Keys
from hq.memory.cache import Cache
from hq.memory.fanout import Fanout
from hq.memory.history import Step, WatchedEvent
from hq.memory.query import Query
from hqpb.v1 import service_pb2
from store.port import Batch, Change
from tests.bench.bench import Bench
from tests.bench.population import Population, Stored

GROUP = "feeds"
SIZES = (4_000, 20_000, 100_000)
_CHANGES, _PER_NODE, _PER_SERVICE = 100, 20, 100
_CLUSTER = "feeds"

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


def _concerned(field: str) -> int:
    """A commit changes an instance on each of a hundred nodes."""
    return _CHANGES * _PER_NODE // _PER_SERVICE if field == "service" else _CHANGES


def _made(commits: Iterator[Step], rounds: int) -> Iterator[float]:
    for _ in range(rounds):
        began = time.perf_counter()
        next(commits)
        yield (time.perf_counter() - began) * 1000


def _commits() -> Iterator[Step]:
    """One commit after the other to the same instances."""
    keys = Keys()
    cache = Cache(keys)
    changing = [*itertools.islice(Population(_CHANGES * _PER_NODE, _CLUSTER), 0, None, _PER_NODE)]
    created = {stored.id: number for number, stored in enumerate(changing, 1)}
    for version in itertools.count(len(changing) + 1):
        changes = [Change(keys.spec(s.id), _spec(s, version), created[s.id], version) for s in changing]
        events = cache.apply(Batch(version, changes))
        yield Step(version, [WatchedEvent(event) for event in events])


def _spec(stored: Stored, version: int) -> bytes:
    """The record, written anew: of fields that come twice the later one holds."""
    return stored.spec + b"\x08" + bytes([version % 128])
