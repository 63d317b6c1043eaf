"""An installation as it is meant to be run: five replicas over five etcd members, and what each loss costs."""

from __future__ import annotations

import asyncio
from functools import partial

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb
from tests.support.etcd import OwnCluster
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import eventually, instance

pytestmark = [pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True), pytest.mark.timeout(180)]


async def create(replica: ReplicaProcess, name: str) -> bool:
    async with replica.stub() as stub:
        try:
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(name), request_id=name), timeout=5)
        except grpc.aio.AioRpcError:
            return False
        return True


async def sources(replicas: list[ReplicaProcess]) -> list[pb.Source]:
    async def one(replica: ReplicaProcess) -> pb.Source:
        async with replica.stub() as stub:
            return (await stub.FindInstances(pb.FindInstancesRequest(), timeout=5)).sources[0]

    return await asyncio.gather(*(one(replica) for replica in replicas))


@pytest.mark.long
async def test_two_of_five_may_stop_and_with_three_members_of_etcd_gone_reads_say_stale(
    replicas: Replicas, etcd_cluster: OwnCluster
) -> None:
    cluster = await etcd_cluster(5)
    five = list(await asyncio.gather(*(replicas.start(cluster.endpoints) for _ in range(5))))
    assert await create(five[0], "first")

    await asyncio.gather(five[3].kill(), five[4].kill(), cluster.kill(0), cluster.kill(1))
    left = five[:3]
    for n, replica in enumerate(left):
        await eventually(partial(create, replica, f"with-two-gone-{n}"), timeout_s=20, what="writes go on")

    async def all_fresh() -> bool:
        return not any(source.stale for source in await sources(left))

    await eventually(all_fresh, timeout_s=20, what="no replica is stale")
    written = {"first", *(f"with-two-gone-{n}" for n in range(3))}

    async def all_is_heard() -> bool:
        async with left[0].stub() as stub:
            found = await stub.FindInstances(pb.FindInstancesRequest(), timeout=5)
        return {i.meta.id for i in found.instances} == written

    await eventually(all_is_heard, what="the first replica knows what was written at the others")
    await cluster.kill(2)

    async def all_stale() -> bool:
        return all(source.stale for source in await sources(left))

    await eventually(all_stale, what="every answer says stale without a majority of members")
    async with left[0].stub() as stub:
        found = await stub.FindInstances(pb.FindInstancesRequest())
        assert {i.meta.id for i in found.instances} == written
    assert not await create(left[0], "impossible")

    await cluster.restart(2)
    await eventually(lambda: create(left[0], "possible-again"), timeout_s=30, what="writes go on with a majority")
    await eventually(all_fresh, timeout_s=20, what="no replica is stale")


@pytest.mark.long
async def test_the_leader_of_etcd_is_killed_and_writes_go_on(replicas: Replicas, etcd_cluster: OwnCluster) -> None:
    cluster = await etcd_cluster(3)
    replica = await replicas.start(cluster.endpoints)
    assert await create(replica, "before")
    await cluster.kill(await cluster.leader())
    await eventually(lambda: create(replica, "after"), timeout_s=20, what="writes after an election")
