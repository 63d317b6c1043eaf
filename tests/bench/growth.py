"""How the cost of what is written grows: with the number of instances, and with how many come in one call."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from hqpb.v1 import service_pb2
from tests.bench import load
from tests.bench.bench import Bench
from tests.bench.changes import upload
from tests.bench.load import Shape
from tests.bench.population import Stored, change_of, report_of
from tests.bench.stand import Stand
from tests.bench.ticking import sequence

_AGENTS = 32
_BATCHES = (1, 10, 100)
_GROUPS = 8
_NUMBERS = itertools.count(1_000_000)  # so that no upload repeats an earlier one


async def costs(bench: Bench, made: Stand, group: str, size: int) -> None:
    """Processor time of the replica for a heartbeat, a status change and an upload among so many instances."""
    reporting, uploading, changing = _apart(made)
    among = f"among {size:,} instances"
    heartbeat = await _heartbeats(bench, made, reporting, 50)
    bench.fact(group, f"CPU per heartbeat {among}", [heartbeat / 50], "µs", size=size)
    change = await _changes(bench, made, changing)
    bench.fact(group, f"CPU per status change {among}", [change], "µs", size=size)
    uploaded = await _uploads(bench, made, uploading, 20)
    bench.fact(group, f"CPU per uploaded instance {among}", [uploaded / 20], "µs", size=size)


async def batches(bench: Bench, made: Stand, group: str) -> None:
    """The same by call, with more and more in each."""
    reporting, uploading, _ = _apart(made)
    for count in _BATCHES:
        heartbeats = await _heartbeats(bench, made, reporting, count)
        bench.fact(group, f"CPU per call of {count:,} heartbeats", [heartbeats], "µs", size=count)
        uploads = await _uploads(bench, made, uploading, count)
        bench.fact(group, f"CPU per upload of {count:,} instances", [uploads], "µs", size=count)


def _apart(made: Stand) -> tuple[Sequence[Stored], Sequence[Stored], Sequence[Stored]]:
    """Instances whose reports repeat, others to upload, and others whose reports are news.

    Apart, since an upload takes away the revision that reports are of, and news make older reports void.
    """
    count = _GROUPS * max(_BATCHES)
    few = list(itertools.islice(made.population, 2 * count + _AGENTS))
    return few[:count], few[count : 2 * count], few[2 * count :]


async def _heartbeats(bench: Bench, made: Stand, few: Sequence[Stored], count: int) -> float:
    groups = itertools.islice(_grouped(few, count), _GROUPS)
    calls = [service_pb2.ReportStatusesRequest(report=map(report_of, g)).SerializeToString() for g in groups]
    sample = await load.grpc(made.hq("ReportStatuses"), calls, max(1.0, bench.seconds), Shape(1, 32))
    return sample.cpu_us


async def _changes(bench: Bench, made: Stand, few: Sequence[Stored]) -> float:
    first = sequence()
    reports = [change_of(s, first).SerializeToString() for s in few]
    sample = await load.grpc(made.hq("ReportStatus"), reports, max(1.0, bench.seconds), Shape(1, 1), first)
    return sample.cpu_us


async def _uploads(bench: Bench, made: Stand, few: Sequence[Stored], count: int) -> float:
    bodies = [upload(g, next(_NUMBERS)) for _ in range(4) for g in itertools.islice(_grouped(few, count), _GROUPS)]
    target = made.hq("ApplyInstances", http=True)
    sample = await load.http(target, bodies, "application/proto", max(1.0, bench.seconds), connections=4)
    return sample.cpu_us


def _grouped(few: Sequence[Stored], count: int) -> Iterator[Sequence[Stored]]:
    return (few[i : i + count] for i in range(0, len(few), count))
