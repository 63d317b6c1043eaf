"""The judge over HQ, agents and Nanny in virtual time, and policies that contradict themselves."""

from __future__ import annotations

import pytest

from hqclient import HqApiError
from nannypb.v1 import service_pb2 as pb
from tests.nanny.test_failing_instances import crashes
from tests.nanny.virtual_cloud import Looks, virtual_cloud
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_revision_that_crashes_after_two_minutes_is_caught_at_its_first_batch_and_rolled_back() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", progressDeadlineS=600, rollBack=True)
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        bad = await cloud.add("bad", crashes(120.0))
        await cloud.target(bad)
        most = 0
        while (await cloud.state(v1)).current != pb.CURRENT_STATE_ACTIVE:
            most = max(most, len(await cloud.runs(bad)))
            await cloud.sleep(10.0)
        assert most == 1
        assert await cloud.runs(v1) == set(cloud.names)
        order = (await cloud.state(bad)).order
        assert order.outcome == pb.ORDER_OUTCOME_ROLLED_BACK
        assert "web-0 (ams) restarted" in order.message


@pytest.mark.long
@in_virtual_time
async def test_a_roll_out_ends_once_all_were_calm_for_a_soak() -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create(progressDeadlineS=600, soakS=200)
        assert 200.0 < await cloud.activate(await cloud.add("v1")) < 500.0
        assert await cloud.activate(await cloud.add("v2")) > 400.0  # the first batch, and all of them


@in_virtual_time
async def test_an_instance_that_was_sick_before_keeps_nobody_from_rolling_out_or_back() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", maxFailures="0")
        sick = lambda name, age_s: Looks(age_s >= 2.0 and name != "web-0")  # noqa: E731
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        cloud.agents.programs["v1"] = sick
        await cloud.sleep(30.0)
        v2 = await cloud.add("v2", sick)
        await cloud.activate(v2)
        assert "1 not ready as before" in (await cloud.state(v2)).message
        assert await cloud.runs(v2) == set(cloud.names)
        await cloud.activate(v1)
        assert await cloud.runs(v1) == set(cloud.names)


@in_virtual_time
async def test_a_roll_back_inherits_the_list_of_instances_that_were_sick_before() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", maxFailures="0", rollBack=True)
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        cloud.agents.programs["v1"] = lambda name, age_s: Looks(age_s >= 2.0 and name != "web-0")
        await cloud.sleep(30.0)
        await cloud.target(bad := await cloud.add("bad", lambda *_: Looks(ready=False)))
        await cloud.until(bad, pb.CURRENT_STATE_BROKEN, pb.CURRENT_STATE_DEACTIVATE_PENDING)
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
        assert (await cloud.state(bad)).order.outcome == pb.ORDER_OUTCOME_ROLLED_BACK


@in_virtual_time
async def test_a_host_that_dies_while_it_soaks_is_not_taken_for_proof() -> None:
    """HQ calls it ready for a whole timeout, which is longer than the soak; it says who has reported, though."""
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", progressDeadlineS=60, soakS=31)
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        bad = await cloud.add("bad")
        await cloud.target(bad)
        while not (first := await cloud.runs(bad)):
            await cloud.sleep(1.0)
        await cloud.sleep(5.0)
        cloud.agents.silent |= first
        await cloud.sleep(40.0)
        assert "waits for a report of web-0 (ams)" in (await cloud.state(bad)).action.message
        assert await cloud.runs(bad) == first
        await cloud.until(bad, pb.CURRENT_STATE_ACTIVE)  # one host is none too many
        assert "1 whose agents are silent since they were switched" in (await cloud.state(bad)).message


@in_virtual_time
async def test_a_nanny_that_slept_for_a_whole_deadline_fails_no_roll_out() -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create(maxUnavailable="1", progressDeadlineS=60)
        await cloud.activate(await cloud.add("v1"))
        slow = await cloud.add("slow", lambda _, age_s: Looks(age_s >= 45.0))
        await cloud.target(slow)
        await cloud.until(slow, pb.CURRENT_STATE_ACTIVATING)
        await cloud.sleep(5.0)
        cloud.jump(70.0)
        state = await cloud.until(slow, pb.CURRENT_STATE_ACTIVE, pb.CURRENT_STATE_BROKEN)
        assert state.current == pb.CURRENT_STATE_ACTIVE, state.message


@pytest.mark.parametrize("policy", [{"minReadyS": 15, "progressDeadlineS": 8}, {"soakS": 600}, {"soakS": 700}])
@in_virtual_time
async def test_a_policy_that_contradicts_itself_is_refused(policy: dict[str, int]) -> None:
    async with virtual_cloud(1) as cloud:
        with pytest.raises(HqApiError, match="not below progress_deadline_s"):
            await cloud.create(**{"progressDeadlineS": 600, **policy})


@in_virtual_time
async def test_a_batch_that_is_not_ready_gives_its_leave_back_after_a_pause_as_long_as_the_deadline() -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create(maxUnavailable="1", progressDeadlineS=60)
        await cloud.activate(await cloud.add("v1"))
        slow = await cloud.add("slow", lambda _, age_s: Looks(age_s >= 200.0))
        await cloud.target(slow)
        while not await cloud.runs(slow):
            await cloud.sleep(1.0)
        await cloud.nanny.unary("PauseActions", pb.PauseActionsRequest(service_id="web"))
        await cloud.sleep(50.0)
        assert (await cloud.state(slow)).action.batches_done == 0
        await cloud.sleep(15.0)
        assert (await cloud.state(slow)).action.batches_done == 1
        await cloud.nanny.unary("ResumeActions", pb.ResumeActionsRequest(service_id="web"))
        await cloud.sleep(40.0)
        assert (await cloud.state(slow)).current == pb.CURRENT_STATE_ACTIVATING
        assert len(await cloud.runs(slow)) == 1
