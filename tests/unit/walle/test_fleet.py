"""A fleet for weeks of virtual time with random faults and disasters: limits hold, and repairs succeed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import cast

import pytest

from tests.support.walle.auditor import SETTLE_MS, STUCK_MS
from tests.support.walle.fleet import DAY, HOUR, Fleet
from tests.support.walle.fleet_parts import CMS_FAULTS
from tests.support.walle.truth import BAD_KERNEL, FAULTS
from walle.fuses.fuse import Automation
from walle.work.scenario_kinds import SCENARIO_KINDS, ScenarioTraits
from wallepb.v1.host_pb2 import HOST_STATUS_DEAD, HOST_STATUS_READY, OPERATION_KIND_REDEPLOY
from wallepb.v1.project_pb2 import SCENARIO_STAGE_PAUSED, SEVERITY_CRITICAL, ScenarioKind

IMAGE_UPDATE = ScenarioTraits(OPERATION_KIND_REDEPLOY)
WEIGHTS = {"hangs": 60, "broken image": 15, "broken disk": 10, "wrong record": 10, "scrap": 5}


class Life:
    """What happens to a fleet: random faults, and people who come some hours after a fuse has tripped."""

    def __init__(self, fleet: Fleet, faults_per_day: float, seed: int) -> None:
        self.fleet, self.rng, self.rate = fleet, random.Random(seed), faults_per_day / DAY
        self.faults, self.person_at = 0, 0

    def live(self, minutes: int, *, faults: bool = True, people: bool = True) -> None:
        for _ in range(minutes):
            if faults and self.rng.random() < self.rate:
                fault = self.rng.choices(list(FAULTS), [WEIGHTS[name] for name in FAULTS])[0]
                self.fleet.break_host(self.rng.choice(self.fleet.hosts), fault)
                self.faults += 1
            self.fleet.step()
            if people:
                self._people()

    def _people(self) -> None:
        off = self.fleet.off()
        if off and not self.person_at:
            self.person_at = self.fleet.minute + 4 * HOUR
        if off and self.fleet.minute >= self.person_at and not self.fleet.truth.red:
            for fuse, automation in off:
                self.fleet.switch_on(fuse, automation, credits_=20 if automation is Automation.HEALING else 0)
            self.person_at = 0


def settle_down(life: Life, days: int) -> None:
    """Let `days` pass without new faults, and check that everything has ended."""
    life.live(days * DAY, faults=False)
    fleet = life.fleet
    assert not fleet.unresolved(), [fleet.why(name) for name in fleet.unresolved()[:5]]
    assert not any(fleet.host(name).HasField("operation") for name in fleet.hosts)
    assert fleet.auditor.longest_ms < STUCK_MS


def rack_loses_power(life: Life) -> None:
    fleet = life.fleet
    actions = fleet.auditor.in_incident
    fleet.darken("r3")
    life.live(3 * HOUR)
    fleet.lighten("r3")
    life.live(HOUR)
    assert fleet.auditor.in_incident == actions, "a host of a dark rack was touched"


def check_turns_red_everywhere(life: Life) -> None:
    """A check fails on a third of every rack: more would be an incident."""
    fleet = life.fleet
    before = fleet.auditor.actions
    fleet.turn_red([name for names in fleet.racks.values() for name in names[: len(names) // 3]])
    life.live(6 * HOUR, faults=False, people=False)
    allowed = sum(10 + 20 for _ in fleet.projects)  # the limit, and what is left of credits
    assert fleet.auditor.actions - before <= 2 * allowed  # each firing has at most two steps
    assert len(fleet.off()) >= 1
    assert any(notice.severity == SEVERITY_CRITICAL for notice in fleet.notices)
    fleet.turn_green()


def cms_goes_away(life: Life) -> None:
    fleet = life.fleet
    fleet.cms_faults = dict.fromkeys(fleet.projects, "away")
    begun = fleet.auditor.begun
    life.live(HOUR)  # what was approved before ends
    begun = fleet.auditor.begun
    life.live(3 * HOUR)
    assert fleet.auditor.begun == begun, "work began without leave"
    fleet.cms_faults.clear()


def switch_goes_dark(life: Life) -> None:
    """A switch of half a rack, which is no incident of the rack, is dark for longer than any timeout."""
    fleet = life.fleet
    fleet.darken("r1-0")
    before = fleet.auditor.actions
    life.live(DAY, faults=False)
    assert fleet.auditor.actions == before, "a host behind a dark switch was touched"
    fleet.lighten("r1-0")


def controllers_die(life: Life) -> None:
    """Controllers of a quarter of the hosts die. Some of these hosts break: their repairs are given up and hold
    nothing.
    """
    fleet = life.fleet
    fleet.truth.dead_bmc = set(fleet.hosts[::4])
    for name in fleet.hosts[:12:4]:
        fleet.break_host(name, "hangs")
    life.live(2 * DAY)
    assert {fleet.host(name).status for name in fleet.truth.dead_bmc & set(fleet.truth.fault)} <= {HOST_STATUS_DEAD}
    fleet.truth.dead_bmc.clear()


def hosts_come_back_by_themselves(life: Life) -> None:
    """Hosts are out of reach again and again, each time for less than the settle time."""
    fleet, rng = life.fleet, life.rng
    before = fleet.auditor.actions
    for _ in range(DAY // 10):
        for name in rng.sample(fleet.hosts, 3):
            fleet.blip(name, rng.randrange(1, SETTLE_MS // 60_000))
        life.live(10, faults=False)
    assert fleet.auditor.actions == before, "what came back by itself was repaired"


def sources_contradict_each_other(life: Life) -> None:
    """One source always says good, one reports short false failures; what monitoring sees is repaired."""
    fleet = life.fleet
    contradicted = fleet.hosts[::5]  # two of a rack at most: more would be an incident of it
    fleet.contradicted = set(contradicted)
    fleet.active |= fleet.contradicted
    life.live(3 * HOUR, faults=False)
    broken, mended = contradicted[::3], fleet.truth.mended
    for name in broken:
        fleet.break_host(name, "hangs")
    life.live(12 * HOUR, faults=False)
    assert fleet.truth.mended >= mended + len(broken) - 1, "a fine word of another source kept a host from its repair"
    fleet.contradicted.clear()


def planned_reboots_install_a_bad_kernel(life: Life) -> None:
    """The first wave does not come back, so no second one begins, today or tomorrow."""
    fleet = life.fleet
    names = [name for name in fleet.hosts if fleet.host(name).status == HOST_STATUS_READY][:20]
    fleet.truth.bad_kernel = set(names)
    fleet.plan("kernel", names, "3")
    life.live(DAY, faults=False)
    hit = [name for name, fault in fleet.truth.fault.items() if fault == BAD_KERNEL]
    assert len(hit) == 3, hit
    assert [one.stage for one in fleet.scenarios()] == [SCENARIO_STAGE_PAUSED]
    fleet.truth.bad_kernel.clear()
    fleet.end_scenario("kernel")
    life.live(DAY, faults=False)


def planned_reboots_of_a_good_kernel(life: Life) -> None:
    fleet = life.fleet
    names = [name for name in fleet.hosts if fleet.host(name).status == HOST_STATUS_READY][:20]
    fleet.plan("good", names, "20%")
    life.live(DAY, faults=False)
    assert not fleet.scenarios()


def cms_fails(fault: str) -> Callable[[Life], None]:
    def fail(life: Life) -> None:
        fleet = life.fleet
        fleet.cms_faults = dict.fromkeys(fleet.projects[:1], fault)
        for rack, kind in enumerate(("hangs", "broken image", "wrong record")):
            fleet.break_host(fleet.racks[f"r{2 * rack}"][0], kind)  # p0 has every other rack
        life.live(2 * DAY, faults=False)
        fleet.cms_faults.clear()

    return fail


PLAYS = {
    one.__name__: one
    for one in (
        *(switch_goes_dark, controllers_die, hosts_come_back_by_themselves, sources_contradict_each_other),
        *(planned_reboots_install_a_bad_kernel, planned_reboots_of_a_good_kernel),
    )
} | {f"a CMS {fault}": cms_fails(fault) for fault in CMS_FAULTS}


@pytest.mark.long
@pytest.mark.parametrize("name", PLAYS)
def test_a_failure_that_lasts_for_days_costs_few_calls_and_is_repaired_afterwards(name: str) -> None:
    """The auditor checks EFFORT, ITSELF, WAVE and HELD besides limits and budgets."""
    play_for_days(name)


def play_for_days(name: str) -> Fleet:
    fleet = Fleet(racks=6, per_rack=8, projects=2, seed=5)
    life = Life(fleet, faults_per_day=4, seed=5)
    life.live(6 * HOUR)
    PLAYS[name](life)
    settle_down(life, 2)
    return fleet


def test_a_new_kind_of_planned_work_needs_only_its_row_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {*SCENARIO_KINDS} == {*ScenarioKind.values()} - {0}
    new_kind = cast("ScenarioKind", max(ScenarioKind.values()) + 1)
    monkeypatch.setitem(cast("dict[ScenarioKind, ScenarioTraits]", SCENARIO_KINDS), new_kind, IMAGE_UPDATE)
    fleet = Fleet(racks=1, per_rack=4, projects=1, seed=1)
    fleet.plan("image", fleet.hosts, "2", new_kind)
    Life(fleet, 0, 1).live(3 * HOUR, faults=False)
    assert not fleet.scenarios()
    assert {fleet.host(name).history[0].kind for name in fleet.hosts} == {OPERATION_KIND_REDEPLOY}
    assert fleet.auditor.begun == 4


def live_through(fleet: Fleet, days: int, faults_per_day: float, seed: int) -> Life:
    life = Life(fleet, faults_per_day, seed)
    for disaster in (rack_loses_power, check_turns_red_everywhere, cms_goes_away):
        life.live(days * DAY // 4)
        disaster(life)
    life.live(days * DAY // 4)
    settle_down(life, 2)
    return life


def account(life: Life) -> str:
    truth, auditor = life.fleet.truth, life.fleet.auditor
    dead = f"{auditor.declared_dead} hosts declared dead"
    return f"{truth.mended} of {life.faults} faults repaired, {dead}, {auditor.actions} actions"


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_small_fleet_is_kept_healthy_for_four_days(seed: int) -> None:
    fleet = Fleet(racks=8, per_rack=12, projects=2, seed=seed)
    life = live_through(fleet, 4, faults_per_day=12, seed=seed)
    assert fleet.truth.mended + fleet.auditor.declared_dead >= life.faults * 0.7, account(life)


@pytest.mark.long
@pytest.mark.night
@pytest.mark.timeout(1200)
def test_ten_thousand_hosts_are_kept_healthy_for_thirty_days(capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Fleet(racks=250, per_rack=40, projects=20, seed=7)
    life = live_through(fleet, 30, faults_per_day=100, seed=7)
    with capsys.disabled():
        print(f"\n{account(life)}")
    assert fleet.truth.mended + fleet.auditor.declared_dead >= life.faults * 0.95, account(life)
