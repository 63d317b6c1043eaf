"""The end of planned work: hosts get time to come back, and nothing is rebooted behind a switch that is still dark."""

from __future__ import annotations

import pytest

from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from tests.support.walle.one_day import OneDay
from walle.approval.tasks import tasks_for
from walle.healing.decision import SETTLE_MS, decide
from walle.healing.incidents import Bounds, FailureDomain, Incident, Incidents, places_of
from walle.healing.operation import VERIFY_MS, finish
from walle.tables import OperationEvent
from walle.work.book import HOST, PROJECT, SCENARIO, World
from walle.work.repairs import consider, settle, start_work
from walle.work.scenarios import add_scenario, settle_scenario
from wallepb.v1.host_pb2 import (
    HOST_STATE_PROBATION,
    OPERATION_KIND_REBOOT,
    OUTCOME_CANCELLED,
    OUTCOME_DONE,
    STAGE_APPROVAL,
    STAGE_CONFIRMING,
    STAGE_ENDING,
    STAGE_REQUESTED,
    STAGE_RUNNING,
    STAGE_VERIFYING,
    VERDICT_OK,
    Host,
    Operation,
    Stage,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_SWITCH_MAINTENANCE,
    SCENARIO_STAGE_FINISHED,
    SCENARIO_STAGE_RETURNING,
    Scenario,
    ScenarioHost,
)
from wallepb.v1.service_pb2 import AddScenarioRequest, Order

NAMES = [f"h{i}" for i in range(8)]
WORLD_IDS = iter(f"op{i}" for i in range(10_000))


def switch_of(failing: int, **more: object) -> list[Host]:
    """The hosts of a switch, of which the first `failing` have failed for an hour."""
    hosts = []
    for number, name in enumerate(NAMES):
        host = a_host(name, *(["UNREACHABLE"] if number < failing else []), since_ms=NOW_MS - 3_600_000, switch="s1")
        hosts.append(host)
        for field, value in more.items():
            setattr(host, field, value)
    return hosts


class SwitchWork:
    """A scenario on a switch whose work is over and which has not ended yet."""

    def __init__(self, failing: int) -> None:
        self.book, self.world = DictBook(), World("i", {}, lambda: next(WORLD_IDS), Incidents())
        self.book.put(PROJECT, "web", a_project())
        for host in switch_of(failing, scenario="net-7"):
            self.book.put(HOST, host.name, host)
        scenario = Scenario(
            id="net-7", kind=SCENARIO_KIND_SWITCH_MAINTENANCE, host=[ScenarioHost(name=n) for n in NAMES]
        )
        scenario.stage, scenario.ending = SCENARIO_STAGE_RETURNING, SCENARIO_STAGE_FINISHED
        self.book.put(SCENARIO, "net-7", scenario)
        settle_scenario(self.book, "net-7", at())

    def hosts(self) -> list[Host]:
        return [host for name in NAMES if (host := self.book.get(HOST, name)) is not None]

    def considered(self, after_ms: int) -> int:
        """Let Wall-E look at all hosts; return how many are in repair."""
        self.world.incidents.observe(self.hosts(), NOW_MS + after_ms)
        for name in NAMES:
            consider(self.book, name, self.world, at(NOW_MS + after_ms))
        return sum(host.HasField("operation") for host in self.hosts())


def test_behind_a_switch_that_is_still_dark_after_the_work_no_host_is_touched() -> None:
    work = SwitchWork(failing=8)
    assert not any(host.scenario for host in work.hosts())
    assert [work.considered(after_ms) for after_ms in (0, SETTLE_MS, 10 * SETTLE_MS)] == [0, 0, 0]
    assert [str(one.place) for one in work.world.incidents.open.values()] == ["switch s1"]


def test_hosts_that_do_not_come_back_after_the_work_are_repaired_once_they_had_time() -> None:
    work = SwitchWork(failing=2)
    assert [work.considered(after_ms) for after_ms in (0, SETTLE_MS - 1, SETTLE_MS)] == [0, 0, 2]


