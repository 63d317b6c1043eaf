"""Instances that cannot be prepared or break after they were done count as failed, and no more than that happens."""

from __future__ import annotations

from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE
from nanny.rollout.judge import Evidence
from nanny.rollout.views import Key, Stage
from nannypb.v1 import service_pb2 as pb
from tests.nanny.virtual_cloud import Looks, Program, virtual_cloud
from tests.support.virtual_time import in_virtual_time


def crashes(every_s: float, *only: str) -> Program:
    """It is ready after 2 s, and ends so many seconds after each start; `only`: on these instances."""

    def program(instance: str, age_s: float) -> Looks:
        if only and instance not in only:
            return Looks(age_s >= 2.0)
        restarts, since_s = divmod(age_s, every_s)
        return Looks(since_s >= 2.0, int(restarts))

    return program


def flaps(_instance: str, age_s: float) -> Looks:
    """Its readiness comes and goes, without a restart."""
    return Looks(age_s % 20.0 >= 10.0)


# --- preparing --------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_node_that_cannot_prepare_is_left_for_last_and_keeps_what_it_runs() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxFailures="50%")
        v1, v2 = await cloud.add("v1"), await cloud.add("v2")
        await cloud.activate(v1)
        cloud.agents.cannot_prepare.add(("web-0", "v2"))
        await cloud.activate(v2)
        assert "1 not installed, so that they were not switched" in (await cloud.state(v2)).message
        assert await cloud.runs(v1) == {"web-0"}
        assert (await cloud.instances())["web-0"].status.ready.status == CONDITION_STATUS_TRUE

        cloud.agents.cannot_prepare.clear()
        await cloud.sleep(120.0)
        assert await cloud.runs(v2) == set(cloud.names)


@in_virtual_time
async def test_a_node_that_can_prepare_at_its_turn_is_switched() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxFailures="1")
        v1, v2 = await cloud.add("v1"), await cloud.add("v2")
        await cloud.activate(v1)
        cloud.agents.cannot_prepare.add(("web-0", "v2"))
        await cloud.target(v2)
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVATING)
        cloud.agents.cannot_prepare.clear()
        state = await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, pb.CURRENT_STATE_BROKEN)
        assert await cloud.runs(v2) == set(cloud.names), state.message


@in_virtual_time
async def test_more_nodes_that_cannot_prepare_than_may_fail_stop_a_roll_out_before_it_touches_anything() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxFailures="1")
        v1, v2 = await cloud.add("v1"), await cloud.add("v2")
        await cloud.activate(v1)
        cloud.agents.cannot_prepare |= {("web-0", "v2"), ("web-3", "v2")}
        await cloud.target(v2)
        state = await cloud.until(v2, pb.CURRENT_STATE_PARTIALLY_PREPARED)
        assert "waits for web-0 (ams): FetchFailed and 1 more" in state.message
        assert await cloud.runs(v1) == set(cloud.names)


@in_virtual_time
async def test_a_snapshot_that_shall_only_be_prepared_is_prepared_everywhere_or_not_at_all() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxFailures="50%")
        v1, v2 = await cloud.add("v1"), await cloud.add("v2")
        await cloud.activate(v1)
        cloud.agents.cannot_prepare.add(("web-0", "v2"))
        await cloud.target(v2, pb.TARGET_PREPARED)
        await cloud.until(v2, pb.CURRENT_STATE_PARTIALLY_PREPARED, timeout_s=120.0)


# --- after they were done ---------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_revision_that_crashes_after_it_was_done_fails_the_roll_out() -> None:
    """It is ready for longer than min_ready_time, so that batch after batch was done."""
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", minReadyS=10)
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        bad = await cloud.add("bad", crashes(25.0))
        await cloud.target(bad)
        state = await cloud.until(bad, pb.CURRENT_STATE_BROKEN, pb.CURRENT_STATE_ACTIVE)
        assert state.current == pb.CURRENT_STATE_BROKEN
        assert "restarted, or did not stay ready, after they were done" in state.message
        assert len(await cloud.runs(v1)) >= 3


@in_virtual_time
async def test_an_instance_that_restarted_counts_as_failed_although_it_is_ready_again() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", maxFailures="1")
        await cloud.activate(await cloud.add("v1"))
        v2 = await cloud.add("v2", crashes(25.0, "web-0"))
        await cloud.activate(v2)
        assert "1 that failed and are ready now" in (await cloud.state(v2)).message
        failing = await cloud.add("v3", crashes(25.0, "web-0", "web-1"))
        await cloud.target(failing)
        state = await cloud.until(failing, pb.CURRENT_STATE_BROKEN, pb.CURRENT_STATE_ACTIVE)
        assert "2 failed, 1 allowed" in state.message


@in_virtual_time
async def test_one_that_becomes_ready_again_and_again_is_no_progress() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", minReadyS=12, progressDeadlineS=60)
        await cloud.activate(await cloud.add("v1"))
        bad = await cloud.add("bad", flaps)
        await cloud.target(bad)
        state = await cloud.until(bad, pb.CURRENT_STATE_BROKEN, timeout_s=180.0)
        assert "web-0 (ams) did not become ready in the first batch" in state.message


A: Key = ("ams", "a")


def test_restarts_before_it_was_done_are_none_of_its_failures() -> None:
    evidence = Evidence()
    assert not evidence.relapses({Stage.UNDER_WAY: {A}}, {A: 3})
    evidence.update({Stage.DONE: {A}}, {A: 3})
    assert not evidence.relapses({Stage.DONE: {A}}, {A: 3})
    assert evidence.relapses({Stage.DONE: {A}}, {A: 4}) == {A}


def test_a_supervisor_that_counts_from_zero_again_is_no_restart_and_the_next_one_is() -> None:
    evidence = Evidence()
    evidence.update({Stage.DONE: {A}}, {A: 3})
    evidence.update({Stage.DONE: {A}}, {})
    assert evidence.relapses({Stage.DONE: {A}}, {A: 1}) == {A}


def test_what_others_held_or_was_silent_proves_itself_anew() -> None:
    for stage in (Stage.HELD, Stage.LOST, Stage.UP):
        evidence = Evidence()
        evidence.update({Stage.DONE: {A}}, {})
        evidence.update({stage: {A}}, {})
        assert not evidence.relapses({Stage.UNDER_WAY: {A}}, {A: 1})
