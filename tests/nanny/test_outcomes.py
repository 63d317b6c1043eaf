"""Each order ends once: reached, failed, rolled back, superseded or cancelled; and `--wait` says which."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from hqcli.exits import Exit
from hqclient import HqApiError
from hqclient.credential_files import CredentialFiles
from nanny.automaton.states import Current, SnapshotEvent, Target
from nanny.records import kinds
from nanny.records.services import tuple_of
from nanny.records.timeline import timeline_after
from nannyctl.commands import orders
from nannyctl.commands.waiting import AtRest, TargetReached, rolled_back_result, wait_for_goal
from nannyctl.nanny_server import NannyServer, new_request_id
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ActionRecord, StepOrder
from tests.nanny.orders import Ordered, refused
from tests.nanny.virtual_cloud import SERVICE, VirtualCloud, good, never_ready, virtual_cloud
from tests.support.virtual_time import in_virtual_time

ROLLS_BACK = {"rollout": pb.RolloutPolicy(roll_back=True)}


def active(**info: Any) -> Ordered:
    """`a` is ACTIVE, `b` is being activated."""
    web = Ordered(**info).add("a", "b", "c").activate("a").settle()
    return web.activate("b").until("b", Current.ACTIVATING)


def test_an_order_is_open_until_its_snapshot_has_arrived() -> None:
    web = active()
    assert web.outcome("b") == ("OPEN", "", "")
    web.ended("b", SnapshotEvent.DONE, "active; left out: 1 held by others")
    assert web.outcome("b") == ("REACHED", "", "active; left out: 1 held by others")
    assert web.target("a", Target.CREATED).settle().outcome("a")[0] == "REACHED"
    assert web.activate("b").outcome("b")[0] == "REACHED"  # it is ACTIVE already


def test_an_order_that_stopped_short_has_failed() -> None:
    web = active().ended("b", SnapshotEvent.FAILED, "web-1 did not become ready")
    assert web.outcome("b") == ("FAILED", "", "web-1 did not become ready")
    web.target("c", Target.PREPARED).until("c", Current.PREPARING).ended("c", SnapshotEvent.FAILED, "no space")
    assert web.outcome("c") == ("FAILED", "", "no space")


def test_an_order_whose_roll_back_ended_is_rolled_back() -> None:
    web = active(**ROLLS_BACK).ended("b", SnapshotEvent.FAILED, "web-1 did not become ready")
    assert web.outcome("b") == ("OPEN", "a", "web-1 did not become ready")
    web.ended("a", SnapshotEvent.DONE)
    assert web.outcome("b") == ("ROLLED_BACK", "a", "web-1 did not become ready")


def test_an_order_that_people_abort_has_failed_and_then_the_policy_decides() -> None:
    web = active()
    web.send(comment="errors", aborted=StepOrder(order_id="o2"))
    assert (web.current("b"), web.outcome("b")) == (Current.BROKEN, ("FAILED", "", "aborted by ann: errors"))
    assert "ann: b roll-out aborted" in web.history()
    back = active(**ROLLS_BACK)
    back.send(aborted=StepOrder(order_id="o2"))
    assert back.outcome("b") == ("OPEN", "a", "aborted by ann")
    assert "no roll-out is under way" in refused(lambda: back.send(aborted=StepOrder(order_id="o2")))
    assert back.settle().outcome("b") == ("ROLLED_BACK", "a", "aborted by ann")


def test_promotions_and_aborts_count_only_for_the_order_and_the_step_under_way() -> None:
    web = active()
    steps = [pb.RolloutStep(instances="1"), pb.RolloutStep(promote=True)]
    number = tuple_of(web.record, "b").action  # type: ignore[union-attr]
    key = kinds.of_snapshot(SERVICE, "b")
    for over, step, why in (
        (0, 2, "step 1 is under way, not 2"),
        (0, 1, "step 1 does not wait for people"),
        (2, 2, "step none is under way, not 2"),
        (1, 2, ""),
        (1, 2, "step none is under way, not 2"),
    ):
        web.change.put(kinds.ACTION, key, ActionRecord(number=number, step=steps, steps_over=over))
        order = StepOrder(order_id="o2", number=step)
        if why:
            assert why in refused(lambda order=order: web.send(promoted=order))
        else:
            web.send(promoted=order)
    for order_id in ("o1", "none", ""):
        assert refused(lambda order_id=order_id: web.send(promoted=StepOrder(order_id=order_id, number=2)))
    assert "ann: b step 2 promoted" in web.history()
    assert web.ended("b", SnapshotEvent.DONE).outcome("b")[0] == "REACHED"
    assert tuple_of(web.record, "b").promoted == 0  # type: ignore[union-attr]


def test_two_steps_promoted_at_once_each_show_who_promoted() -> None:
    """The second was promoted before the worker looked again, so the time line did not have it yet."""
    web, key = active(), kinds.of_snapshot(SERVICE, "b")
    number = tuple_of(web.record, "b").action  # type: ignore[union-attr]
    action = ActionRecord(number=number, step=[pb.RolloutStep(promote=True)] * 3)
    web.change.put(kinds.ACTION, key, action)
    for step in (1, 2):
        web.send(promoted=StepOrder(order_id="o2", number=step), author=f"ann {step}")
    timeline = web.change.get(kinds.ROLLOUT, key)
    action.steps_over = 2
    for record in (timeline, timeline_after(timeline, action, lambda _key: ("", ""), web.clock_ms)):
        assert [one.promoted.author for one in record.step[:2]] == ["ann 1", "ann 2"]
    assert [one.HasField("end_time") for one in record.step] == [True, True, False]


def test_an_order_whose_roll_back_failed_or_was_superseded_has_failed() -> None:
    failed = active(**ROLLS_BACK).ended("b", SnapshotEvent.FAILED, "bad").ended("a", SnapshotEvent.FAILED, "worse")
    assert failed.outcome("b") == ("FAILED", "a", "bad; the roll-back to a failed, too: worse")
    superseded = active(**ROLLS_BACK).ended("b", SnapshotEvent.FAILED, "bad").activate("c")
    assert superseded.outcome("b")[:2] == ("FAILED", "c")
    assert "the roll-back to a was not finished: another target set by ann" in superseded.outcome("b")[2]
    stopped = active(**ROLLS_BACK).ended("b", SnapshotEvent.FAILED, "bad").stop()
    assert stopped.outcome("b")[:2] == ("FAILED", "")


def test_an_order_is_superseded_by_the_activation_of_another_snapshot() -> None:
    web = active().target("c", Target.ACTIVE, author="bob", comment="it is better")
    assert web.outcome("b") == ("SUPERSEDED", "c", "another target set by bob: it is better")
    assert web.settle().outcome("c")[0] == "REACHED"


def test_an_order_to_switch_off_the_snapshot_of_a_roll_back_is_superseded_by_it() -> None:
    web = active(**ROLLS_BACK).target("a", Target.CREATED)
    assert web.outcome("a")[0] == "OPEN"  # until b is ACTIVE
    web.ended("b", SnapshotEvent.FAILED, "bad")
    assert web.outcome("a") == ("SUPERSEDED", "a", "another snapshot failed and is rolled back to this one")
    assert web.settle().outcome("a")[0] == "SUPERSEDED"
    kept = active().target("a", Target.CREATED).ended("b", SnapshotEvent.FAILED, "bad")
    assert kept.outcome("a") == ("FAILED", "", "it serves on, as b did not become ACTIVE")


def test_an_order_is_cancelled_by_a_stop() -> None:
    web = active()
    web.send(author="bob", comment="fire", stopped=True)
    assert web.outcome("b") == ("CANCELLED", "", "stopped by bob: fire")


def test_orders_of_others_for_other_snapshots_leave_an_order_open() -> None:
    web = active().target("c", Target.PREPARED).pause()
    assert web.outcome("b")[0] == "OPEN"


# --- --wait -----------------------------------------------------------------------------------------------------------


class DirectServer:
    """What the commands call, without sockets."""

    def __init__(self, cloud: VirtualCloud) -> None:
        self._cloud = cloud

    async def call(self, method: str, request: Any) -> Any:
        return await self._cloud.nanny.unary(method, request)

    async def watch(self, request: pb.WatchServiceRequest) -> AsyncIterator[pb.Service]:
        async for answer in self._cloud.nanny.stream("WatchService", request):
            yield answer.service


async def activate(cloud: VirtualCloud, snapshot: str, wait_s: float = 3_600.0, output: str = "table") -> Exit:
    """`nanny target web ACTIVE SNAPSHOT --wait ...`."""
    request = pb.SetTargetRequest(
        service_id=SERVICE, snapshot_id=snapshot[:8], target=pb.TARGET_ACTIVE, request_id=new_request_id()
    )
    return await orders._run_order(cast("NannyServer", DirectServer(cloud)), "SetTarget", request, wait_s, output)


async def beside(cloud: VirtualCloud, snapshot: str, order: Any) -> Exit:
    """How waiting for a snapshot ends, if something else is ordered meanwhile."""
    waiting = asyncio.create_task(activate(cloud, snapshot))
    await cloud.until(snapshot, pb.CURRENT_STATE_ACTIVATING)
    await order
    return await waiting


@pytest.mark.parametrize("output", ["table", "json"])
@in_virtual_time
async def test_wait_does_not_end_with_0_after_a_roll_back_and_says_what_is_active_and_why(
    output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create(rollBack=True)
        v1, bad = await cloud.add("v1"), await cloud.add("bad", never_ready)
        assert await activate(cloud, v1) is Exit.OK
        capsys.readouterr()
        assert await activate(cloud, bad, output=output) == 11
        shown, complaint = capsys.readouterr()
        last = complaint.strip().splitlines()[-1]
        assert f"{bad[:8]} ACTIVE: rolled back to {v1[:8]}: web-0 (ams) did not become ready" in last
        assert f"{v1[:8]} is ACTIVE" in last
        if output == "json":
            [order] = [one["order"] for one in json.loads(shown)["service"]["snapshot"] if one["snapshotId"] == bad]
            assert (order["outcome"], order["insteadSnapshotId"]) == ("ORDER_OUTCOME_ROLLED_BACK", v1)
            assert "did not become ready" in order["message"]
        else:
            assert "rolled back to" in shown


@in_virtual_time
async def test_a_service_that_was_rolled_back_counts_as_such_until_something_else_is_ordered() -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create(rollBack=True)
        v1, bad = await cloud.add("v1"), await cloud.add("bad", never_ready)
        assert await activate(cloud, v1) is Exit.OK
        assert rolled_back_result(await cloud.service()) is None
        assert await activate(cloud, bad) == 11
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
        result = rolled_back_result(await cloud.service())
        assert result is not None
        assert result.code == 11
        assert "did not become ready" in result.message
        assert await activate(cloud, v1) is Exit.OK
        assert rolled_back_result(await cloud.service()) is None


@in_virtual_time
async def test_wait_ends_when_another_snapshot_is_ordered_and_not_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create()
        v1, v2, v3 = [await cloud.add(title) for title in ("v1", "v2", "v3")]
        await cloud.activate(v1)
        assert await beside(cloud, v2, cloud.target(v3)) == 12
        assert f"{v2[:8]} ACTIVE: superseded by {v3[:8]}: another target set by ann" in capsys.readouterr().err
        await cloud.until(v3, pb.CURRENT_STATE_ACTIVE)
        assert await beside(cloud, v2, cloud.target(v2, request_id="another")) == 12
        assert "superseded: its target was set to ACTIVE again by ann" in capsys.readouterr().err


@in_virtual_time
async def test_wait_ends_with_13_when_the_service_is_stopped_and_with_1_when_it_failed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create()
        v1, v2, bad = [await cloud.add(title, program) for title, program in PROGRAMS]
        await cloud.activate(v1)
        stop = cloud.nanny.unary(
            "StopService", pb.StopServiceRequest(service_id=SERVICE, by=pb.Authorship(author="bob"))
        )
        assert await beside(cloud, v2, stop) == 13
        assert "cancelled: stopped by bob; no snapshot has the target ACTIVE" in capsys.readouterr().err
        await cloud.until(v1, pb.CURRENT_STATE_PREPARED)
        assert await activate(cloud, v1) == 0
        assert await activate(cloud, bad) == 1
        assert await activate(cloud, v2, wait_s=0.5) == 8


PROGRAMS = (("v1", good), ("v2", good), ("bad", never_ready))


@in_virtual_time
async def test_a_wait_for_a_whole_service_ends_with_the_news_that_its_roll_out_was_rolled_back() -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create(rollBack=True)
        v1, bad = await cloud.add("v1"), await cloud.add("bad", never_ready)
        await cloud.activate(v1)
        await cloud.target(bad)
        server = cast("NannyServer", DirectServer(cloud))
        assert await wait_for_goal(server, SERVICE, 3_600.0, AtRest()) == 11
        assert await wait_for_goal(server, SERVICE, 60.0, AtRest()) == 0


@in_virtual_time
async def test_a_wait_for_a_stop_ends_with_the_news_that_somebody_activates_a_snapshot() -> None:
    async with virtual_cloud(3) as cloud:
        await cloud.create()
        v1 = await cloud.add("v1")
        await cloud.activate(v1)
        request = pb.StopServiceRequest(service_id=SERVICE)
        server = cast("NannyServer", DirectServer(cloud))
        waiting = asyncio.create_task(orders._run_order(server, "StopService", request, 3_600.0, "table"))
        await cloud.sleep(0.2)
        await cloud.target(v1)
        assert await waiting == 12


WAITS = {
    pb.ORDER_OUTCOME_OPEN: None,
    pb.ORDER_OUTCOME_REACHED: 0,
    pb.ORDER_OUTCOME_FAILED: 1,
    pb.ORDER_OUTCOME_ROLLED_BACK: 11,
    pb.ORDER_OUTCOME_SUPERSEDED: 12,
    pb.ORDER_OUTCOME_CANCELLED: 13,
}


@pytest.mark.parametrize("outcome", [number for number in pb.OrderOutcome.values() if number])
def test_waiting_ends_as_the_api_says_for_every_way_in_which_an_order_can_end(outcome: pb.OrderOutcome) -> None:
    order = pb.Order(id="mine", target=pb.TARGET_ACTIVE, outcome=outcome, message="why")
    service = pb.Service(snapshot=[pb.SnapshotState(snapshot_id="abcdefgh", order=order, target=pb.TARGET_ACTIVE)])
    verdict = TargetReached("mine", "abcdefgh", pb.TARGET_ACTIVE).verdict(service)
    assert (verdict and int(verdict.code)) == WAITS[outcome]
    assert verdict is None or verdict.code is Exit.OK or "why" in verdict.message


@in_virtual_time
async def test_an_order_for_what_does_not_exist_ends_with_3() -> None:
    async with virtual_cloud(1) as cloud:
        await cloud.create()
        with pytest.raises(HqApiError) as refused:
            await activate(cloud, "0123456789")
        assert NannyServer((), 1.0, CredentialFiles()).report_failure(refused.value, writing=True) is Exit.NOT_FOUND
