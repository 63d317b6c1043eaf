"""A service below its floor, or one that keeps restarting, has a remark, and Online says how many are ready."""

from __future__ import annotations

import pytest

from nannyctl.output.services import SERVICE_HEAD, service_row, table
from nannypb.v1 import service_pb2 as pb
from tests.nanny.test_failing_instances import crashes
from tests.nanny.virtual_cloud import SERVICE, Looks, VirtualCloud, virtual_cloud
from tests.support.virtual_time import in_virtual_time


async def line(cloud: VirtualCloud) -> str:
    """What `nanny service list` shows."""
    answer = await cloud.nanny.unary("ListServices", pb.ListServicesRequest())
    [service] = [one for one in answer.service if one.id == SERVICE]
    return table(SERVICE_HEAD, [service_row(service)]).splitlines()[1]


@in_virtual_time
async def test_a_service_below_its_floor_says_so_beside_its_state_online() -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create(maxUnavailable="1")
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        assert "Online 3/3" in await line(cloud)
        cloud.agents.programs["v1"] = lambda name, _age_s: Looks(name == "web-2")
        await cloud.sleep(120.0)
        shown = await line(cloud)
        assert "Online 1/3" in shown
        assert "1 of 3 are ready, 2 should be: web-0 (ams): ContainerNotReady and 1 more" in shown
        cloud.agents.programs.clear()
        await cloud.sleep(120.0)
        assert (await line(cloud)).split()[:3] == ["web", "Online", "3/3"]
        assert not (await cloud.service()).remark


@pytest.mark.long
@in_virtual_time
async def test_an_instance_that_keeps_restarting_is_named_although_all_look_ready() -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create(maxUnavailable="1")
        await cloud.activate(await cloud.add("v1"))
        cloud.agents.programs["v1"] = crashes(100.0, "web-1")
        await cloud.sleep(600.0)
        assert "web-1 (ams) keeps restarting" in await line(cloud)


@in_virtual_time
async def test_an_order_for_the_active_snapshot_is_reached_only_if_the_service_is_at_its_floor() -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create(maxUnavailable="1")
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        assert (await cloud.target(v1, request_id="one")).snapshot[0].order.outcome == pb.ORDER_OUTCOME_REACHED
        cloud.agents.programs["v1"] = lambda name, _age_s: Looks(name == "web-2")
        await cloud.sleep(120.0)
        order = (await cloud.target(v1, request_id="two")).snapshot[0].order
        assert order.outcome == pb.ORDER_OUTCOME_FAILED
        assert "it is active already, but 1 of 3 are ready" in order.message
