"""Scaling restarts nothing that stays, and keeps the floor, also while a roll-out is under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE
from nanny.world.leave import GRANTED, ApprovalAnswer, ApprovalRequest, NoCms
from nannypb.v1 import service_pb2 as pb
from tests.nanny.virtual_cloud import VirtualCloud, never_ready, virtual_cloud
from tests.support.virtual_time import in_virtual_time


@asynccontextmanager
async def lowest_ready(cloud: VirtualCloud, names: list[str]) -> AsyncIterator[list[int]]:
    """The lowest number of these that were ready, looked at all the time."""
    lowest = [len(names)]

    async def look() -> None:
        while True:
            instances = await cloud.instances()
            shown = [instances[name].status.ready.status for name in names if name in instances]
            lowest[0] = min(lowest[0], shown.count(CONDITION_STATUS_TRUE))
            await asyncio.sleep(0.25)

    looking = asyncio.create_task(look(), name="look")
    try:
        yield lowest
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


@pytest.mark.long
@in_virtual_time
async def test_scaling_from_6_to_60_and_back_never_restarts_the_six() -> None:
    async with virtual_cloud(60) as cloud:
        few = cloud.names[:6]
        await cloud.create(maxUnavailable="1", soakS=5)
        await cloud.activate(await cloud.add("v1", names=few))
        before = {name: cloud.agents.starts()[name] for name in few}
        async with lowest_ready(cloud, few) as lowest:
            for names in (cloud.names, few):
                snapshot = await cloud.add("v1", names=names)
                await cloud.activate(snapshot)
                assert await cloud.runs(snapshot) == set(names)
        assert {name: cloud.agents.starts()[name] for name in few} == before
        assert lowest == [6]


@in_virtual_time
async def test_scaling_up_and_down_in_the_middle_of_a_roll_out_keeps_the_floor() -> None:
    """Of the instances that all snapshots name, one is away at a time, whatever is ordered meanwhile."""
    async with virtual_cloud(8) as cloud:
        six, four = cloud.names[:6], cloud.names[:4]
        await cloud.create(maxUnavailable="1", soakS=5, progressDeadlineS=60)
        await cloud.activate(await cloud.add("v1", names=six))
        snapshot = ""
        async with lowest_ready(cloud, four) as lowest:
            for names in (six, cloud.names, four):
                snapshot = await cloud.add("v2", names=names)
                await cloud.target(snapshot)
                await batches(cloud, snapshot, 2)
            snapshot = await cloud.add("v3", names=six)
            await cloud.target(snapshot)
            state = await cloud.until(snapshot, pb.CURRENT_STATE_ACTIVE, pb.CURRENT_STATE_BROKEN)
            assert state.current == pb.CURRENT_STATE_ACTIVE, state.message
        assert await cloud.runs(snapshot) == set(six)
        assert lowest == [3]


class _Asked(NoCms):
    """A CMS that grants everything, and knows what for."""

    address = "cms"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, wanted: ApprovalRequest) -> ApprovalAnswer:
        self.asked += [name for _, name in wanted.instances]
        return GRANTED


@in_virtual_time
async def test_moving_and_replacing_restart_nothing_that_stays_and_moving_a_live_one_costs_a_batch() -> None:
    cms = _Asked()
    async with virtual_cloud(5, cms) as cloud:
        await cloud.create(maxUnavailable="1", soakS=5)
        await cloud.activate(await cloud.add("v1", names=cloud.names[:4]))
        before = cloud.agents.starts()
        assert not cms.asked  # nothing served before
        moved = await cloud.add("v1", names=cloud.names[:4], nodes={"web-2": "elsewhere"})
        async with lowest_ready(cloud, cloud.names[:4]) as lowest:
            await cloud.activate(moved)
        assert (cms.asked, lowest) == (["web-2"], [3])
        assert changes_since(before, cloud) == {"web-2"}
        replaced = await cloud.add("v1", names=[*cloud.names[:3], "web-4"], nodes={"web-2": "elsewhere"})
        async with lowest_ready(cloud, cloud.names[:3]) as lowest:
            await cloud.activate(replaced)
        assert (cms.asked, lowest) == (["web-2"], [3])
        assert changes_since(before, cloud) == {"web-2", "web-4"}
        await cloud.until(moved, pb.CURRENT_STATE_PREPARED)
        assert await cloud.runs(replaced) == {"web-0", "web-1", "web-2", "web-4"}


@pytest.mark.parametrize("title", ["v1", "v2"])
@in_virtual_time
async def test_moving_an_instance_whose_node_is_dead_comes_first_and_needs_no_leave(title: str) -> None:
    """Whether or not a new revision is rolled out with it."""
    cms = _Asked()
    async with virtual_cloud(4, cms) as cloud:
        await cloud.create(maxUnavailable="1", soakS=5)
        await cloud.activate(await cloud.add("v1"))
        await cloud.kill_node("web-3")
        before = cloud.agents.starts()
        moved = await cloud.add(title, nodes={"web-3": "elsewhere"})
        await cloud.target(moved)
        while not (runs := {name for name in await cloud.runs(moved) if await is_on(cloud, name, "elsewhere")}):
            await cloud.sleep(0.5)
        assert (runs, cms.asked) == ({"web-3"}, [])
        await cloud.until(moved, pb.CURRENT_STATE_ACTIVE)
        assert sorted(cms.asked) == ([] if title == "v1" else ["web-0", "web-1", "web-2"])
        assert changes_since(before, cloud) == ({"web-3"} if title == "v1" else set(cloud.names))
        assert await cloud.runs(moved) == set(cloud.names)


@in_virtual_time
async def test_a_roll_back_puts_a_moved_instance_back_on_its_dead_node_and_does_not_fail_for_it() -> None:
    async with virtual_cloud(4) as cloud:
        await cloud.create(maxUnavailable="1", soakS=5, rollBack=True)
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        await cloud.kill_node("web-3")
        bad = await cloud.add("bad", never_ready, nodes={"web-3": "elsewhere"})
        await cloud.target(bad)
        await cloud.until(bad, pb.CURRENT_STATE_BROKEN, pb.CURRENT_STATE_DEACTIVATE_PENDING)
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
        assert (await cloud.state(bad)).order.outcome == pb.ORDER_OUTCOME_ROLLED_BACK
        assert await is_on(cloud, "web-3", "node-web-3")
        assert await cloud.runs(v1) == set(cloud.names)


def changes_since(before: dict[str, float], cloud: VirtualCloud) -> set[str]:
    """Those whose processes are other ones now."""
    return {name for name, since in cloud.agents.starts().items() if before.get(name) != since}


async def is_on(cloud: VirtualCloud, name: str, node: str) -> bool:
    return (await cloud.instances())[name].spec.node_name == node


async def batches(cloud: VirtualCloud, snapshot: str, count: int) -> None:
    """Whether so many of its batches are over, or all of them."""
    while (state := await cloud.state(snapshot)).action.batches_done < count:
        if state.current == pb.CURRENT_STATE_ACTIVE:
            return
        assert state.order.outcome == pb.ORDER_OUTCOME_OPEN, state
        await cloud.sleep(0.5)
