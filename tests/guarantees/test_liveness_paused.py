"""A replica that stood still for ten seconds calls nobody silent who was not: real processes, a real etcd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import pytest

from hqpb.v1 import admin_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import Agent, eventually, instance

PAUSE_S = 10
FLAGS = ("--liveness-timeout", "7s", "--report-interval", "2s", "--compact-every", "0s")
AGENTS = 6


async def keep_reporting(agent: Agent) -> None:
    """Report like real agents: a deadline for every call, and a retry soon after a failure."""
    while True:
        with suppress(grpc.aio.AioRpcError, TimeoutError):
            async with asyncio.timeout(2.0):
                await agent.report()
        await asyncio.sleep(0.6)


@asynccontextmanager
async def agents_of(replica: ReplicaProcess) -> AsyncIterator[asyncio.Task[None]]:
    """Agents that report to this replica alone. Yields the one whose cancellation makes it silent."""
    async with replica.stub() as stub:
        reporting = []
        for n in range(AGENTS):
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(f"i-{n}")))
            agent = Agent(stub, f"i-{n}")
            await agent.begin()
            await agent.report()
            reporting.append(asyncio.create_task(keep_reporting(agent)))
        try:
            yield reporting[0]
        finally:
            for task in reporting:
                task.cancel()
            await asyncio.gather(*reporting, return_exceptions=True)


async def expired(replica: ReplicaProcess) -> set[str]:
    """Who was called not ready as far as this replica saw."""
    async with replica.admin() as admin:
        answer = await admin.ListTransitions(admin_pb2.ListTransitionsRequest())
    return {t.instance_id for t in answer.transitions if not t.ready}


async def not_ready(replica: ReplicaProcess) -> set[str]:
    read = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
    async with replica.stub() as stub:
        found = await stub.FindInstances(pb.FindInstancesRequest(read=read))
    return {i.meta.id for i in found.instances if i.status.ready.status != model.CONDITION_STATUS_TRUE}


@asynccontextmanager
async def standing_still(*replicas: ReplicaProcess) -> AsyncIterator[None]:
    """For ten seconds and as long as the block takes."""
    for replica in replicas:
        replica.pause()
    try:
        await asyncio.sleep(PAUSE_S)
        yield
    finally:
        for replica in replicas:
            replica.resume()


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)
async def test_a_replica_paused_for_ten_seconds_expires_nobody_wrongly(etcd: SharedEtcd, tmp_path: Path) -> None:
    """Without another replica its agents waited; beside one, they reported to that, and this one heard nothing."""
    async with Replicas(tmp_path) as replicas:
        prefixes = f"{etcd.prefix}one/", f"{etcd.prefix}two/"
        alone = await replicas.start([etcd.endpoint], prefixes[0], *FLAGS)
        paused = await replicas.start([etcd.endpoint], prefixes[1], *FLAGS)
        other = await replicas.start([etcd.endpoint], prefixes[1], *FLAGS)
        async with agents_of(alone), agents_of(other) as silent:
            await asyncio.sleep(2)
            silent.cancel()
            async with standing_still(alone, paused):

                async def only_it_is_expired() -> bool:
                    return await not_ready(other) == {"i-0"}

                await eventually(only_it_is_expired, timeout_s=60, what="the silent one is called not ready meanwhile")
            await asyncio.sleep(10)  # a wrong expiry would come now
            assert await expired(alone) == await not_ready(alone) == set()
            assert await expired(other) == await expired(paused) == await not_ready(paused) == {"i-0"}
