"""How soon HQ writes again when etcd's leader is killed, and how soon it notices a half-open connection."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from itertools import pairwise
from pathlib import Path

import grpc

from hqpb.v1 import instance_pb2, service_pb2
from store.embedded import EmbeddedEtcd, EtcdBinary, find_etcd
from store.etcd import EtcdConfig, EtcdStore
from store.port import Disconnected
from tests.bench import raw
from tests.bench.bench import Bench
from tests.bench.stand import SERVICE
from tests.support.etcd_cluster import EtcdCluster
from tests.support.faulty_proxy import Proxy
from tests.support.replicas import ReplicaProcess

GROUP = "failures"
_PREFIX = "/hq/v1/"


async def run(bench: Bench) -> None:
    """The group `failures`."""
    times = 1 if bench.quick else 3
    directory = bench.directory / GROUP
    directory.mkdir()
    outages = [await _leader_killed(directory / f"cluster-{i}", find_etcd()) for i in range(times)]
    bench.fact(GROUP, "leader of three members killed: writes again after", outages, "s")
    noticed = [await _half_open(directory / f"etcd-{i}") for i in range(times)]
    bench.fact(GROUP, "half-open connection noticed after", noticed, "s")


async def _leader_killed(directory: Path, binary: EtcdBinary) -> float:
    """The longest time without an acknowledged write, from the kill on."""
    directory.mkdir()
    cluster = EtcdCluster(binary, directory, 3)
    async with AsyncExitStack() as stack:
        await cluster.start()
        stack.push_async_callback(cluster.kill_all)
        replica = ReplicaProcess(cluster.endpoints, _PREFIX, directory / "replica.log")
        stack.push_async_callback(replica.kill)
        await replica.start()
        channel = await stack.enter_async_context(raw.channel(replica.grpc))
        acknowledged: list[float] = []
        writing = asyncio.create_task(_write(channel, acknowledged))
        await asyncio.sleep(2)
        killed = time.monotonic()
        await cluster.kill(await cluster.leader())
        await asyncio.sleep(10)
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
    moments = [killed, *(moment for moment in acknowledged if moment > killed)]
    return max((later - earlier for earlier, later in pairwise(moments)), default=10.0)


async def _write(channel: grpc.aio.Channel, acknowledged: list[float]) -> None:
    create, number = raw.unary(channel, f"{SERVICE}/CreateInstance"), 0
    while True:
        number += 1
        instance = instance_pb2.Instance()
        instance.meta.id, instance.meta.service_id = f"i-{number}", "svc"
        with suppress(grpc.aio.AioRpcError):
            await create(service_pb2.CreateInstanceRequest(instance=instance).SerializeToString(), timeout=5)
            acknowledged.append(time.monotonic())
        await asyncio.sleep(0.02)


async def _half_open(directory: Path) -> float:
    """From when nothing passes any more to when the watch says so."""
    etcd = EmbeddedEtcd(directory, binary=find_etcd())
    await etcd.start()
    try:
        async with Proxy(etcd.endpoint) as proxy:
            store = EtcdStore(EtcdConfig((proxy.endpoint,)))
            began = time.monotonic()
            with suppress(Disconnected):
                async with store.watch(b"/", b"0", after=0) as watch:
                    proxy.stall()
                    began = time.monotonic()
                    async for _ in watch:
                        pass
            noticed = time.monotonic() - began
            proxy.heal()
            await store.close()
            return noticed
    finally:
        await etcd.kill()
