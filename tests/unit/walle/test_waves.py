"""Mass reboots: a wave is looked at before the next one begins, and all is not said to be well while hosts fail."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.protobuf.message import Message

from control import Refused
from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from walle.healing.decision import SETTLE_MS
from walle.healing.incidents import Incidents
from walle.healing.operation import finish
from walle.work.book import HOST, PROJECT, SCENARIO, Notice, WalleTransaction, World
from walle.work.repairs import consider
from walle.work.scenarios import add_scenario
from walle.work.waves import RETURN_MS, step_wave
from wallepb.v1.host_pb2 import (
    HOST_STATUS_DEAD,
    OPERATION_KIND_REDEPLOY,
    OUTCOME_CANCELLED,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_REJECTED,
    OUTCOME_UNSPECIFIED,
    Check,
    Host,
    Operation,
    Outcome,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_REBOOT,
    SCENARIO_STAGE_CANCELLED,
    SCENARIO_STAGE_FINISHED,
    SCENARIO_STAGE_WORKING,
    SEVERITY_ERROR,
    Scenario,
)
from wallepb.v1.service_pb2 import AddScenarioRequest, Order

NAMES = [f"h{i}" for i in range(10)]
STEP_MS = 60_000


class MassReboot:
    """Ten hosts, some at a time, a look every minute."""

    def __init__(self, at_once: int = 2, names: Sequence[str] = NAMES) -> None:
        ids = iter(f"op{i}" for i in range(1000))
        self.book, self.now_ms = DictBook(), NOW_MS
        self.world = World("i", {}, lambda: next(ids), Incidents())
        self.notices: list[Notice] = []
        self.book.put(PROJECT, "web", a_project())
        for name in NAMES:
            self.book.put(HOST, name, a_host(name, rack="r1"))
        order = AddScenarioRequest(scenario="kernel", kind=SCENARIO_KIND_REBOOT, hosts=names, at_once=at_once)
        add_scenario(self.book, Order(by="alice", add_scenario=order), names, self.world, at())

    @property
    def scenario(self) -> Scenario:
        return self.book.get(SCENARIO, "kernel") or Scenario()

    def host(self, name: str) -> Host:
        return self.book.get(HOST, name) or Host()

    def begun(self) -> list[str]:
        return [one.name for one in self.scenario.host if one.operation_id]

    def outcomes(self) -> list[Outcome]:
        return [one.outcome for one in self.scenario.host]

    def step(self, minutes: int = 1) -> None:
        for _ in range(minutes):
            self.now_ms += STEP_MS
            self.notices += step_wave(self.book, "kernel", self.world, at(self.now_ms))

    def end(self, name: str, outcome: Outcome = OUTCOME_DONE, message: str = "the work is done") -> None:
        """The operation of a host is over."""
        host = self.host(name)
        host.operation.outcome, host.operation.message = outcome, message
        host.operation.intent.executor = "bmc"
        self.book.put(HOST, name, finish(host, at(self.now_ms)))

    def check(self, name: str, *, failing: bool) -> None:
        host = self.host(name)
        del host.check[:]
        host.check.append(Check(name="UNREACHABLE", failing=failing, since_ms=self.now_ms))
        self.book.put(HOST, name, host)

    def reboot_all(self, *bad: str) -> None:
        """Until it is over, or an hour has passed; some hosts do not come back."""
        for _ in range(120):
            self.step()
            for name in self.begun():
                if self.host(name).HasField("operation"):
                    self.end(name)
                    if name in bad:
                        self.check(name, failing=True)
            if self.scenario.stage != SCENARIO_STAGE_WORKING:
                return


def test_a_mass_reboot_after_which_every_host_fails_stops_at_the_first_wave_and_says_which() -> None:
    work = MassReboot()
    work.reboot_all(*NAMES)
    assert work.begun() == ["h0", "h1"]
    assert work.scenario.stage == SCENARIO_STAGE_CANCELLED
    failed = "h0 (UNREACHABLE fails), h1 (UNREACHABLE fails)"
    assert work.scenario.message == f"stopped after a bad wave; failed: {failed}; not begun: 8"
    (notice,) = work.notices
    assert notice.severity == SEVERITY_ERROR
    assert failed in notice.text


def test_a_mass_reboot_goes_on_while_hosts_come_back_and_stops_at_the_first_that_does_not() -> None:
    work = MassReboot()
    work.reboot_all("h5")
    assert work.begun() == NAMES[:6]
    assert work.outcomes() == [OUTCOME_DONE] * 5 + [OUTCOME_FAILED] + [OUTCOME_UNSPECIFIED] * 4


def test_when_the_last_host_fails_it_is_done_and_says_so() -> None:
    work = MassReboot()
    work.reboot_all("h9")
    assert work.scenario.stage == SCENARIO_STAGE_FINISHED
    assert work.scenario.message == "done; failed: h9 (UNREACHABLE fails)"


def test_when_all_hosts_are_back_nothing_failed() -> None:
    work = MassReboot(at_once=4)
    work.reboot_all()
    assert (work.scenario.stage, work.scenario.message) == (SCENARIO_STAGE_FINISHED, "done; failed: none")
    assert not work.notices


def test_the_next_wave_begins_once_all_of_the_one_before_were_well_for_the_settle_time() -> None:
    work = MassReboot()
    work.step()
    work.end("h0")
    work.step(SETTLE_MS // STEP_MS + 1)
    assert work.begun() == ["h0", "h1"]  # h1 is still in work
    work.end("h1")
    work.step(SETTLE_MS // STEP_MS)
    assert work.begun() == ["h0", "h1"]
    work.step()
    assert work.begun() == NAMES[:4]


def test_a_host_that_fails_for_some_minutes_after_its_reboot_has_come_back() -> None:
    work = MassReboot()
    work.step()
    for name in ("h0", "h1"):
        work.end(name)
        work.check(name, failing=True)
    work.step(5)
    for name in ("h0", "h1"):
        work.check(name, failing=False)
    work.step(SETTLE_MS // STEP_MS - 1)
    assert work.begun() == ["h0", "h1"]
    work.step(2)
    assert work.begun() == NAMES[:4]


def test_a_host_that_came_back_and_fails_again_within_the_deadline_stops_the_next_wave() -> None:
    work = MassReboot(at_once=1)
    work.step()
    work.end("h0")
    work.step(SETTLE_MS // STEP_MS + 1)
    assert work.begun() == ["h0", "h1"]
    work.check("h0", failing=True)
    work.end("h1")
    work.step(RETURN_MS // STEP_MS)
    assert work.begun() == ["h0", "h1"]
    assert "failed: h0 (UNREACHABLE fails); not begun: 8" in work.scenario.message


def test_what_fails_long_after_a_reboot_is_not_its_fault() -> None:
    work = MassReboot(at_once=1)
    work.step()
    work.end("h0")
    work.step(RETURN_MS // STEP_MS + 2)
    work.check("h0", failing=True)
    work.end("h1")
    work.step(SETTLE_MS // STEP_MS + 2)
    assert work.begun() == ["h0", "h1", "h2"]


@pytest.mark.parametrize("outcome", [OUTCOME_REJECTED, OUTCOME_CANCELLED])
def test_a_host_that_a_cms_did_not_give_is_listed_as_not_done_and_stops_nothing(outcome: Outcome) -> None:
    work = MassReboot(names=NAMES[:4])
    work.step()
    work.end("h0", outcome, "a CMS rejected the task")
    work.reboot_all()
    assert work.scenario.message == "done; failed: none; not done: h0 (a CMS rejected the task)"


def test_a_host_whose_reboot_failed_stops_it() -> None:
    work = MassReboot()
    work.step()
    work.end("h0", OUTCOME_FAILED, "given up: bmc: connection refused")
    work.reboot_all()
    assert work.begun() == ["h0", "h1"]
    assert "failed: h0 (given up: bmc: connection refused); not begun: 8" in work.scenario.message


def test_a_host_that_cannot_be_begun_is_listed_with_the_reason() -> None:
    work = MassReboot(names=NAMES[:4])
    host = work.host("h1")
    host.operation.CopyFrom(Operation(id="other", kind=OPERATION_KIND_REDEPLOY))
    work.book.put(HOST, "h1", host)
    work.reboot_all()
    assert work.scenario.stage == SCENARIO_STAGE_FINISHED
    assert work.scenario.message.startswith("done; failed: none; not done: h1 (host h1: redeploy is under way")


@pytest.mark.parametrize("why", ["dead", "it was removed"])
def test_a_host_that_is_dead_or_gone_is_not_back(why: str) -> None:
    work = MassReboot(at_once=1)
    work.step()
    work.end("h0")
    work.step()
    host = work.host("h0")
    host.status = HOST_STATUS_DEAD
    if why == "dead":
        work.book.put(HOST, "h0", host)
    else:
        work.book.delete(HOST, "h0")
    work.step(RETURN_MS // STEP_MS)
    assert f"failed: h0 ({why})" in work.scenario.message


def test_in_a_rack_that_fails_as_a_whole_no_wave_begins_and_it_says_what_it_waits_for() -> None:
    work = MassReboot()
    others = [a_host(f"x{i}", "ssh", rack="r1") for i in range(20)]
    work.world.incidents.observe(others, NOW_MS)
    work.step(5)
    assert not work.begun()
    assert work.scenario.message.startswith("waits: rack r1: 20 of 20 hosts fail together")
    work.world.incidents.observe([a_host("x1", rack="r1")], NOW_MS)
    work.step()
    assert work.begun() == ["h0", "h1"]


def test_automation_lets_a_rebooted_host_come_back_before_it_repairs_it() -> None:
    work = MassReboot()
    work.check("h0", failing=True)
    work.now_ms += SETTLE_MS
    work.step()
    work.end("h0")
    consider(work.book, "h0", work.world, at(work.now_ms + SETTLE_MS - 1))
    assert not work.host("h0").HasField("operation")
    consider(work.book, "h0", work.world, at(work.now_ms + SETTLE_MS))
    assert work.host("h0").HasField("operation")


def test_a_host_that_left_the_reach_of_who_planned_the_work_is_left_out_and_the_others_go_on() -> None:
    work = MassReboot()

    def check_reach(_book: WalleTransaction, what: str, order: Message, access: str) -> None:
        assert (what, access) == ("start_operation", "")
        if getattr(order, "host", "") == "h2":
            raise Refused("host h2 does not exist", "NOT_FOUND")

    work.world.check_reach = check_reach
    work.reboot_all()
    assert work.begun() == [name for name in NAMES if name != "h2"]
    assert work.scenario.stage == SCENARIO_STAGE_FINISHED
    assert work.scenario.message == "done; failed: none; not done: h2 (host h2 does not exist)"


def test_planned_work_remembers_what_its_author_may_reach() -> None:
    work = MassReboot()
    order = AddScenarioRequest(scenario="more", kind=SCENARIO_KIND_REBOOT, hosts=NAMES)
    add_scenario(work.book, Order(by="ann", access="{}", add_scenario=order), NAMES, work.world, at())
    stored = work.book.get(SCENARIO, "more")
    assert stored is not None
    assert stored.access == "{}"
