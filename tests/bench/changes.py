"""Writes: status changes by many agents at once, uploads, and what they cost in etcd."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from functools import partial

from aetcd import rpc

from hqpb.v1 import instance_pb2, service_pb2
from tests.bench import load, raw
from tests.bench.bench import Bench, Side
from tests.bench.heartbeats import Watched
from tests.bench.load import Shape
from tests.bench.population import Stored, change_of
from tests.bench.stand import SERVICE, Stand, stand
from tests.bench.ticking import sequence

GROUP = "changes"
AGENTS = 64
_UPLOAD = 20  # instances in one ApplyInstances


async def run(bench: Bench) -> None:
    """The group `changes`."""
    async with stand(bench.directory / GROUP, 23_000) as made:
        await _status_changes(bench, made)
        await _uploads(bench, made)
        bench.fact(GROUP, "etcd revisions for 64 concurrent updates", await _bursts(made, 3 if bench.quick else 10), "")


async def _status_changes(bench: Bench, made: Stand) -> None:
    stored = [s for s, _ in zip(made.population, range(AGENTS), strict=False)]
    first = sequence()
    reports = [change_of(s, first).SerializeToString() for s in stored]
    empty = await made.empty({"report": await made.ask("ReportStatus", reports[0])})
    puts = [rpc.PutRequest(key=f"/raw/{s.id}".encode(), value=s.status).SerializeToString() for s in stored]
    one = Shape(1, 1)
    sides: dict[str, Side] = {
        "hq": partial(load.grpc, made.hq("ReportStatus"), reports, shape=one, first=first),
        "empty": partial(load.grpc, empty.target("report"), reports, shape=one, first=first),
        "etcd put": partial(load.grpc, made.raw("KV/Put"), puts, shape=one),
    }
    await bench.compare(GROUP, "Status changes, 64 agents, gRPC", sides)
    async with Watched(made) as watched:
        sample = await load.grpc(made.hq("ReportStatus"), reports, max(2.0, bench.seconds), one, first)
    changes = sample.rate * max(2.0, bench.seconds)
    told = {kind: watched.size[kind] / changes for kind in ("status", "commits")}
    bench.fact(GROUP, "etcd value and key bytes per status change", [sum(told.values())], "B")
    bench.fact(GROUP, "status changes per etcd transaction", [changes / max(1, watched.transactions["commits"])], "")


async def _uploads(bench: Bench, made: Stand) -> None:
    stored = [s for s, _ in zip(made.population, range(40 * _UPLOAD), strict=False)]
    groups = [stored[i : i + _UPLOAD] for i in range(0, len(stored), _UPLOAD)]
    numbers = itertools.count()

    def bodies() -> list[bytes]:
        """Two rounds of uploads, each of which changes what was there, whatever that was."""
        return [upload(group, next(numbers)) for _ in range(2) for group in groups]

    empty = await made.empty({"apply": await made.ask("ApplyInstances", bodies()[0])})
    puts = [rpc.RequestOp(request_put=rpc.PutRequest(key=f"/raw/{s.id}".encode(), value=s.spec)) for s in groups[0]]
    txn = rpc.TxnRequest(success=puts).SerializeToString()
    http = partial(load.http, content_type="application/proto", connections=4)
    sides: dict[str, Side] = {
        "hq": lambda seconds: http(made.hq("ApplyInstances", http=True), bodies(), seconds=seconds),
        "empty": lambda seconds: http(empty.target("apply", http=True), bodies(), seconds=seconds),
        "etcd txn": partial(load.grpc, made.raw("KV/Txn"), [txn], shape=Shape(4, 1)),
    }
    await bench.compare(GROUP, "Uploads of 20 instances, HTTP proto", sides, per_answer=_UPLOAD)


def upload(group: Sequence[Stored], number: int) -> bytes:
    """ApplyInstances of these, with a revision by this number."""
    request = service_pb2.ApplyInstancesRequest()
    for s in group:
        uploaded = request.instance.add()
        uploaded.meta.id, uploaded.meta.service_id = s.id, s.service
        uploaded.spec.revision.add(id=f"r-{number}", target=instance_pb2.REVISION_TARGET_READY)
    return request.SerializeToString()


async def _bursts(made: Stand, times: int) -> list[float]:
    """How far 64 updates that arrive together raise etcd's revision."""
    stored = [s for s, _ in zip(made.population, range(AGENTS), strict=False)]
    raised: list[float] = []
    async with raw.channel(made.replicas[0].grpc) as channel:
        update = raw.unary(channel, f"{SERVICE}/UpdateInstance")
        for turn in range(times):
            requests = []
            for s in stored:
                instance = instance_pb2.Instance()
                instance.meta.id, instance.meta.annotations["burst"] = s.id, str(turn)
                mask = {"paths": ["meta.annotations"]}
                requests.append(service_pb2.UpdateInstanceRequest(instance=instance, update_mask=mask))
            async with Watched(made) as watched:
                await asyncio.gather(*(update(request.SerializeToString()) for request in requests))
            raised.append(watched.transactions["spec"])
    return raised
