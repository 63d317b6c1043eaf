"""`nanny restart` is an order: rolling, judged, and what ran before is no other version to go back to."""

from __future__ import annotations

import pytest

from hqclient import HqApiError
from nannyctl.commands.orders import previous_snapshot
from nannypb.v1 import service_pb2 as pb
from tests.nanny.virtual_cloud import SERVICE, Looks, VirtualCloud, good, virtual_cloud
from tests.support.virtual_time import in_virtual_time

pytestmark = pytest.mark.long


async def restart(cloud: VirtualCloud, request_id: str) -> str:
    """Order it; the snapshot that restarts."""
    request = pb.RestartServiceRequest(service_id=SERVICE, request_id=request_id, by=pb.Authorship(author="ann"))
    service = (await cloud.nanny.unary("RestartService", request)).service
    made = next(one.snapshot_id for one in service.snapshot if one.order.id == request_id)
    cloud.revisions[made] = made
    return str(made)


@in_virtual_time
async def test_a_restart_starts_each_instance_again_in_batches_and_keeps_one_copy() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(soakS=30, maxUnavailable="2", step=[{"promote": True}])
        v0 = await cloud.add("v0")
        await cloud.activate(v0)
        v1 = await cloud.add("v1")
        await cloud.nanny.unary(
            "SetTarget",
            pb.SetTargetRequest(service_id=SERVICE, snapshot_id=v1, target=pb.TARGET_ACTIVE, skip_steps=True),
        )
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
        before = cloud.agents.starts()
        again = await restart(cloud, "r1")
        assert await restart(cloud, "r1") == again
        await cloud.until(again, pb.CURRENT_STATE_ACTIVE)
        after = cloud.agents.starts()
        assert all(after[name] > before[name] for name in cloud.names)
        assert len(set(after.values())) >= 3
        state = await cloud.state(again)
        assert (state.order.outcome, state.restart_of) == (pb.ORDER_OUTCOME_REACHED, v1)
        service = await cloud.service()
        assert service.head == again
        assert previous_snapshot(service) == v0

        third = await restart(cloud, "r2")
        await cloud.until(third, pb.CURRENT_STATE_ACTIVE)
        await cloud.sleep(120.0)
        assert {one.snapshot_id for one in (await cloud.service()).snapshot} == {v0, again, third}
        six = await cloud.add("v1", names=cloud.names[:5])
        assert cloud.revisions[six] == third, "what runs is what the next snapshot is compared with"


@in_virtual_time
async def test_a_restart_that_fails_is_rolled_back_to_what_ran() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(rollBack=True, soakS=30)
        with pytest.raises(HqApiError, match="there is nothing to restart"):
            await restart(cloud, "r0")
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        await cloud.sleep(300.0)
        cloud.agents.programs["v1"] = lambda _, age_s: Looks(age_s >= 200.0)  # what runs is not touched by it
        again = await restart(cloud, "r1")
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVATING)
        cloud.agents.programs["v1"] = good
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
        assert (await cloud.state(again)).order.outcome == pb.ORDER_OUTCOME_ROLLED_BACK