def test_failing_checks_count_from_the_end_of_planned_work() -> None:
    host = a_host("h1", "ssh", since_ms=0)
    host.released_ms = NOW_MS - SETTLE_MS + 1000
    assert "not now: failing for 299 s, counts from 300 s" in str(decide(host, a_project(), Incidents(), NOW_MS))


def test_a_release_stored_ahead_of_our_clock_counts_as_now() -> None:
    host = a_host("h1", "ssh", since_ms=0)
    host.released_ms = NOW_MS + 20_000
    assert "not now" not in str(decide(host, a_project(), Incidents(), NOW_MS, settle_ms=0))
    assert "not now: failing for 0 s" in str(decide(host, a_project(), Incidents(), NOW_MS))


def test_an_operation_that_people_ordered_is_planned_work() -> None:
    host = a_host("h1", "ssh")
    host.operation.CopyFrom(Operation(kind=OPERATION_KIND_REBOOT, by="alice", outcome=OUTCOME_DONE))
    assert finish(host, at()).released_ms == 0  # nothing was done
    host.operation.intent.executor = "bmc"
    assert finish(host, at()).released_ms == NOW_MS
    host.operation.check = "ssh"
    assert finish(host, at()).released_ms == 0


def test_hosts_under_planned_work_are_not_counted_in_incidents_of_the_others() -> None:
    hosts = switch_of(failing=8)
    for host in hosts[3:]:
        host.scenario = "net-7"
    incidents = Incidents()
    assert [str(one) for one in incidents.observe(hosts, NOW_MS)] == [
        "switch s1: 3 of 3 hosts fail together: no repair begins"
    ]
    for host in hosts:
        host.scenario = "net-7"
    incidents.observe(hosts, NOW_MS + 1)
    assert not incidents.open
    assert incidents.ended_for(hosts[0]) == NOW_MS + 1


def test_looking_at_the_places_of_one_host_leaves_other_incidents_open() -> None:
    incidents, here = Incidents(), switch_of(failing=8)
    there = [a_host(f"t{i}", "ssh", switch="s2", rack="r1") for i in range(4)]
    incidents.observe([*here, *there], NOW_MS)
    for host in (*here, *there):
        del host.check[:]
    incidents.observe([*here, *there], NOW_MS + 1, near=here[0])
    assert {str(place) for place, _ in incidents.open} == {"switch s2", "rack r1"}


@pytest.mark.parametrize("stage", [STAGE_REQUESTED, STAGE_APPROVAL, STAGE_CONFIRMING])
def test_a_repair_that_waits_for_approval_is_given_up_when_the_whole_switch_fails(stage: Stage) -> None:
    work = SwitchWork(failing=8)
    host = work.hosts()[0]
    doing = Operation(id="op", kind=OPERATION_KIND_REBOOT, check="UNREACHABLE", stage=stage, since_ms=NOW_MS)
    doing.task.extend(tasks_for("i", "op", 0, OPERATION_KIND_REBOOT, a_project().cms))
    for task in doing.task:
        task.created, task.verdict = stage != STAGE_REQUESTED, VERDICT_OK
    host.operation.CopyFrom(doing)
    work.book.put(HOST, host.name, host)
    work.world.incidents.observe(work.hosts(), NOW_MS)
    assert not start_work(work.book, host.name, "bmc", "", work.world, at())
    settle(work.book, host.name, work.world, at())
    after = work.hosts()[0].operation
    assert (after.stage, after.outcome) == (STAGE_ENDING, OUTCOME_CANCELLED)
    assert "its rack or switch fails as a whole" in after.message


def test_running_work_continues_when_its_switch_fails() -> None:
    work = SwitchWork(failing=8)
    host = work.hosts()[0]
    host.operation.CopyFrom(Operation(id="op", kind=OPERATION_KIND_REBOOT, check="UNREACHABLE", stage=STAGE_RUNNING))
    host.operation.since_ms = NOW_MS
    work.book.put(HOST, host.name, host)
    work.world.incidents.observe(work.hosts(), NOW_MS)
    settle(work.book, host.name, work.world, at())
    assert work.hosts()[0].operation.stage == STAGE_RUNNING


