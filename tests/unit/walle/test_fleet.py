"""A fleet for weeks of virtual time: random faults and disasters; limits hold, and what can be repaired is."""

from __future__ import annotations

import random

import pytest

from tests.support.walle.auditor import STUCK_MS
from tests.support.walle.fleet import DAY, HOUR, Fleet
from tests.support.walle.truth import FAULTS
from walle.fuses.fuse import Automation
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL

WEIGHTS = {"hangs": 60, "broken image": 15, "broken disk": 10, "wrong record": 10, "scrap": 5}


class Life:
    """What happens to a fleet: faults at random, and people who come some hours after a fuse went out."""

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
    """No new faults, and time to end everything."""
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
    """Racks are incidents, so what is red here stands alone: a third of every rack."""
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
    fleet.cms_down = set(fleet.projects)
    begun = fleet.auditor.begun
    life.live(HOUR)  # what was approved before ends
    begun = fleet.auditor.begun
    life.live(3 * HOUR)
    assert fleet.auditor.begun == begun, "work began without leave"
    fleet.cms_down = set()


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
def test_a_small_fleet_for_four_days(seed: int) -> None:
    fleet = Fleet(racks=8, per_rack=12, projects=2, seed=seed)
    life = live_through(fleet, 4, faults_per_day=12, seed=seed)
    assert fleet.truth.mended + fleet.auditor.declared_dead >= life.faults * 0.7, account(life)


@pytest.mark.long
@pytest.mark.night
@pytest.mark.timeout(1200)
def test_ten_thousand_hosts_for_thirty_days(capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Fleet(racks=250, per_rack=40, projects=20, seed=7)
    life = live_through(fleet, 30, faults_per_day=100, seed=7)
    with capsys.disabled():
        print(f"\n{account(life)}")
    assert fleet.truth.mended + fleet.auditor.declared_dead >= life.faults * 0.95, account(life)
