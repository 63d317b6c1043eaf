"""SIGTERM: a replica says that it goes, finishes what it began, and sends its watches elsewhere."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from hqpb.v1 import service_pb2 as pb
from tests.support.errors import reason_of
from tests.support.etcd import SharedEtcd
from tests.support.replicas import Replicas
from tests.support.sample_instances import Agent, eventually, instance
from tests.support.watch_follower import Watching

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def health_of(address: str, seen: list[int]) -> None:
    """What grpc.health.v1 says, until the replica has gone."""
    async with grpc.aio.insecure_channel(address) as channel:
        with suppress(grpc.aio.AioRpcError):
            answers = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            async for answer in answers:
                seen.append(answer.status)  # noqa: PERF401  # as they come


@pytest.mark.long
async def test_at_sigterm_health_says_so_heartbeats_are_answered_and_watches_are_sent_elsewhere(
    replicas: Replicas, etcd: SharedEtcd
) -> None:
    going = await replicas.start([etcd.endpoint], etcd.prefix)
    staying = await replicas.start([etcd.endpoint], etcd.prefix)
    seen: list[int] = []
    looking = asyncio.create_task(health_of(going.grpc, seen))
    async with going.stub() as stub, staying.stub() as elsewhere:
        agents = [Agent(stub, f"i-{n}") for n in range(20)]
        for agent in agents:
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(agent.instance_id)))
            await agent.begin()
            await agent.report()
        watch = Watching(stub.WatchInstances(pb.WatchInstancesRequest()))
        await eventually(lambda: watch.synced and SERVING in seen, what="a synced watch, a good health")
        heartbeats = [asyncio.create_task(agent.report()) for agent in agents]
        # One of them is answered: all are under way, and most still wait for their flush.
        await asyncio.wait(heartbeats, return_when=asyncio.FIRST_COMPLETED)
        heartbeats += [asyncio.create_task(agent.report()) for agent in agents[:5]]
        await asyncio.sleep(0.05)
        os.kill(going.pid, signal.SIGTERM)
        assert await asyncio.gather(*heartbeats, return_exceptions=True) == [None] * 25
        await eventually(lambda: watch.error is not None, what="the end of the watch")
        assert isinstance(watch.error, grpc.aio.AioRpcError)
        assert reason_of(watch.error) == "SHUTTING_DOWN"
        assert watch.messages[-1].kind == pb.WATCH_KIND_BOOKMARK
        assert await going.ended() == 0  # a second SIGTERM might meet a process that minds none any more
        await asyncio.wait_for(looking, 30)
        assert seen[-1] == NOT_SERVING, seen
        resumed = Watching(elsewhere.WatchInstances(pb.WatchInstancesRequest(resume_token=watch.token)))
        await eventually(lambda: resumed.synced, what="the watch goes on elsewhere")
        assert pb.WATCH_KIND_RESYNC not in resumed.kinds()
        assert pb.WATCH_KIND_SNAPSHOT not in resumed.kinds()
        await resumed.end()
        await watch.end()


@pytest.mark.long
async def test_callers_that_go_on_calling_are_turned_away_and_do_not_delay_the_stop(
    replicas: Replicas, etcd: SharedEtcd
) -> None:
    replica = await replicas.start([etcd.endpoint], etcd.prefix, "--grace", "1s")
    async with replica.stub() as stub:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-1")))
        agent = Agent(stub, "a-1")
        await agent.begin()

        async def forever() -> None:
            while True:
                await agent.report()

        calls = asyncio.create_task(forever())
        await asyncio.sleep(0.2)
        assert await replica.terminate(timeout_s=60) == 0
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await calls
        assert ended.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
