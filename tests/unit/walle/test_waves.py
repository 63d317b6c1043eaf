"""Mass reboots: each wave is judged before the next one begins, and failed hosts are never reported as well."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TypeVar

import pytest
from google.protobuf.message import Message

from control import Refused
from control.waves import Progress
from hqpb.v1.service_pb2 import FindInstancesResponse
from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from tests.unit.walle.test_planned_failures import StoredScenarios
from walle.fuses.fuse import GLOBAL, Automation, switch_off
from walle.healing.decision import SETTLE_MS
from walle.healing.incidents import Incidents
from walle.healing.operation import JUDGED_MS, finish
from walle.process.hq import Hq, NoHq
from walle.process.planner import Planner
from walle.tables import OperationEvent
from walle.work.book import FUSE, HOST, PROJECT, SCENARIO, Notice, WalleTransaction, World
from walle.work.orders import take_checks
from walle.work.repairs import consider, move, settle
from walle.work.scenario_records import read_scenario
from walle.work.scenarios import add_scenario, end_scenario, steer_scenario
from walle.work.waves import RETURN_MS, HqView, hosts_to_ask_hq_about, progress_of, wave_decisions
from wallepb.v1.host_pb2 import (
    HOST_STATE_FREE,
    HOST_STATUS_DEAD,
    OPERATION_KIND_DEACTIVATE,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OUTCOME_CANCELLED,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_REJECTED,
    OUTCOME_UNSPECIFIED,
    STAGE_ENDING,
    STAGE_REQUESTED,
    STAGE_VERIFYING,
    Check,
    Host,
    Operation,
    Outcome,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_DECOMMISSION,
    SCENARIO_KIND_REBOOT,
    SCENARIO_STAGE_CANCELLED,
    SCENARIO_STAGE_FINISHED,
    SCENARIO_STAGE_PAUSED,
    SCENARIO_STAGE_RETURNING,
    SCENARIO_STAGE_WORKING,
    SEVERITY_ERROR,
    Fuse,
    Scenario,
    ScenarioKind,
)
from wallepb.v1.service_pb2 import (
    STEERING_CONTINUE,
    STEERING_PAUSE,
    STEERING_RETRY,
    AddScenarioRequest,
    EndScenarioRequest,
    HostChecks,
    Order,
    Steering,
    SteerScenarioRequest,
)

T = TypeVar("T")
NAMES = [f"h{i}" for i in range(10)]
STEP_MS = 60_000


class MassReboot:
    """A mass reboot of ten hosts, `at_once` at a time, with a look every minute."""

    def __init__(
        self,
        at_once: int = 2,
        names: Sequence[str] = NAMES,
        kind: ScenarioKind = SCENARIO_KIND_REBOOT,
        racks: Sequence[str] = ("r1",),
        **more: str,
    ) -> None:
        ids = iter(f"op{i}" for i in range(1000))
        self.book, self.now_ms = DictBook(), NOW_MS
        self.world = World("i", {}, lambda: next(ids), Incidents())
        self.notices: list[Notice] = []
        self.book.put(PROJECT, "web", a_project())
        for number, name in enumerate(NAMES):
            self.book.put(HOST, name, a_host(name, rack=racks[number % len(racks)]))
        order = AddScenarioRequest(scenario="kernel", kind=kind, hosts=names, at_once=at_once, **more)
        add_scenario(self.book, Order(by="alice", add_scenario=order), names, self.world, at(), self.host)

    @property
    def scenario(self) -> Scenario:
        return self.book.get(SCENARIO, "kernel") or Scenario()

    def host(self, name: str) -> Host:
        return self.book.get(HOST, name) or Host()

    def begun(self) -> list[str]:
        return [one.name for one in self.scenario.host if one.operation_id]

    def outcomes(self) -> list[Outcome]:
        return [one.outcome for one in self.scenario.host]

    def step(self, minutes: int = 1, hq: HqView | None = None) -> None:
        for _ in range(minutes):
            self.now_ms += STEP_MS
            self.look(hq)
            for name in NAMES:
                host = self.host(name)
                if host.operation.stage == STAGE_ENDING:
                    move(self.book, host, OperationEvent.TASKS_DELETED, at(self.now_ms))

    def look(self, hq: HqView | None = None) -> None:
        """Take the decisions as Wall-E does, in several transactions."""

        def held() -> list[str]:
            return [name for name in NAMES if self.host(name).scenario == "kernel"]

        now, scenario = at(self.now_ms), partial(read_scenario, self.book, "kernel")
        for decision in wave_decisions(scenario, held, self.world, now, hq):
            self.notices += decision(self.book)

    def done(self, name: str, *, is_heard: bool = True) -> None:
        """Complete the reboot of a host; with `is_heard`, it reports again."""
        host = self.host(name)
        host.operation.stage, host.operation.since_ms = STAGE_VERIFYING, self.now_ms
        host.operation.intent.executor = "bmc"
        self.book.put(HOST, name, host)
        if is_heard:
            take_checks(self.book, HostChecks(host=name, boot_id=f"boot {self.now_ms}"), at(self.now_ms))

    def end(self, name: str, outcome: Outcome, message: str) -> None:
        """End the operation of a host with this outcome, without its work."""
        host = self.host(name)
        host.operation.outcome, host.operation.message = outcome, message
        self.book.put(HOST, name, finish(host, at(self.now_ms)))

    def steer(self, steering: Steering, reason: str = "looked") -> None:
        order = SteerScenarioRequest(scenario="kernel", steering=steering, reason=reason)
        steer_scenario(self.book, order, "alice", at(self.now_ms))

    def check(self, name: str, *, failing: bool) -> None:
        host = self.host(name)
        del host.check[:]
        host.check.append(Check(name="UNREACHABLE", failing=failing, since_ms=self.now_ms))
        self.book.put(HOST, name, host)

    def reboot_all(self, *bad: str) -> None:
        """Run until the mass reboot is over or two hours have passed; the hosts in `bad` do not come back."""
        for _ in range(120):
            self.step()
            for name in self.begun():
                if self.host(name).operation.stage == STAGE_REQUESTED:
                    self.done(name)
                    if name in bad:
                        self.check(name, failing=True)
            if self.scenario.stage != SCENARIO_STAGE_WORKING:
                return


def test_a_mass_reboot_after_which_every_host_fails_stops_at_the_first_wave_and_says_which() -> None:
    work = MassReboot()
    work.reboot_all(*NAMES)
    assert work.begun() == ["h0", "h1"]
    assert work.scenario.stage == SCENARIO_STAGE_PAUSED
    failed = "2 of 2 failed: h0 (UNREACHABLE fails), h1 (UNREACHABLE fails)"
    assert work.scenario.message == f"stopped: {failed}; 0 of 10 back, 0 in work, 8 not begun"
    assert [name for name in NAMES if work.host(name).scenario] == ["h0", "h1"], "a person decides about these"
    (notice,) = work.notices
    assert notice.severity == SEVERITY_ERROR
    assert failed in notice.text
    assert "walle scenarios continue kernel | walle scenarios retry kernel | walle scenarios cancel" in notice.text


def test_a_mass_reboot_goes_on_while_hosts_come_back_and_stops_at_the_first_failure() -> None:
    work = MassReboot()
    work.reboot_all("h5")
    assert work.begun() == NAMES[:6]
    assert work.outcomes() == [OUTCOME_DONE] * 5 + [OUTCOME_FAILED] + [OUTCOME_UNSPECIFIED] * 4


def test_a_mass_reboot_whose_last_host_fails_is_done_and_names_it() -> None:
    work = MassReboot()
    work.reboot_all("h9")
    assert work.scenario.stage == SCENARIO_STAGE_FINISHED
    assert work.scenario.message == "done; failed: h9 (UNREACHABLE fails)"
    assert not any(work.host(name).scenario for name in NAMES), "automation has all of them again"


def test_a_mass_reboot_after_which_all_hosts_are_back_has_no_failures() -> None:
    work = MassReboot(at_once=4)
    work.reboot_all()
    assert (work.scenario.stage, work.scenario.message) == (SCENARIO_STAGE_FINISHED, "done; failed: none")
    assert not work.notices


def test_the_next_wave_begins_once_all_of_the_one_before_were_well_for_the_settle_time() -> None:
    work = MassReboot()
    work.step()
    work.done("h0")
    work.step(SETTLE_MS // STEP_MS + 1)
    assert work.begun() == ["h0", "h1"]  # h1 is still in work
    work.done("h1")
    work.step(SETTLE_MS // STEP_MS - 1)
    assert work.begun() == ["h0", "h1"]
    work.step()
    assert work.begun() == NAMES[:4]


def test_a_host_that_fails_for_some_minutes_after_its_reboot_has_come_back() -> None:
    work = MassReboot()
    work.step()
    for name in ("h0", "h1"):
        work.done(name)
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
    work.done("h0")
    work.step(SETTLE_MS // STEP_MS + 1)
    assert work.begun() == ["h0", "h1"]
    work.check("h0", failing=True)
    work.done("h1")
    work.step(RETURN_MS // STEP_MS)
    assert work.begun() == ["h0", "h1"]
    assert "1 of 2 failed: h0 (UNREACHABLE fails); 1 of 10 back, 0 in work, 8 not begun" in work.scenario.message


def test_a_failure_long_after_a_reboot_is_not_blamed_on_it() -> None:
    work = MassReboot(at_once=1)
    work.step()
    work.done("h0")
    work.step(RETURN_MS // STEP_MS + 2)
    work.check("h0", failing=True)
    work.done("h1")
    work.step(SETTLE_MS // STEP_MS + 2)
    assert work.begun() == ["h0", "h1", "h2"]


@pytest.mark.parametrize("outcome", [OUTCOME_REJECTED, OUTCOME_CANCELLED])
def test_a_host_refused_by_a_cms_is_listed_as_not_done_and_stops_nothing(outcome: Outcome) -> None:
    work = MassReboot(names=NAMES[:4])
    work.step()
    work.end("h0", outcome, "a CMS rejected the task")
    work.reboot_all()
    assert work.scenario.message == "done; failed: none; not done: h0 (a CMS rejected the task)"


def test_a_host_whose_reboot_failed_stops_the_mass_reboot() -> None:
    work = MassReboot()
    work.step()
    work.end("h0", OUTCOME_FAILED, "given up: bmc: connection refused")
    work.reboot_all()
    assert work.begun() == ["h0", "h1"]
    assert "1 of 2 failed: h0 (given up: bmc: connection refused)" in work.scenario.message


def test_a_host_whose_reboot_cannot_begin_is_listed_with_the_reason() -> None:
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
    work.done("h0")
    work.step()
    host = work.host("h0")
    host.status = HOST_STATUS_DEAD
    if why == "dead":
        work.book.put(HOST, "h0", host)
    else:
        work.book.delete(HOST, "h0")
    work.step(RETURN_MS // STEP_MS)
    assert f"failed: h0 ({why})" in work.scenario.message


def test_in_a_rack_with_an_incident_no_wave_begins_until_a_person_continues() -> None:
    work = MassReboot()
    others = [a_host(f"x{i}", "ssh", rack="r1") for i in range(20)]
    work.world.incidents.observe(others, NOW_MS)
    work.step(5)
    assert not work.begun()
    assert work.scenario.message.startswith("stopped: rack r1: 20 of 20 hosts fail together")
    assert len(work.notices) == 1
    work.world.incidents.observe([a_host("x1", rack="r1")], NOW_MS)
    work.steer(STEERING_CONTINUE)
    work.step()
    assert work.begun() == ["h0", "h1"]


@pytest.mark.parametrize("owner", ["web", GLOBAL])
def test_while_automation_is_off_no_further_wave_begins(owner: str) -> None:
    work = MassReboot()
    work.step()
    fuse = switch_off(Fuse(id=owner), Automation.HEALING, "automation", "limit ssh 1d:10 would be exceeded", at())
    work.book.put(FUSE, owner, fuse)
    work.reboot_all()
    assert work.begun() == ["h0", "h1"]
    assert work.outcomes()[:2] == [OUTCOME_DONE] * 2, "what was begun is looked at"
    assert "limit ssh 1d:10 would be exceeded" in work.scenario.message


def test_a_host_and_its_approval_are_held_until_it_is_back() -> None:
    work = MassReboot()
    work.step()
    work.done("h0")
    work.step(SETTLE_MS // STEP_MS - 1)
    settle(work.book, "h0", work.world, at(work.now_ms))
    assert work.host("h0").operation.stage == STAGE_VERIFYING
    work.check("h0", failing=True)
    consider(work.book, "h0", work.world, at(work.now_ms + SETTLE_MS))
    assert work.host("h0").operation.kind == OPERATION_KIND_REBOOT, "planned work, and no repair"
    work.check("h0", failing=False)
    work.step(SETTLE_MS // STEP_MS + 1)
    assert not work.host("h0").HasField("operation")
    assert not work.host("h0").scenario


def test_an_approval_of_work_that_is_never_judged_is_not_kept_for_ever() -> None:
    work = MassReboot()
    work.step()
    work.done("h0")
    settle(work.book, "h0", work.world, at(work.now_ms + JUDGED_MS - 1))
    assert work.host("h0").operation.stage == STAGE_VERIFYING
    settle(work.book, "h0", work.world, at(work.now_ms + JUDGED_MS))
    assert work.host("h0").operation.stage == STAGE_ENDING


def test_a_host_without_any_report_is_not_back_unless_verification_is_off() -> None:
    for verify, progress in (("", Progress.FAILED), ("none", Progress.BACK)):
        work = MassReboot(verify=verify)
        work.step()
        for name in ("h0", "h1"):
            work.done(name, is_heard=False)
        work.step(RETURN_MS // STEP_MS)
        assert {progress_of(one) for one in work.scenario.host[:2]} == {progress}


def test_instances_that_were_ready_and_are_still_wanted_must_be_ready_again() -> None:
    work = MassReboot(at_once=1)
    work.step(hq=HqView(ready={"h0": {"web-1", "db-1"}}))
    assert len(work.scenario.host[0].ready_before) == 2
    work.done("h0")
    work.step(RETURN_MS // STEP_MS - 1, hq=HqView(missing={"h0": {"web-1", "new-1"}}))
    assert work.scenario.host[0].problem == "web-1 is not ready in HQ"
    work.step(hq=HqView(missing={"h0": {"new-1"}}))
    assert progress_of(work.scenario.host[0]) is Progress.BACK


def test_while_hq_does_not_answer_no_wave_begins_and_no_host_is_back() -> None:
    work = MassReboot(at_once=1)
    away = HqView(problem="HQ does not answer: etcd is away")
    work.step(3, hq=away)
    assert not work.begun()
    assert work.scenario.message == "waits: HQ does not answer: etcd is away"
    work.step(hq=HqView(ready={"h0": ()}))
    work.done("h0")
    work.step(RETURN_MS // STEP_MS, hq=away)
    assert "h0 (HQ does not answer: etcd is away)" in work.scenario.message


def test_each_wave_is_judged_by_the_instances_ready_before_it() -> None:
    work = MassReboot(at_once=1)
    for name in ("h0", "h1"):
        while name not in work.begun():
            coming, returning = hosts_to_ask_hq_about(work.scenario, work.now_ms)
            work.step(hq=HqView({one: {f"web-{one}"} for one in coming}, {one: set() for one in returning}))
        work.done(name)
    work.step(RETURN_MS // STEP_MS, hq=HqView(missing={"h1": {"web-h1"}}))
    assert "failed: h1 (web-h1 is not ready in HQ)" in work.scenario.message


class SilentLocation:
    """A location of HQ without instances."""

    async def find(self, where: object, fields: Sequence[str]) -> AsyncIterator[FindInstancesResponse]:
        yield FindInstancesResponse()


async def test_a_host_without_ready_instances_still_counts_as_asked_about() -> None:
    hq = Hq({"ams": SilentLocation()})  # type: ignore[dict-item]
    view = await hq.view(["h0"], ["h1"])
    assert view is not None
    assert set(view.ready) == {"h0"}


def test_a_wave_waits_for_hq_before_it_begins_and_says_so() -> None:
    work = MassReboot(at_once=1)
    work.step(hq=HqView())
    assert not work.begun(), "HQ was not asked about any host"
    work.step(hq=HqView(problem="HQ does not answer: etcd is away"))
    assert not work.begun()
    assert work.scenario.message == "waits: HQ does not answer: etcd is away"
    work.step(hq=HqView(ready={"h0": ()}))
    assert work.begun() == ["h0"]


def test_without_hq_a_scenario_says_that_checks_alone_decide() -> None:
    work = MassReboot()
    work.step()
    assert work.scenario.message.endswith("without HQ: judged by checks alone")


def test_a_person_pauses_and_continues_a_scenario() -> None:
    work = MassReboot()
    work.step()
    work.steer(STEERING_PAUSE, "lunch")
    work.reboot_all()
    assert work.begun() == ["h0", "h1"]
    assert (work.scenario.stage, work.scenario.message) == (SCENARIO_STAGE_PAUSED, "paused by alice: lunch")
    work.step(30)
    work.steer(STEERING_CONTINUE)
    work.reboot_all()
    assert work.scenario.message == "done; failed: none"


def test_continuing_accepts_the_failed_hosts_and_gives_them_back() -> None:
    work = MassReboot()
    work.reboot_all("h0")
    work.steer(STEERING_CONTINUE)
    work.look()
    assert not work.host("h0").scenario
    work.reboot_all()
    assert work.begun() == NAMES
    assert work.scenario.message == "done; failed: h0 (UNREACHABLE fails)"


def test_retrying_reboots_the_failed_hosts_first() -> None:
    work = MassReboot(at_once=1)
    work.reboot_all("h0")
    work.steer(STEERING_RETRY)
    work.check("h0", failing=False)
    work.reboot_all()
    assert work.scenario.message == "done; failed: none"
    assert sum(one.kind == OPERATION_KIND_REBOOT for one in work.host("h0").history) == 2


def test_ending_a_scenario_gives_all_hosts_back() -> None:
    work = MassReboot()
    work.reboot_all("h0", "h1")
    end_scenario(work.book, EndScenarioRequest(scenario="kernel", reason="bad kernel"), "alice", at(work.now_ms))
    work.look()
    assert work.scenario.stage == SCENARIO_STAGE_CANCELLED
    assert not any(work.host(name).scenario for name in NAMES)


class Stopped:
    """The store of a process at which nothing may begin."""

    def __init__(self, work: MassReboot) -> None:
        self._work = work

    def why_nothing_begins(self) -> str:
        return "ann stopped everything"

    async def transact(self, decide: Callable[[WalleTransaction], T]) -> T:
        return decide(self._work.book)

    async def decide(self, decide: Callable[[WalleTransaction], list[Notice]]) -> None:
        decide(self._work.book)


def a_planner(work: MassReboot) -> Planner:
    return Planner(
        Stopped(work),  # type: ignore[arg-type]
        StoredScenarios(work.book),
        None,  # type: ignore[arg-type]
        NoHq(),
        work.world,
        lambda: at(work.now_ms),
        lambda names: "",
        lambda name: [host for host in NAMES if work.host(host).scenario == name],
        random.Random(1),
    )


async def test_while_everything_is_stopped_no_wave_begins_and_ending_gives_all_hosts_back() -> None:
    work = MassReboot()
    work.step()
    planner = a_planner(work)
    await planner.reconcile("kernel")
    assert work.scenario.message == "ann stopped everything"
    assert work.host("h0").scenario == "kernel"
    end_scenario(work.book, EndScenarioRequest(scenario="kernel", reason="bad kernel"), "alice", at(work.now_ms))
    await planner.reconcile("kernel")
    assert work.scenario.stage == SCENARIO_STAGE_CANCELLED
    assert not any(work.host(name).scenario for name in NAMES)


def test_a_scenario_ended_between_its_last_release_and_its_finish_gives_all_hosts_back() -> None:
    work = MassReboot()
    work.step()

    def held() -> list[str]:
        return [name for name in NAMES if work.host(name).scenario]

    *_, last = wave_decisions(partial(read_scenario, work.book, "kernel"), held, work.world, at(work.now_ms))
    end_scenario(work.book, EndScenarioRequest(scenario="kernel"), "alice", at(work.now_ms))
    last(work.book)
    assert work.scenario.stage == SCENARIO_STAGE_RETURNING
    work.look()
    assert work.scenario.stage == SCENARIO_STAGE_CANCELLED
    assert not held()


@pytest.mark.parametrize("days", [1, 100])
async def test_work_ended_by_an_earlier_version_is_kept_until_its_hosts_are_given_back(days: int) -> None:
    work = MassReboot()
    work.step()
    scenario = work.scenario
    scenario.stage = SCENARIO_STAGE_FINISHED
    work.book.put(SCENARIO, "kernel", scenario)
    newer = work.scenario
    newer.id, newer.since_ms = "newer", work.now_ms + days * 86_400_000
    work.book.put(SCENARIO, "newer", newer)
    work.now_ms = newer.since_ms
    planner = a_planner(work)
    await planner.reconcile("newer")
    assert work.scenario.id, "its name says which hosts are its"
    await planner.reconcile("kernel")
    assert not any(work.host(name).scenario for name in NAMES)
    assert bool(work.scenario.id) is (days == 1), "forgotten once it is old"


def test_nobody_may_report_work_of_wall_e_itself_as_done() -> None:
    work = MassReboot()
    with pytest.raises(Refused, match="Wall-E does this work"):
        end_scenario(work.book, EndScenarioRequest(scenario="kernel", done=True), "alice", at())


def test_a_wave_may_be_of_one_rack_and_of_a_size_in_per_cent() -> None:
    work = MassReboot(wave_size="30%", by_domain="rack", racks=("r1", "r2"))
    work.step()
    assert work.begun() == ["h0", "h2", "h4"]


def test_decommissioned_hosts_need_not_come_back() -> None:
    work = MassReboot(kind=SCENARIO_KIND_DECOMMISSION, at_once=10)
    work.step()
    assert work.host("h0").operation.kind == OPERATION_KIND_DEACTIVATE
    for name in NAMES:
        work.done(name, is_heard=False)
    work.step(SETTLE_MS // STEP_MS + 1)
    assert work.scenario.message == "done; failed: none"
    assert {work.host(name).state for name in NAMES} == {HOST_STATE_FREE}


def test_automation_lets_a_rebooted_host_come_back_before_it_repairs_it() -> None:
    work = MassReboot()
    work.step()
    work.done("h0")
    work.step(SETTLE_MS // STEP_MS)
    work.check("h0", failing=True)
    released_ms = work.host("h0").released_ms
    consider(work.book, "h0", work.world, at(released_ms + SETTLE_MS - 1))
    assert not work.host("h0").HasField("operation")
    consider(work.book, "h0", work.world, at(released_ms + SETTLE_MS))
    assert work.host("h0").HasField("operation")


def test_a_host_out_of_its_planners_reach_is_left_out_and_the_others_go_on() -> None:
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
    add_scenario(work.book, Order(by="ann", access="{}", add_scenario=order), NAMES, work.world, at(), work.host)
    stored = work.book.get(SCENARIO, "more")
    assert stored is not None
    assert stored.access == "{}"
