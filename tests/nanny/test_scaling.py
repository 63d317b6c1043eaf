"""Scaling restarts nothing that stays, and keeps the floor, also while a roll-out is under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE
from nannypb.v1 import service_pb2 as pb
from tests.nanny.virtual_cloud import VirtualCloud, virtual_cloud
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
async def test_six_of_sixty_are_never_restarted() -> None:
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
    """Instances that all of the snapshots name: one of them is away at a time, whatever is ordered meanwhile."""
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


async def batches(cloud: VirtualCloud, snapshot: str, count: int) -> None:
    """Whether so many of its batches are over, or all of them."""
    while (state := await cloud.state(snapshot)).action.batches_done < count:
        if state.current == pb.CURRENT_STATE_ACTIVE:
            return
        assert state.order.outcome == pb.ORDER_OUTCOME_OPEN, state
        await cloud.sleep(0.5)
