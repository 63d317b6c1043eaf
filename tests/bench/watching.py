"""Watch fan-out, and how soon a write at one replica is seen at another."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from hqpb.v1 import instance_pb2, service_pb2
from tests.bench import load, raw
from tests.bench.bench import Bench
from tests.bench.heartbeats import single
from tests.bench.load import Shape
from tests.bench.machine import ROOT
from tests.bench.stand import SERVICE, Stand, stand
from tests.bench.stats import percentile
from tests.bench.usage import cpu_s
from tests.bench.watchers import stamp

GROUP = "watch"
_PER_SECOND = 100
_SERVICE = "lookup-100"


async def run(bench: Bench) -> None:
    """The group `watch`: fan-out to 1, 100, 1,000 watchers of one service, and visibility across replicas."""
    async with stand(bench.directory / GROUP, 23_000, replicas=2) as made, _channels(made) as (first, second):
        for count in (1, 1_000) if bench.quick else (1, 100, 1_000):
            await _fan_out(bench, made, first, count)
        await _visibility(bench, made, first, second)


@asynccontextmanager
async def _channels(made: Stand) -> AsyncIterator[tuple[grpc.aio.Channel, grpc.aio.Channel]]:
    async with raw.channel(made.replicas[0].grpc) as first, raw.channel(made.replicas[1].grpc) as second:
        yield first, second


async def _fan_out(bench: Bench, made: Stand, channel: grpc.aio.Channel, count: int) -> None:
    seconds = 3.0 if bench.quick else 10.0
    pid = made.replicas[0].pid
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.watchers", made.replicas[0].grpc, str(count), _SERVICE),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), 60)
        before, began = cpu_s([pid]), time.monotonic()
        sent = await _change(channel, seconds)
        process.stdin.write(f"{sent}\n".encode())
        told = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
        spent_s, took_s = cpu_s([pid]) - before, time.monotonic() - began
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
    name = f"{count:,} watchers"
    for share, value in zip(("p50", "p90", "p99", "slowest"), told["latencies_ms"], strict=True):
        bench.fact(GROUP, f"{name}: {share} delivery", [value], "ms", size=count, note="from sending the change")
    bench.fact(GROUP, f"{name}: events missing", [sent - told["least"]], "", size=count)
    bench.fact(GROUP, f"{name}: changes", [sent / seconds], "/s", size=count)
    bench.fact(GROUP, f"{name}: events delivered", [sent * count / took_s], "/s", size=count)
    bench.fact(GROUP, f"{name}: CPU per event delivered", [spent_s / max(1, sent * count) * 1e6], "µs", size=count)
    bench.fact(GROUP, f"{name}: replica's processor", [100 * spent_s / took_s], "% of a core", size=count)


async def _change(channel: grpc.aio.Channel, seconds: float) -> int:
    """A hundred changes a second for a while; how many were acknowledged."""
    update = raw.unary(channel, f"{SERVICE}/UpdateInstance")
    loop = asyncio.get_running_loop()
    began, sent = loop.time(), 0
    tasks: list[asyncio.Task[bytes]] = []
    while loop.time() - began < seconds:
        due = int((loop.time() - began) * _PER_SECOND)
        tasks += [asyncio.create_task(_update(update, f"{_SERVICE}.{i % 100:05d}")) for i in range(sent, due)]
        sent = max(sent, due)
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)
    return sent


async def _update(update: Any, instance_id: str) -> bytes:
    instance = instance_pb2.Instance()
    instance.meta.id, instance.meta.annotations["stamp"] = instance_id, stamp()
    request = service_pb2.UpdateInstanceRequest(instance=instance)
    request.update_mask.paths.append("meta.annotations")
    return bytes(await update(request.SerializeToString()))


async def _visibility(bench: Bench, made: Stand, first: grpc.aio.Channel, second: grpc.aio.Channel) -> None:
    """From an acknowledgement at one replica to the answer of a read that demands this version at the other one."""
    seconds = 3.0 if bench.quick else 15.0
    heartbeats = single(made.population, 10)
    reporting = asyncio.create_task(load.grpc(made.hq("ReportStatus"), heartbeats, seconds + 1, Shape(1, 100, 100.0)))
    update = raw.unary(first, f"{SERVICE}/UpdateInstance")
    get = raw.unary(second, f"{SERVICE}/GetInstance")
    await asyncio.sleep(0.5)
    ends, times_ms = time.perf_counter() + seconds, list[float]()
    while time.perf_counter() < ends:
        instance_id = f"lookup-1000.{len(times_ms) % 1000:05d}"
        answer = service_pb2.UpdateInstanceResponse.FromString(await _update(update, instance_id))
        acknowledged = time.perf_counter()
        request = service_pb2.GetInstanceRequest(id=instance_id)
        request.read.min_version = answer.instance.meta.version
        await get(request.SerializeToString())
        times_ms.append((time.perf_counter() - acknowledged) * 1000)
        await asyncio.sleep(0.01)
    sample = await reporting
    times_ms.sort()
    for name, share in (("p50", 0.5), ("p99", 0.99), ("slowest", 1.0)):
        bench.fact(GROUP, f"visible at another replica: {name}", [percentile(times_ms, share)], "ms")
    bench.fact(GROUP, "heartbeats during that", [sample.rate], "heartbeats/s")