def test_the_places_of_a_host_are_checked_again_just_before_the_work() -> None:
    day = OneDay()
    host = day.host
    host.location.switch = "s1"
    day.book.put(HOST, "h1", host)

    def goes_dark(near: Host) -> None:
        (place,) = places_of(near.location)
        assert place == FailureDomain("switch", "", "s1")
        day.world.incidents.open[place, Bounds()] = Incident(place, day.now_ms, 8, 8)

    day.world.look_near = goes_dark
    day.live(longest_ms=3_600_000)
    assert day.calls["before"] == 1
    assert not day.calls["begin"]
    assert not day.host.HasField("operation")
    assert not any(cms.tasks_ for cms in day.cms.values())


def place_under_work(*hosts: Host) -> tuple[DictBook, World]:
    """A switch whose maintenance has just been ordered."""
    book, world = DictBook(), World("i", {}, lambda: next(WORLD_IDS), Incidents())
    book.put(PROJECT, "web", a_project())
    for host in hosts:
        book.put(HOST, host.name, host)
    order = AddScenarioRequest(scenario="net-7", kind=SCENARIO_KIND_SWITCH_MAINTENANCE, switch="s1")
    names = [host.name for host in hosts]
    add_scenario(book, Order(by="alice", add_scenario=order), names, world, at(), lambda _: None)
    return book, world


def test_planned_work_holds_hosts_that_need_no_approval_too() -> None:
    asked, tried = a_host("h1", "ssh", switch="s1"), a_host("h2", "ssh", switch="s1", state=HOST_STATE_PROBATION)
    book, world = place_under_work(asked, tried)
    for name in ("h1", "h2"):
        assert not consider(book, name, world, at())
        host = book.get(HOST, name) or Host()
        assert (host.scenario, host.HasField("operation")) == ("net-7", False)
    scenario = book.get(SCENARIO, "net-7") or Scenario()
    assert [one.not_needed for one in scenario.host] == ["", "not assigned and ready"]


@pytest.mark.parametrize("stage", [STAGE_REQUESTED, STAGE_APPROVAL, STAGE_CONFIRMING])
def test_a_repair_that_has_not_begun_gives_its_approval_back_when_planned_work_holds_its_host(stage: Stage) -> None:
    host = a_host("h1", "UNREACHABLE", switch="s1")
    host.operation.CopyFrom(Operation(id="op", kind=OPERATION_KIND_REBOOT, check="UNREACHABLE", stage=stage))
    book, world = place_under_work(host)
    assert not start_work(book, "h1", "bmc", "", world, at())
    settle(book, "h1", world, at())
    after = (book.get(HOST, "h1") or Host()).operation
    assert (after.stage, after.outcome, after.message) == (STAGE_ENDING, OUTCOME_CANCELLED, OperationEvent.HELD.value)


def test_a_repair_behind_a_switch_under_work_is_judged_after_the_work() -> None:
    host = a_host("h1", "UNREACHABLE", switch="s1")
    host.operation.CopyFrom(Operation(id="op", kind=OPERATION_KIND_REBOOT, check="UNREACHABLE", stage=STAGE_VERIFYING))
    host.operation.since_ms = NOW_MS
    book, world = place_under_work(host)
    settle(book, "h1", world, at(NOW_MS + 10 * VERIFY_MS))
    held = book.get(HOST, "h1") or Host()
    assert held.operation.stage == STAGE_VERIFYING
    held.scenario, held.released_ms = "", NOW_MS + 10 * VERIFY_MS
    book.put(HOST, "h1", held)
    settle(book, "h1", world, at(NOW_MS + 11 * VERIFY_MS - 1))
    assert (book.get(HOST, "h1") or Host()).operation.stage == STAGE_VERIFYING
    settle(book, "h1", world, at(NOW_MS + 11 * VERIFY_MS))
    assert (book.get(HOST, "h1") or Host()).operation.kind != OPERATION_KIND_REBOOT


def test_hosts_that_people_work_on_count_in_no_incident() -> None:
    hosts = switch_of(failing=8)
    for host in hosts:
        host.operation.CopyFrom(Operation(kind=OPERATION_KIND_REBOOT, by="alice", stage=STAGE_RUNNING))
        host.operation.intent.executor = "bmc"
    incidents = Incidents()
    assert not incidents.observe(hosts, NOW_MS)
