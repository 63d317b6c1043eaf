"""The parts of the rig that a run relies on: the schedule, the ways between members, the clock that jumps."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hqpb.v1 import service_pb2 as pb
from store.embedded import EtcdBinary
from tests.rig.cluster import GatedCluster
from tests.rig.launcher import trouble
from tests.rig.schedule import Kind, schedule
from tests.support import etcd_http
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import Agent, eventually, instance

OFTEN, RARE = Kind("often", 1.0), Kind("rare", 0.0, alone=True, at_least_once=True)
ONE_VERSION = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


def test_a_schedule_follows_from_its_seed_alone() -> None:
    assert schedule(1, 600, 2.5, (OFTEN, RARE)) == schedule(1, 600, 2.5, (OFTEN, RARE))
    assert schedule(1, 600, 2.5, (OFTEN, RARE)) != schedule(2, 600, 2.5, (OFTEN, RARE))


def test_a_schedule_is_in_order_leaves_time_to_heal_and_has_every_fault_that_must_occur() -> None:
    orders = schedule(7, 600, 2.5, (OFTEN, RARE))
    times = [order.at_s for order in orders]
    assert times == sorted(times)
    assert times[-1] <= 580
    assert 150 < len(orders) < 350
    assert [order.kind for order in orders].count(RARE) == 1
    assert all(order.target != order.other for order in orders)


def answers(endpoint: str) -> bool:
    try:
        etcd_http.get(endpoint, "/any", 2.0)
    except OSError:
        return False
    return True


@pytest.mark.long
@ONE_VERSION
async def test_one_way_between_two_members_is_cut_and_the_third_does_not_notice(
    etcd_binary: EtcdBinary, tmp_path: Path
) -> None:
    cluster = GatedCluster(etcd_binary, tmp_path, 3, 0)
    try:
        await cluster.start()
        leader = await cluster.leader()
        deaf, other = (index for index in range(3) if index != leader)

        async def serves(index: int) -> bool:
            return await asyncio.to_thread(answers, cluster.endpoints[index])

        for source in (leader, other):
            cluster.peers.cut(source, deaf)

        async def is_deaf() -> bool:
            return not await serves(deaf)

        await eventually(is_deaf, what="a member that hears nobody serves no linearizable reads")
        await eventually(lambda: serves(other), what="the other two go on")
        for source in (leader, other):
            cluster.peers.heal(source, deaf)
        await eventually(lambda: serves(deaf), what="it serves again when it hears them")
    finally:
        await cluster.close()


@pytest.mark.long
@ONE_VERSION
async def test_the_wall_clock_of_a_replica_jumps_and_nothing_else_does(etcd: SharedEtcd, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    trouble(clock)
    launch = ("-m", "tests.rig.launcher", str(clock))
    replica = ReplicaProcess([etcd.endpoint], etcd.prefix, tmp_path / "log", launch=launch)
    try:
        await replica.start()
        async with replica.stub() as stub:
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a")))
            agent = Agent(stub, "a")
            await agent.begin()
            await agent.report()
            before = (await stub.GetInstance(pb.GetInstanceRequest(id="a"))).instance
            trouble(clock, offset_ms=86_400_000)
            await agent.report(message="news")
            after = (await stub.GetInstance(pb.GetInstanceRequest(id="a"))).instance
        jumped_s = after.status.last_heartbeat_time.seconds - before.status.last_heartbeat_time.seconds
        assert 86_400 <= jumped_s < 86_400 + 120
        assert after.status.ready.status == 1
    finally:
        await replica.kill()
