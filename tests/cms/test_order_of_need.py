"""Repairs, urgent work, roll-outs and planned work: who goes first, and what is taken back for whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.calendar import Calendar, CalendarRule, Freeze
from cms.ledger.decide import TaskChange, decide
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.limits import DomainLimit, DomainLimits, Site
from cms.ledger.states import State, TaskEvent
from cms.ledger.tasks import Need, Task
from control.amounts import Amount
from tests.cms.cloud import service_of
from tests.cms.test_hqctl import hqctl

NOW = 1_000_000.0


_RULES: Final = Rules()


def ledger(*tasks: Task, most: int = 2, rules: Rules = _RULES) -> TaskLedger:
    """Ten instances of web, one a host; `most` of them may be unavailable."""
    budgets = Budgets([Budget("web", "web", max_unavailable=Amount(most))])
    book = TaskLedger.empty(rules, ["ams"], budgets)
    book.picture.believe(["ams"])
    for number in range(10):
        key = InstanceKey("ams", f"i{number}")
        book.picture.put_instance(Instance(key, "web", f"h{number}"))
        book.picture.record_report(key, NOW)
    for task in tasks:
        book.put_task(task)
    return book


def task(order: int, *hosts: int, need: Need = Need.PLANNED, asked_at: float = NOW, **more: object) -> Task:
    names = tuple(f"h{host}" for host in hosts)
    times = {"added_at": asked_at, "asked_at": asked_at, "polled_at": NOW, "since": NOW}
    return Task(f"t{order}", order, "reboot", names, need=need, **(times | more))  # type: ignore[arg-type]


def events(book: TaskLedger, now: float = NOW) -> list[TaskChange]:
    return decide(book, now).changes


PROVISIONAL: dict[str, Any] = {"state": State.PROVISIONAL, "confirm": True}


def test_the_most_needed_go_first_whenever_they_came() -> None:
    needs = (Need.PLANNED, Need.ROLLOUT, Need.URGENT, Need.REPAIR)
    book = ledger(*(task(n, n, need=need) for n, need in enumerate(needs)))
    assert [change.task_id for change in events(book)] == ["t3", "t2"]


def test_a_group_is_as_needed_as_its_least_needed_task() -> None:
    group = [task(n, n, need=need, group="g", asked_at=NOW - 60) for n, need in enumerate((Need.REPAIR, Need.PLANNED))]
    book = ledger(*group, task(2, 2, need=Need.URGENT))
    assert [change.task_id for change in events(book)] == ["t2"]


def test_provisional_planned_work_is_taken_back_by_whole_groups_and_the_repair_is_granted_at_once() -> None:
    group = [task(n, n, group="g", **PROVISIONAL) for n in (0, 1)]
    book = ledger(*group, task(2, 2, need=Need.REPAIR))
    assert events(book) == [
        TaskChange("t0", TaskEvent.WITHDRAW),
        TaskChange("t1", TaskEvent.WITHDRAW),
        TaskChange("t2", TaskEvent.GRANT),
    ]


@pytest.mark.parametrize("latest", [0, 1])
def test_only_as_many_oks_as_needed_are_withdrawn_the_latest_first(latest: int) -> None:
    orders = (1, 2) if latest else (2, 1)
    book = ledger(task(orders[0], 0, **PROVISIONAL), task(orders[1], 1, **PROVISIONAL), task(3, 2, need=Need.REPAIR))
    assert events(book) == [TaskChange("t2", TaskEvent.WITHDRAW), TaskChange("t3", TaskEvent.GRANT)]


def test_nothing_is_taken_back_in_vain() -> None:
    held = task(0, 0, state=State.GRANTED)
    book = ledger(held, task(1, 1, **PROVISIONAL), task(2, 2, 3, need=Need.REPAIR))
    assert events(book) == []
    assert events(ledger(held, task(1, 1, **PROVISIONAL), task(2, 2, need=Need.URGENT))) == []


def test_a_task_that_has_waited_long_keeps_its_ok_and_takes_turns_with_repairs() -> None:
    old = task(1, 1, asked_at=NOW - 3700, **PROVISIONAL)
    assert events(ledger(task(0, 0, state=State.GRANTED), old, task(2, 2, need=Need.REPAIR))) == []
    waits, repair = task(1, 1, asked_at=NOW - 3700), task(2, 2, need=Need.REPAIR)
    assert events(ledger(waits, repair, most=1)) == [TaskChange("t1", TaskEvent.GRANT)]
    waits = task(1, 1, asked_at=NOW - 3600 - 700)  # its turn is over
    assert events(ledger(waits, repair, most=1)) == [TaskChange("t2", TaskEvent.GRANT)]


def test_in_each_budget_one_of_the_tasks_that_waited_long_has_the_turn() -> None:
    old = [task(n, n, asked_at=NOW - 3700) for n in (0, 1)]
    assert [change.task_id for change in events(ledger(*old, task(2, 2, need=Need.REPAIR)))] == ["t0", "t2"]


def test_in_each_limit_one_of_the_tasks_that_take_nothing_of_a_budget_has_the_turn() -> None:
    """They are for hosts on which nothing runs or is up: else all of them would go before a repair at once."""
    book = ledger(*(task(n, 20 + n, asked_at=NOW - 3700) for n in (0, 1)), task(2, 2, need=Need.REPAIR))
    book.limit(DomainLimits([DomainLimit("hosts", "host", 2)]))
    assert [change.task_id for change in events(book)] == ["t0", "t2"]


def _names_too_much(book: TaskLedger) -> None:
    book.put_task(task(0, 0, 3, asked_at=NOW - 3700))


def _has_no_right(book: TaskLedger) -> None:
    book.barred = lambda one: "no right" if one.id == "t0" else ""


def _is_closed(book: TaskLedger) -> None:
    book.limit(DomainLimits(sites={"h0": Site(project="shop")}))
    freeze = Freeze(NOW - 60, NOW + 60, "year end", repairs=False)
    book.calendar = Calendar((CalendarRule("shop", project="shop", freezes=(freeze,)),))


def _depends_on_what_is_silent(book: TaskLedger) -> None:
    book.put_task(task(0, 0, 99, asked_at=NOW - 3700))  # nobody knows where h99 is
    book.locations = frozenset({"ams", "fra"})
    book.stuck_since[book.tasks["t0"].unit] = NOW - 600  # lets others pass


@pytest.mark.parametrize("hopeless", [_names_too_much, _has_no_right, _is_closed, _depends_on_what_is_silent])
def test_a_task_that_cannot_be_granted_has_no_turn(hopeless: Callable[[TaskLedger], None]) -> None:
    """Else a task that came at the same time never has a turn, and starves behind repairs."""
    old = [task(n, n, asked_at=NOW - 3700) for n in (0, 1)]
    book = ledger(*old, task(2, 2, need=Need.REPAIR), most=1)
    hopeless(book)
    assert [change.task_id for change in events(book)] == ["t1"]


def test_a_task_that_waits_for_an_overdue_one_lets_others_pass_after_ten_minutes() -> None:
    book = ledger(task(0, 0, state=State.GRANTED, overdue_at=NOW - 1), task(1, 1, 2), task(2, 3))
    assert events(book) == []
    for key in book.picture.instances:
        book.picture.record_report(key, NOW + 601)
    assert events(book, NOW + 601) == [TaskChange("t2", TaskEvent.GRANT)]


def test_a_task_that_is_asked_again_has_waited_since_the_first_time() -> None:
    book = ledger(task(0, 0, state=State.GRANTED), task(1, 1, asked_at=NOW - 3000), most=1)
    book.drop_task("t1", NOW)
    book.put_task(task(5, 1, asked_at=NOW + 60))
    assert book.tasks["t5"].asked_at == NOW - 3000
    book.put_task(task(6, 2, asked_at=NOW + 60))
    assert book.tasks["t6"].asked_at == NOW + 60


def test_repairs_need_no_window_and_urgent_work_heeds_no_freeze() -> None:
    def granted(need: Need, *, repairs: bool = False) -> bool:
        book = ledger(task(1, 1, need=need))
        freeze = Freeze(NOW - 60, NOW + 60, "year end", repairs)
        book.calendar = Calendar((CalendarRule("all", freezes=(freeze,)),))
        return bool(events(book))

    assert [granted(need) for need in Need] == [True, True, False, False]
    assert [granted(need, repairs=True) for need in Need] == [False, True, False, False]


@pytest.mark.parametrize("need", list(Need))
def test_a_freeze_of_the_cms_is_for_everybody(need: Need) -> None:
    book = ledger(task(1, 1, need=need))
    book.closed = "frozen"
    assert events(book) == []


def test_an_ok_that_nobody_confirmed_ends_with_its_window() -> None:
    book = ledger(task(0, 0, **PROVISIONAL))
    assert events(book) == []
    book.calendar = Calendar((CalendarRule("all", freezes=(Freeze(NOW - 60, NOW + 60, "year end", False),)),))
    assert events(book) == [TaskChange("t0", TaskEvent.WITHDRAW)]


@pytest.mark.long
async def test_who_may_repair_is_configured_and_an_operator_can_make_a_task_urgent() -> None:
    async with service_of(4, healers={"wall-e": []}) as (_, cms):
        freeze = {"name": "all", "freeze": [{"begin": "2020-01-01", "end": "2099-01-01", "reason": "quiet"}]}
        assert (await cms.call_connect("PutWindows", {"windows": freeze})).status == 200
        planned = (await cms.ask("planned", "h0")).body
        assert (planned["status"], planned["details"]["need"]) == ("in-process", "planned")
        other = (await cms.ask("other", "h0", issuer="ann", failure="disk")).body
        assert (other["status"], other["details"]["need"]) == ("in-process", "planned")
        assert (await cms.ask("repair", "h1", failure="disk")).body["details"]["need"] == "repair"
        await cms.becomes("repair", "ok")
        assert (await cms.call("DELETE", "/repair")).status == 204
        words = ("disruptions", "expedite", "planned", "--reason", "leaking", "--by", "ann")
        assert await hqctl(cms, *words) == (0, "task planned is urgent\n")
        await cms.becomes("planned", "ok")
        assert "made urgent by ann: leaking" in (await hqctl(cms, "disruptions", "why", "planned"))[1]


def brief_ledger(*tasks: Task, rules: Rules = _RULES) -> TaskLedger:
    """At most two of ten may be unavailable, five for work of at most 15 minutes."""
    book = ledger(*tasks, rules=rules)
    before = book.picture.budgets.by_name["web"]
    budget = replace(before, brief=Amount(50, is_percent=True), within_s=900.0)
    book.rule(Budgets([budget]), [before, budget])
    return book


def brief(order: int, host: int, **more: Any) -> Task:
    return replace(task(order, host, **more), action="temporary-unreachable")


def test_brief_work_may_take_more_and_other_work_may_not() -> None:
    book = brief_ledger(*(brief(n, n) for n in range(7)))
    assert [change.task_id for change in events(book)] == ["t0", "t1", "t2", "t3", "t4"]
    long = [replace(task(n, n), action="redeploy") for n in range(4)]
    assert [change.task_id for change in events(brief_ledger(*long))] == ["t0", "t1"]


@pytest.mark.parametrize(("away_s", "granted"), [(600.0, 5), (900.0, 5), (901.0, 2)])
def test_how_long_a_reboot_takes_decides_whether_it_is_brief(away_s: float, granted: int) -> None:
    book = brief_ledger(*(task(n, n) for n in range(7)), rules=Rules(reboot_away_s=away_s))
    assert len(events(book)) == granted


@pytest.mark.parametrize("state", [State.WAITING, State.PROVISIONAL])
def test_brief_work_leaves_the_ordinary_floor_to_other_work_before_it(state: State) -> None:
    held = [brief(n, n, state=State.GRANTED) for n in range(1 if state is State.PROVISIONAL else 2)]
    other = replace(task(5, 5, state=state, confirm=True), action="redeploy")
    assert events(brief_ledger(*held, other, brief(6, 6))) == []
    assert len(events(brief_ledger(*held, brief(6, 6)))) == 1


@pytest.mark.parametrize("state", [State.PROVISIONAL, State.GRANTED])
@pytest.mark.parametrize("need", [Need.PLANNED, Need.REPAIR])
def test_other_work_on_a_host_under_brief_work_keeps_the_ordinary_floor_too(state: State, need: Need) -> None:
    """Its instances are away already, but would be for longer. Such a task was offered and withdrawn for ever."""
    held = [brief(n, n, state=state, confirm=True, asked_at=NOW - 3700) for n in range(4)]
    waits = replace(task(5, 3, need=need, confirm=True), action="redeploy")
    assert events(brief_ledger(*held, waits)) == []
    assert events(brief_ledger(*held[2:], waits)) == [TaskChange("t5", TaskEvent.OFFER)]
    under_both = [*held, replace(task(6, 3, state=State.GRANTED), action="redeploy")]
    assert events(brief_ledger(*under_both, waits)) == [TaskChange("t5", TaskEvent.OFFER)]


@pytest.mark.parametrize("others", [2, 4])
def test_an_ok_for_a_host_under_brief_work_is_withdrawn_once_the_ordinary_floor_is_gone(others: int) -> None:
    held = [brief(n, n, state=State.GRANTED) for n in range(others)]
    offered = replace(task(5, 1, **PROVISIONAL), action="redeploy")
    book = brief_ledger(*held, offered)
    assert events(book) == ([TaskChange("t5", TaskEvent.WITHDRAW)] if others == 4 else [])


def test_an_overdue_hold_ends_the_allowance_of_brief_work_and_withdraws_oks_that_need_it() -> None:
    late = brief(0, 0, state=State.GRANTED, overdue_at=NOW - 1)
    others = [brief(n, n, **PROVISIONAL) for n in (1, 2, 3)]
    changes = events(brief_ledger(late, *others))
    assert changes == [TaskChange("t3", TaskEvent.WITHDRAW), TaskChange("t2", TaskEvent.WITHDRAW)]
    assert events(brief_ledger(replace(late, overdue_at=NOW + 1), *others)) == []


@pytest.mark.long
async def test_brief_is_set_and_shown_by_hqctl(tmp_path: Path) -> None:
    file = tmp_path / "budgets.yaml"
    file.write_text("{name: web, service: web, maxUnavailable: 1, brief: {maxUnavailable: 50%, within: 15m}}")
    async with service_of(4) as (_, cms):
        assert (await hqctl(cms, "budget", "apply", "-f", str(file)))[0] == 0
        assert "max_unavailable 1, brief 50% within 15m" in (await hqctl(cms, "budget", "list"))[1]
        words = "budget put web --service web --max-unavailable 1 --brief 50% --within 15m"
        assert (await hqctl(cms, *words.split()))[0] == 0
        assert "max_unavailable 1, brief 50% within 15m" in (await hqctl(cms, "budget", "list"))[1]
        for name in ("h0", "h1", "h2"):
            await cms.ask(f"away-{name}", name, action="temporary-unreachable")
        states = [await cms.status(f"away-{name}") for name in ("h0", "h1", "h2")]
        assert states == ["ok", "ok", "in-process"]
        file.write_text("{name: web, service: web, maxUnavailable: 1, brief: {maxUnavailable: x, within: soon}}")
        code, printed = await hqctl(cms, "budget", "apply", "-f", str(file))
        assert (code, "budget.brief.max_unavailable" in printed, "budget.brief.within" in printed) == (1, True, True)
