"""The time line of a roll-out: who ordered it, its batches, whom it judged and why, and what became of the order."""

from __future__ import annotations

import pytest

from hqclient import HqApiError
from nanny.records import kinds
from nanny.records.timeline import BATCHES, JUDGED, OUTPUT_BYTES, OUTPUTS, ended_timeline, timeline_after
from nannyctl.output.rollouts import show_rollout
from nannyctl.output.services import show_service
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ActionRecord, InstanceKey, RolloutRecord
from tests.nanny.virtual_cloud import SERVICE, Looks, VirtualCloud, virtual_cloud
from tests.support.virtual_time import in_virtual_time


def crashes(_instance: str, _age_s: float) -> Looks:
    return Looks(ready=False, restarts=1, output="cannot open /etc/web.conf\nbye")


def falls_once(instance: str, age_s: float) -> Looks:
    """It restarts once, after its batch was done."""
    return Looks(age_s >= 2.0 and not (instance == "web-0" and 30 <= age_s < 60), restarts=int(age_s >= 30))


async def rollout_of(cloud: VirtualCloud, snapshot: str = "") -> pb.Rollout:
    request = pb.GetRolloutRequest(service_id=SERVICE, snapshot_id=snapshot)
    answer = await cloud.nanny.unary("GetRollout", request)
    assert isinstance(answer, pb.GetRolloutResponse)
    return answer.rollout


@in_virtual_time
async def test_a_roll_out_has_its_batches_with_begin_and_end() -> None:
    async with virtual_cloud(4) as cloud:
        await cloud.create(maxUnavailable="2", soakS=20)
        assert await rollout_of(cloud) == pb.Rollout()
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        v2 = await cloud.add("v2")
        await cloud.activate(v2)
        shown = await rollout_of(cloud)
        assert (shown.snapshot_id, shown.ordered.author) == (v2, "ann")
        assert shown.order.outcome == pb.ORDER_OUTCOME_REACHED
        assert [(one.number, one.instances) for one in shown.batch] == [(1, 2), (2, 2)]
        assert shown.batch[0].instance[:] == ["web-0 (ams)", "web-1 (ams)"]
        times = [
            shown.ordered.time,
            shown.begin_time,
            *(time for one in shown.batch for time in (one.ask_time, one.begin_time, one.end_time)),
            shown.end_time,
            shown.order.end_time,
        ]
        moments = [time.ToNanoseconds() for time in times]
        assert moments == sorted(moments)
        assert all(moments)
        assert not shown.judged
        assert (await rollout_of(cloud, v1[:8])).snapshot_id == v1


@pytest.mark.long
@in_virtual_time
async def test_a_failed_roll_out_says_which_instance_failed_why_and_what_it_printed_last() -> None:
    async with virtual_cloud(4) as cloud:
        await cloud.create(maxUnavailable="1", rollBack=True)
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        bad = await cloud.add("bad", crashes)
        await cloud.target(bad)
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVATING)
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
        shown = await rollout_of(cloud, bad)
        assert shown.order.outcome == pb.ORDER_OUTCOME_ROLLED_BACK
        [judged] = shown.judged
        assert (judged.id, judged.location, judged.verdict) == ("web-0", "ams", "failed")
        assert judged.message == "ContainerNotReady"
        text = show_rollout(SERVICE, shown)
        assert f"web: {bad[:8]} is PREPARED, ordered rolled back to {v1[:8]}: web-0 (ams) did not become" in text
        assert "  | cannot open /etc/web.conf\n  | bye" in text
        order = ("ordered by ann", "batch 1 begins: web-0 (ams)", "the roll-out ended", "the order ended: rolled back")
        assert sorted(order, key=text.index) == list(order)
        await cloud.target(bad, pb.TARGET_DESTROYED)
        await cloud.until(bad, pb.CURRENT_STATE_UNSPECIFIED)
        await cloud.activate(await cloud.add("v3"))
        assert f"{SERVICE}/{bad}" not in cloud.server.controller.records(kinds.ROLLOUT)
        with pytest.raises(HqApiError, match="has no state"):
            await rollout_of(cloud, bad)


@in_virtual_time
async def test_the_live_table_names_the_instances_judged_while_a_roll_out_is_under_way() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1", maxFailures="2", soakS=20)
        await cloud.activate(await cloud.add("v1"))
        v2 = await cloud.add("v2", falls_once)
        await cloud.target(v2)
        while not (state := await cloud.state(v2)).action.judged:
            assert state.order.outcome == pb.ORDER_OUTCOME_OPEN, state
            await cloud.sleep(1.0)
        assert "fell: web-0 (ams): ContainerNotReady" in show_service(await cloud.service())
        listed = (await cloud.nanny.unary("ListServices", pb.ListServicesRequest())).service[0]
        assert not any(one.action.judged for one in listed.snapshot)


