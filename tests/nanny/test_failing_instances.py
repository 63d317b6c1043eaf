"""Instances that cannot be prepared, or that break after they were done, count as failed, and nothing worse happens."""

from __future__ import annotations

import pytest

from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE
from nanny.rollout.judge import Evidence
from nanny.rollout.views import Key, RolloutProgress, Stage
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


@pytest.mark.long
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


@pytest.mark.long
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
async def test_a_revision_that_crashes_after_its_batch_was_done_fails_the_roll_out() -> None:
    """It is ready for longer than min_ready_time, so that batch after batch was done."""
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", minReadyS=10)
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        bad = await cloud.add("bad", crashes(25.0))
        await cloud.target(bad)
        state = await cloud.until(bad, pb.CURRENT_STATE_BROKEN, pb.CURRENT_STATE_ACTIVE)
        assert state.current == pb.CURRENT_STATE_BROKEN
        assert "restarted, or did not stay ready" in state.message
        assert len(await cloud.runs(v1)) == 5


@pytest.mark.long
@in_virtual_time
async def test_an_instance_that_restarts_again_and_again_counts_as_failed_whether_it_is_ready_or_not() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", maxFailures="1")
        await cloud.activate(await cloud.add("v1"))
        v2 = await cloud.add("v2", crashes(25.0, "web-4"))
        await cloud.activate(v2)
        assert "left out: 1 " in (await cloud.state(v2)).message
        failing = await cloud.add("v3", crashes(25.0, "web-4", "web-5"))
        await cloud.target(failing)
        state = await cloud.until(failing, pb.CURRENT_STATE_BROKEN, pb.CURRENT_STATE_ACTIVE)
        assert "2 failed, 1 allowed" in state.message


@in_virtual_time
async def test_an_instance_that_becomes_ready_again_and_again_is_no_progress() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", minReadyS=12, progressDeadlineS=60)
        await cloud.activate(await cloud.add("v1"))
        bad = await cloud.add("bad", flaps)
        await cloud.target(bad)
        state = await cloud.until(bad, pb.CURRENT_STATE_BROKEN, timeout_s=180.0)
        assert "web-0 (ams) did not become ready in the first batch" in state.message


A: Key = ("ams", "a")
NOTHING = RolloutProgress()


def fallen(
    evidence: Evidence, stage: Stage, restarts: int, now_s: float = 0.0, progress: RolloutProgress = NOTHING
) -> bool:
    return A in evidence.update({stage: {A}}, {A: restarts} if restarts else {}, progress, now_s, 300.0).fell


def test_restarts_before_an_instance_was_done_are_none_of_its_failures() -> None:
    evidence = Evidence()
    assert not fallen(evidence, Stage.UNDER_WAY, 3)
    assert not fallen(evidence, Stage.DONE, 3)
    assert not fallen(evidence, Stage.DONE, 3)
    assert fallen(evidence, Stage.DONE, 4)


def test_a_restart_count_that_begins_at_zero_again_is_no_restart_and_the_next_increase_is() -> None:
    evidence = Evidence()
    fallen(evidence, Stage.DONE, 3)
    assert not fallen(evidence, Stage.DONE, 0)
    assert fallen(evidence, Stage.DONE, 1)


def test_an_instance_that_was_held_or_silent_or_not_switched_proves_itself_anew() -> None:
    for stage in (Stage.HELD, Stage.LOST, Stage.UP):
        evidence = Evidence()
        fallen(evidence, Stage.DONE, 0)
        fallen(evidence, stage, 0)
        assert not fallen(evidence, Stage.UNDER_WAY, 1)


def test_an_instance_that_fell_counts_until_it_was_done_again_for_a_whole_soak() -> None:
    evidence, fell = Evidence(), RolloutProgress(fell=frozenset({A}))
    fallen(evidence, Stage.DONE, 0)
    assert fallen(evidence, Stage.UNDER_WAY, 0, 10.0)
    for now_s, recovers in ((20.0, False), (319.0, False), (320.0, True)):
        assert (A in evidence.update({Stage.DONE: {A}}, {}, fell, now_s, 300.0).recovered) is recovers


@pytest.mark.parametrize(("every_s", "fails"), [(240.0, True), (310.0, False)])
def test_three_restarts_within_ten_minutes_are_a_final_failure(every_s: float, fails: bool) -> None:
    evidence = Evidence()
    fallen(evidence, Stage.DONE, 0)
    found = [evidence.update({Stage.DONE: {A}}, {A: n}, NOTHING, n * every_s, 300.0).failed for n in (1, 2, 3)]
    assert found[:2] == [set(), set()]
    assert bool(found[2]) is fails


def test_an_instance_that_was_done_need_not_have_seen_what_is_written_later() -> None:
    evidence = Evidence()
    fallen(evidence, Stage.DONE, 0)
    assert evidence.skip_proved({Stage.SETTLING: {A}}, frozenset())[Stage.DONE] == {A}
    assert not evidence.skip_proved({Stage.SETTLING: {A}}, frozenset({A})).get(Stage.DONE)
