"""Nanny at a real CMS: what is under way is declared in a new epoch, and what others hold is left for later."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from hqclient import Client
from hqpb.v1 import instance_pb2
from nanny.actions.activation import _fewer
from nanny.actions.effects import Effects, running
from nanny.actions.stages import stages_of
from nanny.actions.subject import ServiceContext
from nanny.automaton.service import ManagedService
from nanny.records import kinds
from nanny.rollout.policy import Policy
from nanny.rollout.views import Stage
from nanny.snapshots.content import read_content
from nanny.snapshots.wanted import READY
from nanny.world.cms import CmsLeave
from nanny.world.leave import GRANTED, ApprovalAnswer, ApprovalRequest, Hold, NoCms
from nanny.world.pictures import ServiceView
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ActionRecord, InstanceKey, InstanceTargetRecord, ServiceRecord, TupleRecord
from serving.clock import SystemClock
from tests.cms.cloud import Cms, service_of
from tests.nanny.virtual_cloud import SERVICE, virtual_cloud
from tests.support.virtual_time import in_virtual_time

WEB_0 = Hold("nanny-web-1-0-1", frozenset({("ams", "web-0")}))


def request(task: str, *instances: str, comment: str = "batch 1") -> ApprovalRequest:
    return ApprovalRequest(task, "web", [("ams", name) for name in instances], comment)


def order_record(target: pb.Target, order: pb.Order) -> ServiceRecord:
    return ServiceRecord(snapshot=[TupleRecord(snapshot_id="a", target=target, order=order)])


@asynccontextmanager
async def leave_of(cms: Cms) -> AsyncIterator[CmsLeave]:
    leave = CmsLeave([(await cms.server.listening).grpc], SystemClock())
    try:
        yield leave
    finally:
        await leave.close()


async def test_running_batches_are_declared_to_a_cms_in_a_new_epoch_and_stay_granted() -> None:
    async with service_of(10, issuers={"nanny": ()}) as (_, cms), leave_of(cms) as leave:
        assert not await leave.declare([WEB_0])  # nobody asked
        cms.server.controller._epoch.is_first = False  # as after a restore: an epoch with a predecessor
        answer = await leave.ask(request("nanny-web-2-0-1", "web-1"))
        assert not answer.granted
        assert "restored or replaced" in answer.why
        assert await leave.declare([WEB_0])
        assert not await leave.declare([WEB_0])
        assert cms.server.desk.tasks[WEB_0.task].state == "granted"
        assert (await leave.ask(request(WEB_0.task, "web-0", comment="the same work"))).granted
        assert await leave.give_back(WEB_0.task)
        await cms.becomes_granted("nanny-web-2-0-1")


async def test_a_batch_that_the_restored_cms_knows_as_waiting_is_declared_as_running() -> None:
    async with service_of(10, issuers={"nanny": ()}) as (_, cms), leave_of(cms) as leave:
        cms.server.controller._epoch.is_first = False
        assert not (await leave.ask(request(WEB_0.task, "web-0"))).granted
        assert await leave.declare([WEB_0])
        assert cms.server.desk.tasks[WEB_0.task].state == "granted"


def test_granted_batches_and_instances_with_targets_of_their_own_are_declared() -> None:
    batch = [InstanceKey(location="ams", id="web-0")]
    records: dict[str, dict[str, object]] = {
        kinds.ACTION.name: {
            "web/b": ActionRecord(cms_task=WEB_0.task, granted=True, batch=batch),
            "web/c": ActionRecord(cms_task="waits", batch=batch),
        },
        kinds.INSTANCE_TARGET.name: {
            "web/ams/web-1": InstanceTargetRecord(cms_task="own"),
            "web/ams/web-2": InstanceTargetRecord(),
        },
    }
    controller = SimpleNamespace(records=lambda kind: records[kind.name])
    assert running(controller) == [WEB_0, Hold("own", frozenset({("ams", "web-1")}))]  # type: ignore[arg-type]


async def test_a_batch_larger_than_a_floor_ever_allows_is_told_how_many_may_go_at_once() -> None:
    async with service_of(10) as (_, cms), leave_of(cms) as leave:
        answer = await leave.ask(request("nanny-web-1-0-2", "web-0", "web-1"))
        assert (answer.granted, answer.at_most, answer.by_budget) == (False, 1, True)


@pytest.mark.parametrize(
    ("asked", "at_most", "by_budget", "waited_s", "fewer"),
    [
        (2, 1, True, 0.0, 1),
        (2, 0, True, 0.0, 0),
        (2, 0, True, 31.0, 1),
        (2, 0, False, 31.0, 0),
        (1, 0, True, 31.0, 0),
        (8, 8, True, 0.0, 0),
        (9, 4, True, 31.0, 4),
    ],
)
def test_a_roll_out_asks_for_fewer_at_once_where_a_budget_has_no_room_for_more(
    asked: int, at_most: int, by_budget: bool, waited_s: float, fewer: int
) -> None:
    answer = ApprovalAnswer(granted=False, at_most=at_most, by_budget=by_budget)
    assert _fewer(asked, answer, waited_s) == fewer


async def test_a_roll_back_is_urgent_and_needs_no_window() -> None:
    async with service_of(10, rollout_issuers={"nanny": ()}) as (_, cms), leave_of(cms) as leave:
        windows = {"name": "all", "freeze": [{"begin": "2000-01-01", "end": "2100-01-01", "reason": "calm"}]}
        assert (await cms.call_connect("PutWindows", {"windows": windows})).status == 200
        forward = await leave.ask(request("nanny-web-1-0-1", "web-0"))
        assert not forward.granted
        assert forward.retry_s <= 30, "the ok that an operator or another window brings lapses after 2 min"
        assert (await leave.ask(replace(request("nanny-web-2-0-1", "web-1"), is_rollback=True))).granted
        assert cms.server.desk.tasks["nanny-web-2-0-1"].need == "urgent"


async def test_an_order_that_began_may_outlast_its_window_and_a_location_that_it_leaves_out_costs_nothing() -> None:
    """Both are believed of an issuer of roll-outs only; a freeze stops it all the same."""
    async with service_of(10, rollout_issuers={"nanny": ()}) as (_, cms), leave_of(cms) as leave:
        ended = datetime.now(UTC) - timedelta(minutes=20)
        window = {"begin": f"{ended - timedelta(hours=2):%H:%M}", "end": f"{ended:%H:%M}"}
        assert (await cms.call_connect("PutWindows", {"windows": {"name": "w", "hours": [window]}})).status == 200
        hour_ago_ms = round((time.time() - 3_600) * 1_000)
        begun = replace(request("nanny-web-1-1-1", "web-0"), order_began_ms=hour_ago_ms, leave_out=["fra"])
        assert "window w is closed" in (await leave.ask(request("nanny-web-1-0-1", "web-0"))).why
        assert (await leave.ask(begun)).granted
        assert cms.server.desk.book.tasks[begun.task].leave_out == {"fra"}
        assert await leave.give_back(begun.task)
        shorter = {"name": "w", "hours": [window], "overrun": "15m"}
        assert (await cms.call_connect("PutWindows", {"windows": shorter})).status == 200
        assert "window w is closed" in (await leave.ask(replace(begun, task="nanny-web-1-2-1"))).why


async def test_from_other_issuers_neither_the_begin_of_an_order_nor_left_out_locations_count() -> None:
    async with service_of(10) as (_, cms), leave_of(cms) as leave:
        assert (await leave.ask(replace(request("t", "web-0"), order_began_ms=1_000, leave_out=["ams"]))).granted
        task = cms.server.desk.book.tasks["t"]
        assert (task.order_began_at, task.leave_out) == (None, frozenset())


@in_virtual_time
async def test_an_order_says_since_when_it_is_under_way_and_after_a_hold_begins_anew() -> None:
    asked: dict[str, int] = {}

    class Leave(_Tasks):
        async def ask(self, wanted: ApprovalRequest) -> ApprovalAnswer:
            asked.setdefault(wanted.task, wanted.order_began_ms)
            return await super().ask(wanted)

    async with virtual_cloud(5, Leave(0)) as cloud:
        steps = [{"instances": "2"}, {"holdS": 600}, {"instances": "4"}]
        await cloud.create(maxUnavailable="1", soakS=20, step=steps)
        await cloud.activate(await cloud.add("v1"))
        asked.clear()
        await cloud.activate(await cloud.add("v2"))
    first, second, third, fourth, fifth = asked.values()
    assert (first, third) == (0, 0)  # the first of all, and the first after the hold
    assert 0 < second < fourth == fifth
    assert fourth - second > 600_000


@in_virtual_time
async def test_an_instance_that_a_budget_never_lets_go_holds_up_no_other_instance() -> None:
    """It is waited for at the end, as the message says, and it is switched once the budget allows."""
    kept = {"web-0", "web-3"}

    class Leave(_Tasks):
        async def ask(self, wanted: ApprovalRequest) -> ApprovalAnswer:
            if kept.isdisjoint(name for _, name in wanted.instances):
                return await super().ask(wanted)
            self.open.add(wanted.task)
            return ApprovalAnswer(granted=False, why="budget database", by_budget=True, is_hopeless=True)

    leave = Leave(0)
    async with virtual_cloud(6, leave) as cloud:
        await cloud.create(maxUnavailable="2", soakS=20, step=[{"instances": "1"}, {"holdS": 30}])
        await cloud.activate(await cloud.add("v1"))
        v2 = await cloud.add("v2")
        await cloud.target(v2)
        await cloud.sleep(200.0)
        assert await cloud.runs(v2) == set(cloud.names) - kept
        state = await cloud.state(v2)
        assert state.action.message == "waiting for the CMS to approve 1 instance: budget database"
        assert len(leave.open) == 1
        kept.remove("web-3")
        await cloud.sleep(120.0)
        assert await cloud.runs(v2) == set(cloud.names) - kept
        kept.clear()
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=120.0)
        assert not leave.open


async def test_a_budget_without_any_room_is_hopeless_and_one_that_is_used_up_is_not() -> None:
    async with service_of(10) as (_, cms), leave_of(cms) as leave:
        assert (await leave.ask(request("one", "web-0"))).granted
        used_up = await leave.ask(request("two", "web-1"))
        assert (used_up.granted, used_up.by_budget, used_up.is_hopeless) == (False, True, False)
        budget = {"name": "web", "service": "web", "maxUnavailable": "0"}
        assert (await cms.call_connect("PutBudget", {"budget": budget})).status == 200
        hopeless = await leave.ask(request("three", "web-2"))
        assert (hopeless.granted, hopeless.by_budget, hopeless.is_hopeless) == (False, True, True)


@in_virtual_time
async def test_a_batch_that_waits_is_asked_for_anew_when_attributes_of_the_service_change() -> None:
    asked: list[ApprovalRequest] = []

    class Leave(_Tasks):
        async def ask(self, wanted: ApprovalRequest) -> ApprovalAnswer:
            asked.append(wanted)
            granted = await super().ask(wanted)
            return granted if wanted.max_failures == 2 else ApprovalAnswer(granted=False, why="not yet")

    leave = Leave(0)
    async with virtual_cloud(3, leave) as cloud:
        await cloud.create(maxUnavailable="1", soakS=20)
        await cloud.activate(await cloud.add("v1"))
        await cloud.target(v2 := await cloud.add("v2"))
        await cloud.sleep(30.0)
        [first] = leave.open
        info = pb.InfoAttributes(rollout=pb.RolloutPolicy(max_failures="2"))
        update = pb.UpdateServiceRequest(service_id=SERVICE, info=info)
        update.update_mask.paths.append("rollout.max_failures")
        await cloud.nanny.unary("UpdateService", update)
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=300.0)
        assert first not in {one.task for one in asked if one.max_failures == 2}
        assert not leave.open


OPEN, REACHED = pb.ORDER_OUTCOME_OPEN, pb.ORDER_OUTCOME_REACHED


@pytest.mark.parametrize(
    ("record", "is_back"),
    [
        (ServiceRecord(), False),
        (ServiceRecord(rolling_back=True), True),
        (order_record(pb.TARGET_ACTIVE, pb.Order(roll_back=True, outcome=OPEN)), True),
        (order_record(pb.TARGET_ACTIVE, pb.Order(outcome=OPEN)), False),
        (order_record(pb.TARGET_ACTIVE, pb.Order(roll_back=True, outcome=REACHED)), False),  # it is repaired
        (order_record(pb.TARGET_PREPARED, pb.Order(roll_back=True, outcome=OPEN)), False),  # it failed itself
    ],
)
async def test_a_batch_says_whether_it_rolls_back_and_how_many_may_fail(
    record: ServiceRecord, *, is_back: bool
) -> None:
    asked: list[ApprovalRequest] = []

    class Leave(NoCms):
        async def ask(self, wanted: ApprovalRequest) -> ApprovalAnswer:
            asked.append(wanted)
            return GRANTED

    effects = Effects.__new__(Effects)
    effects.leave = Leave()
    subject = SimpleNamespace(id="web", record=record, policy=Policy(), instances=range(6))
    await effects.ask("t", cast("ServiceContext", subject), [("ams", "web-0")], "batch 1")
    assert [(one.is_rollback, one.max_failures) for one in asked] == [(is_back, 1)]


async def test_holds_of_others_are_known_by_host_and_own_ones_are_not_among_them() -> None:
    async with service_of(30) as (_, cms), leave_of(cms) as leave:
        await cms.ask("reboot", "h1")
        await cms.becomes("reboot", "ok")
        assert (await leave.ask(request(WEB_0.task, "web-0"))).granted
        [hold] = await leave.holds_of_others("web")
        assert hold.task == "reboot"
        assert hold.covers(("ams", "web-1"), "h1")
        assert not hold.covers(("ams", "web-0"), "h0")


def test_an_instance_that_others_hold_is_left_for_later_unless_it_is_of_the_own_batch() -> None:
    text = b"{service: web, instances: [{id: web-0}, {id: web-1}], revisions: [{id: v2}]}"
    content = read_content("web", text, ["ams"])
    picture = ServiceView(cast("Mapping[str, Client]", {"ams": None}), SystemClock())
    for name in ("web-0", "web-1"):
        picture.put_instance(("ams", name), _ready(name))
    subject = ServiceContext(
        "web",
        ServiceRecord(),
        ManagedService(),
        Policy(),
        picture,
        held_by_others=frozenset({("ams", "web-1")}),
    )
    stages = stages_of(subject, content)
    assert (stages[Stage.UP], stages[Stage.HELD]) == ({("ams", "web-0")}, {("ams", "web-1")})
    own = stages_of(subject, content, own=[("ams", "web-1")])
    assert {stage for stage, keys in own.items() if keys} == {Stage.UP}


def _ready(name: str) -> instance_pb2.Instance:
    made = instance_pb2.Instance()
    made.meta.id, made.meta.service_id, made.meta.version = name, "web", 1
    made.spec.revision.add(id="v1", target=READY)
    made.status.revision.add(id="v1").ready.status = instance_pb2.CONDITION_STATUS_TRUE
    made.status.revision[0].ready.reason = "Ready"
    made.status.ready.status = instance_pb2.CONDITION_STATUS_TRUE
    return made


class _Tasks(NoCms):
    """A CMS that grants everything; `fails`: how often it does not take a task back."""

    address = "cms"

    def __init__(self, fails: int) -> None:
        self.fails = fails
        self.open: set[str] = set()

    async def ask(self, wanted: ApprovalRequest) -> ApprovalAnswer:
        self.open.add(wanted.task)
        return GRANTED

    async def give_back(self, task: str) -> bool:
        self.fails -= bool(self.fails)
        if not self.fails:
            self.open.discard(task)
        return not self.fails


@pytest.mark.parametrize("fails", [0, 4])
@in_virtual_time
async def test_an_order_given_again_right_after_an_abort_gives_back_the_leave_of_the_first_one(fails: int) -> None:
    leave = _Tasks(0)
    async with virtual_cloud(3, leave) as cloud:
        await cloud.create(soakS=20)
        await cloud.activate(await cloud.add("v1"))
        v2 = await cloud.add("v2")
        await cloud.target(v2, pb.TARGET_PREPARED)
        await cloud.until(v2, pb.CURRENT_STATE_PREPARED)
        cloud.agents.silent.add("web-0")  # it does not see the switch
        await cloud.target(v2)
        while not await cloud.runs(v2):
            await cloud.sleep(1.0)
        first, leave.fails = set(leave.open), fails
        assert first
        order = (await cloud.state(v2)).order.id
        await cloud.nanny.unary("AbortRollout", pb.AbortRolloutRequest(service_id=SERVICE, order_id=order))
        await cloud.target(v2)
        await cloud.sleep(5.0)
        [task] = leave.open & first
        said = (await cloud.state(v2)).action.message
        assert said == f"waits for the end of the earlier order's task {task} at the CMS"
        cloud.agents.silent.clear()
        await cloud.sleep(10.0)
        assert not leave.open & first
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE)
        assert not leave.open
