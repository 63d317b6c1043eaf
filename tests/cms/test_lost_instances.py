"""A roll-out need not count on lost instances, up to the failures that its service allows; other work must."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cms.hqview.reading import ledger_instance
from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.claims import claim_of, counted_total
from cms.ledger.decide import decide
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.states import State
from cms.ledger.tasks import Need, Task
from cms.ledger.why import explain
from control.amounts import Amount
from hqpb.v1 import instance_pb2 as model
from tests.cms.cloud import Cms, Reply, service_of

NOW = 1_000_000.0


def key(number: int) -> InstanceKey:
    return InstanceKey("ams", f"i{number}")


def ledger(lost: int, *tasks: Task, rule: str = "1", floor: str = "") -> TaskLedger:
    """Six instances of web, one a host; so many of them, from the last, are lost."""
    budget = Budget("web", "web", max_unavailable=Amount.parse(rule))
    if floor:
        budget = Budget("web", "web", min_ready=Amount.parse(floor))
    book = TaskLedger.empty(Rules(), ["ams"], Budgets([budget]))
    book.picture.believe(["ams"])
    for number in range(6):
        is_lost = number >= 6 - lost
        book.picture.put_instance(
            Instance(key(number), "web", f"h{number}", is_ready=not is_lost, is_silent=is_lost, reason="ReportTimeout")
        )
        book.picture.record_report(key(number), NOW)
    for task in tasks:
        book.put_task(task)
    return book


def roll_out(number: int = 0, max_failures: int = 1, order: int = 9) -> Task:
    return Task(f"t{order}", order, "roll-out", instances=(key(number),), need=Need.ROLLOUT, max_failures=max_failures)


def held(number: int, need: Need) -> Task:
    return Task("held", 1, "reboot", hosts=(f"h{number}",), need=need, state=State.GRANTED)


@pytest.mark.parametrize(
    ("lost", "max_failures", "rule", "granted"),
    [
        (0, 1, "1", True),
        (1, 1, "1", True),
        (1, 0, "1", False),
        (2, 1, "1", False),
        (2, 2, "1", True),
        (1, 1, "0", False),
        (1, 1, "10%", True),
        (2, 1, "30%", False),  # of five, one: one is down beside the one that is left out
        (2, 2, "30%", True),
        (1, 9, "1", True),
    ],
)
def test_lost_instances_are_left_out_up_to_max_failures(lost: int, max_failures: int, rule: str, granted: bool) -> None:
    book = ledger(lost, roll_out(max_failures=max_failures), rule=rule)
    assert bool(decide(book, NOW).changes) is granted


@pytest.mark.parametrize(("floor", "granted"), [("5", False), ("4", True), ("80%", True), ("81%", False)])
def test_a_number_that_must_stay_ready_stays_whoever_is_lost(floor: str, granted: bool) -> None:
    assert bool(decide(ledger(1, roll_out(), floor=floor), NOW).changes) is granted


@pytest.mark.parametrize("need", list(Need))
def test_an_instance_held_by_a_repair_still_counts_as_lost_and_one_held_by_other_work_does_not(need: Need) -> None:
    """Planned work silences instances, too: those may not be left out for a roll-out beside it."""
    book = ledger(1, held(5, need), roll_out())
    assert bool(decide(book, NOW).changes) is (need is Need.REPAIR)
    book.put_task(roll_out())
    book.drop_task("held", NOW)
    assert decide(book, NOW).changes


def test_other_work_counts_on_lost_instances_and_one_that_comes_back_is_counted_again() -> None:
    book = ledger(1, Task("reboot", 3, "reboot", hosts=("h0",), need=Need.PLANNED))
    assert not decide(book, NOW).changes
    [ready] = [one for one in book.picture.instances.values() if one.is_silent]
    book = ledger(1, replace(roll_out(), state=State.GRANTED), roll_out(1, order=10))
    assert not decide(book, NOW).changes
    book.picture.put_instance(replace(ready, is_ready=True, is_silent=False))
    assert book.picture.tallies["web"].lost == 0
    assert not decide(book, NOW).changes


@pytest.mark.parametrize(
    ("leave_out", "certain", "is_ready", "rule", "granted"),
    [
        ("fra", ["ams"], True, "1", True),  # it does not answer: what it has costs nothing
        ("", ["ams"], True, "1", False),
        ("ams", ["ams"], True, "1", False),
        ("fra", ["ams", "fra"], False, "1", True),  # it answers, and nothing is ready there
        ("fra", ["ams", "fra"], True, "1", True),
        ("fra", ["ams"], True, "0", False),  # in the others the budget holds
        ("fra", ["ams"], True, "19%", True),  # of six: one; of nine, too
    ],
)
def test_a_location_that_a_roll_out_leaves_out_costs_nothing(
    leave_out: str, certain: list[str], *, is_ready: bool, rule: str, granted: bool
) -> None:
    """The location has three more instances."""
    book = ledger(0, replace(roll_out(max_failures=0), leave_out=frozenset({leave_out})), rule=rule)
    for number in range(3):
        book.picture.put_instance(Instance(InstanceKey("fra", f"f{number}"), "web", f"f{number}", is_ready=is_ready))
        book.picture.record_report(InstanceKey("fra", f"f{number}"), NOW)
    book.picture.believe(certain)
    assert bool(decide(book, NOW).changes) is granted


def test_an_instance_lost_in_a_location_that_is_left_out_is_taken_off_only_once() -> None:
    task = replace(roll_out(max_failures=1), leave_out=frozenset({"fra"}))
    book = ledger(1, task, rule="1")
    lost = Instance(InstanceKey("fra", "f0"), "web", "f0", is_ready=False, is_silent=True)
    book.picture.put_instance(lost)
    book.picture.believe(["ams", "fra"])
    [claim] = [claim_of([task], book.picture, book.limits, book.locations)]
    assert counted_total(book.picture.tallies["web"], claim, book.picture) == 5


def test_why_says_how_many_are_left_out() -> None:
    book = ledger(2, roll_out())
    why = explain(book, decide(book, NOW), book.tasks["t9"], NOW)
    assert "must keep 4 of 5 available, 1 left out and would have 3" in why.message
    assert (why.budgets[0].total, why.budgets[0].floor) == (5, 4)


@pytest.mark.parametrize(
    ("status", "reason", "is_silent"),
    [
        (model.CONDITION_STATUS_TRUE, "", False),
        (model.CONDITION_STATUS_FALSE, "ReportTimeout", True),
        (model.CONDITION_STATUS_FALSE, "NeverReported", False),
        (model.CONDITION_STATUS_UNKNOWN, "", False),
        (None, "", False),
    ],
)
def test_an_instance_is_silent_if_hq_heard_it_before_and_no_longer_does(
    status: model.ConditionStatus | None, reason: str, is_silent: bool
) -> None:
    message = model.Instance()
    if status is not None:
        message.status.agent.CopyFrom(model.Condition(status=status, reason=reason))
    assert ledger_instance("ams", message, None, is_new=False).is_silent is is_silent


@pytest.mark.parametrize("bound", [True, False])
async def test_max_failures_counts_only_from_issuers_that_the_settings_name(*, bound: bool) -> None:
    async with service_of(6, rollout_issuers={"nanny": ()} if bound else {}) as (_, cms):
        picture = cms.server.desk.book.picture
        gone = replace(picture.instances[InstanceKey("ams", "web-5")], is_ready=False, is_silent=True)
        picture.put_instance(gone)
        asked = await ask(cms, "a", max_failures=1)
        assert (asked.body["state"]["status"] == "TASK_STATUS_OK") is bound, asked.body
        assert (await ask(cms, "a", max_failures=2)).status == 200  # the same request: no other content


async def ask(cms: Cms, task_id: str, **more: object) -> Reply:
    said = {"id": task_id, "action": "roll-out", "issuer": "nanny", "instance": [{"location": "ams", "id": "web-0"}]}
    return await cms.call_connect("CreateTask", {"task": {**said, **more}})
