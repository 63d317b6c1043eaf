"""Real replicas that live shorter than the timeout: the dead expire within the bound, and nobody who reports does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import Agent, eventually, instance

TIMEOUT_S, INTERVAL_S, LIFE_S, LIVES = 20, 6, 12, 5
LONGER_S = 32
FLAGS = (f"--liveness-timeout={TIMEOUT_S}s", f"--report-interval={INTERVAL_S}s")
ALIVE = [f"alive-{number}" for number in range(6)]

pytestmark = [pytest.mark.long, pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)]


async def report_for_ever(agents: list[Agent], interval_s: float = INTERVAL_S) -> None:
    while True:
        for agent in agents:
            await agent.report()
        await asyncio.sleep(interval_s * 0.9)


@asynccontextmanager
async def reporting(replica: ReplicaProcess, agents: list[Agent]) -> AsyncIterator[None]:
    """The agents report to this replica, beginning half an interval late, as after a back-off."""
    async with replica.stub() as stub:
        for agent in agents:
            agent.stub = stub
        await asyncio.sleep(INTERVAL_S / 2)
        task = asyncio.create_task(report_for_ever(agents))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def expired(replica: ReplicaProcess) -> set[str]:
    async with replica.stub() as stub:
        found = await stub.FindInstances(pb.FindInstancesRequest())
    ready = model.CONDITION_STATUS_TRUE
    return {instance.meta.id for instance in found.instances if instance.status.ready.status != ready}


@pytest.mark.parametrize("stops", ["by a crash", "in order, with a checkpoint"])
async def test_replicas_that_live_shorter_than_the_timeout_expire_the_dead_and_nobody_else(
    replicas: Replicas, etcd: SharedEtcd, tmp_path: Path, stops: str
) -> None:
    flags = (*FLAGS, *(("--state-dir", str(tmp_path)) if "checkpoint" in stops else ()))
    replica = await replicas.start([etcd.endpoint], etcd.prefix, *flags)
    async with replica.stub() as stub:
        agents = [Agent(stub, name) for name in (*ALIVE, "dead")]
        for agent in agents:
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(agent.instance_id)))
            await agent.begin()
            await agent.report()
    gone: set[str] = set()
    for life in range(LIVES):
        async with reporting(replica, agents[:-1]):
            await asyncio.sleep(LIFE_S)
            gone = await expired(replica)
        assert gone <= {"dead"}, f"in life {life}"
        if gone:
            break
        await (replica.terminate() if "checkpoint" in stops else replica.kill())
        replica = await replicas.start([etcd.endpoint], etcd.prefix, *flags)
    assert gone == {"dead"}
    assert "were silent before this start" in replica.log_text()


async def test_a_start_logs_since_when_silence_is_known(replicas: Replicas, etcd: SharedEtcd) -> None:
    flags = (*FLAGS, f"--liveness-timeout={LONGER_S}s")  # it must not expire before it is asked about
    replica = await replicas.start([etcd.endpoint], etcd.prefix, *flags)
    async with replica.stub() as stub:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("dead")))
        agent = Agent(stub, "dead")
        await agent.begin()
        await agent.report()
        await asyncio.sleep(LIFE_S)
    await replica.kill()
    replica = await replicas.start([etcd.endpoint], etcd.prefix, *flags)
    async with replica.stub() as stub:
        told = await stub.ExplainInstance(pb.ExplainInstanceRequest(id="dead"))
    assert "no report since this replica started to listen" in told.summary
    assert told.revision[0].silent_for.seconds >= INTERVAL_S + 2
    await eventually(lambda: expired(replica), 60, what="it expires in this life")