@in_virtual_time
async def test_the_time_line_has_the_steps_with_who_promoted_and_who_aborted() -> None:
    async with virtual_cloud(6) as cloud:
        steps = [{"instances": "1", "weight": "5%"}, {"holdS": 20}, {"promote": True}]
        await cloud.create(maxUnavailable="2", soakS=5, step=steps)
        await cloud.activate(await cloud.add("v1"))
        assert not (await rollout_of(cloud)).step
        v2 = await cloud.add("v2")
        by = pb.Authorship(author="ann", comment="few errors")
        for method, ask in (("AbortRollout", pb.AbortRolloutRequest), ("PromoteRollout", pb.PromoteRolloutRequest)):
            await cloud.target(v2, request_id=method)
            while (await cloud.state(v2)).action.step_number != 3:
                await cloud.sleep(1.0)
            order = ask(service_id=SERVICE, order_id=(await cloud.state(v2)).order.id, step_number=3, by=by)
            await cloud.nanny.unary(method, order)
            shown = await rollout_of(cloud, v2[:8])
            assert [one.step.hold_s for one in shown.step] == [0, 20, 0]
            held = shown.step[1].end_time.ToMilliseconds() - shown.step[1].begin_time.ToMilliseconds()
            assert 20_000 <= held < 25_000
            assert shown.HasField("aborted") == (method == "AbortRollout")
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE)
        shown = await rollout_of(cloud)
        assert [(one.promoted.author, one.HasField("end_time")) for one in shown.step] == [
            ("", True),
            ("", True),
            ("ann", True),
        ]
        text = show_rollout(SERVICE, shown)
        told = ["step 1 begins: instances: 1, weight: 5%", "step 2 begins: hold: 20s", "step 2 is over"]
        told += ["step 3 begins: promote: manual", "step 3 promoted by ann: few errors", "step 3 is over"]
        assert sorted(told, key=text.index) == told
        aborted = pb.Rollout(aborted=by, step=[pb.RolloutStepRecord(check_result="0.3 is not below 0.05")])
        assert "aborted by ann: few errors" in show_rollout(SERVICE, aborted)


# --- bounds -----------------------------------------------------------------------------------------------------------


def keys(*numbers: int) -> list[InstanceKey]:
    return [InstanceKey(location="ams", id=f"web-{number}") for number in numbers]


def says(_: InstanceKey) -> tuple[str, str]:
    return "x" * 5_000, "é" * 5_000


@pytest.mark.long
def test_the_time_line_is_bounded_whatever_happens() -> None:
    record, action = None, ActionRecord(number=7, since_unix_ms=1)
    for number in range(300):
        del action.batch[:]
        action.batches_done, action.granted = number, False
        record = timeline_after(record, action, says, number)
        action.batch.extend(keys(*range(1_000)))
        action.granted = True
        record = timeline_after(record, action, says, number)
    action.failed.extend(keys(*range(200)))
    record = timeline_after(record, action, says, 300)
    assert record is not None
    assert (len(record.batch), record.batch[-1].number, record.batch[-1].instances) == (BATCHES, 300, 1_000)
    assert (len(record.judged), sum(bool(one.output) for one in record.judged)) == (JUDGED, OUTPUTS)
    assert len(record.judged[0].output.encode()) <= OUTPUT_BYTES
    assert record.ByteSize() < 25_000
    assert timeline_after(record, action, says, 301) == record


@pytest.mark.parametrize(
    ("fell", "failed", "verdicts"),
    [
        ([1], [], {"web-1": "fell"}),
        ([1], [1], {"web-1": "failed"}),
        ([], [1], {"web-1": "failed"}),
        ([1], [2], {"web-1": "fell", "web-2": "failed"}),
    ],
)
def test_an_instance_that_failed_for_good_is_not_shown_as_one_that_fell(
    fell: list[int], failed: list[int], verdicts: dict[str, str]
) -> None:
    record = timeline_after(None, ActionRecord(number=1, fell=keys(*fell)), says, 1)
    for now_ms in (2, 3):
        action = ActionRecord(number=1, fell=keys(*fell), failed=keys(*failed))
        record = timeline_after(record, action, says, now_ms)
        assert {one.id: one.verdict for one in record.judged} == verdicts


def test_a_batch_that_is_not_approved_is_given_up_and_another_action_begins_anew() -> None:
    action = ActionRecord(number=1, batch=keys(1, 2), cms_task="t")
    record = timeline_after(None, action, says, 10)
    record = timeline_after(record, ActionRecord(number=1), says, 20)
    [batch] = record.batch
    assert (batch.cms_task, batch.HasField("begin_time"), batch.end_time.ToMilliseconds()) == ("t", False, 20)
    assert "batch 1 is given up" in show_rollout("web", pb.Rollout(batch=[batch]))
    assert not timeline_after(record, ActionRecord(number=2), says, 30).batch
    assert ended_timeline(RolloutRecord(), keys(1), says, 40).judged[0].id == "web-1"


def test_all_steps_but_the_last_are_over_in_a_roll_out_that_an_earlier_version_began() -> None:
    action = ActionRecord(number=1, step=[pb.RolloutStep(hold_s=1)] * 3, steps_over=2)
    record = timeline_after(RolloutRecord(number=1), action, says, 10)
    assert [one.HasField("end_time") for one in record.step] == [True, True, False]
    assert timeline_after(record, action, says, 20) == record


@in_virtual_time
@pytest.mark.parametrize("ends", ["another", "abort", "stop"])
async def test_another_order_an_abort_or_a_stop_ends_the_time_line_of_a_roll_out(ends: str) -> None:
    async with virtual_cloud(4) as cloud:
        await cloud.create(maxUnavailable="2", soakS=20)
        await cloud.activate(await cloud.add("v1"))
        v2, v3 = await cloud.add("v2", lambda _name, _age_s: Looks(ready=False)), await cloud.add("v3")
        await cloud.target(v2, request_id="o2")
        while not (await rollout_of(cloud, v2[:8])).batch:
            await cloud.sleep(1.0)
        by = pb.Authorship(author="ann")
        if ends == "another":
            await cloud.target(v3)
        elif ends == "abort":
            order = (await cloud.state(v2)).order.id
            request = pb.AbortRolloutRequest(service_id=SERVICE, order_id=order, by=by)
            await cloud.nanny.unary("AbortRollout", request)
        else:
            await cloud.nanny.unary("StopService", pb.StopServiceRequest(service_id=SERVICE, by=by))
        shown = await rollout_of(cloud, v2[:8])
        assert shown.HasField("end_time")
        assert shown.batch[-1].end_time == shown.end_time
