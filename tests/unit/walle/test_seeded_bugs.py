"""Seeded bugs of Wall-E are found by the search, the fleet's auditor, the killed processes or the promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from control import waves
from tests.support.walle.fleet import Fleet
from tests.support.walle.fuses import Panel
from tests.unit.walle import test_fleet as fleets
from tests.unit.walle import test_killed as deaths
from tests.unit.walle import test_operation_search as search
from tests.unit.walle import test_seed_limits as limits
from walle.approval.tasks import Collector
from walle.fuses import fuse as fuse_module
from walle.fuses.limits import limit_of
from walle.healing import check_sources, incidents, operation
from walle.healing.backoff import Backoff
from walle.healing.incidents import Incidents
from walle.process.healer import Healer
from walle.work import default_cms as default
from walle.work import orders, repairs
from wallepb.v1.host_pb2 import Check, Host

Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Clear the caches of the search, which hold results with or without the bug."""
    search.following.cache_clear()
    search.reachable.cache_clear()
    yield
    search.following.cache_clear()
    search.reachable.cache_clear()


def the_eleventh_passes(patch: Patch) -> None:
    def exceeded(fuse: Any, limits_: Any, use: Any, now_ms: int) -> str:
        for pair in limit_of(limits_, use.counter).pair:
            if len(fuse_module.hosts_in_window(fuse, use.counter, pair.period_s, now_ms)) > pair.count:
                return "too late"
        return ""

    patch.setattr(fuse_module, "exceeded_limit", exceeded)


def switching_on_what_is_on_launders_the_limit(patch: Patch) -> None:
    switch_on = fuse_module.switch_on

    def laundering(fuse: Any, *more: Any) -> Any:
        changed = switch_on(fuse, *more)
        del changed.mark[:]
        return changed

    patch.setattr("tests.support.walle.fuses.switch_on", laundering)


def the_fuse_is_not_looked_at_when_the_work_begins(patch: Patch) -> None:
    patch.setattr(repairs, "stops_approved", lambda *_: False)


def the_old_task_goes_before_the_new_one_is_there(patch: Patch) -> None:
    effects = operation.effects

    def hasty(one: Any, now_ms: int) -> Any:
        return [*effects(one, now_ms), *(operation.Effect(operation.Do.DELETE, task) for task in one.old_task)]

    patch.setattr(search, "effects", hasty)


def the_reboot_is_sent_before_its_intent_is_stored(patch: Patch) -> None:
    start = Healer._start

    async def hasty(self: Healer, host: Host) -> None:
        await self._parts.executor(host.operation.kind).begin(host)
        await start(self, host)

    patch.setattr(Healer, "_start", hasty)


def the_world_is_not_asked_after_a_death(patch: Patch) -> None:
    async def hasty(self: Healer, host: Host) -> None:
        await self._repeat(host, self._parts.executor(host.operation.kind))

    patch.setattr(Healer, "_work", hasty)


def a_dark_rack_is_many_broken_hosts(patch: Patch) -> None:
    patch.setattr(Incidents, "observe", lambda self, hosts, now_ms: [])


def the_default_cms_grants_one_too_many(patch: Patch) -> None:
    grant = default._grant
    patch.setattr(default, "_grant", lambda held, most, *more: grant(held, most + 1, *more))


def nothing_that_fails_is_paused(patch: Patch) -> None:
    patch.setattr(Backoff, "may_try", lambda *_: True)


def a_check_has_failed_since_it_first_did(patch: Patch) -> None:
    check_of = check_sources._check

    def remembering(check: Check | None, *more: Any) -> Check:
        changed = check_of(check, *more)
        changed.since_ms = check.since_ms if check is not None else changed.since_ms
        return changed

    patch.setattr(check_sources, "_check", remembering)


def a_bad_wave_stops_nothing(patch: Patch) -> None:
    patch.setattr(waves, "_too_many_failures", lambda *_: "")


def a_dead_controller_is_tried_for_ever(patch: Patch) -> None:
    patch.setattr(operation, "MAX_FAILURES", 1 << 30)


def one_source_clears_what_another_said(patch: Patch) -> None:
    change = check_sources.changed_check

    def believing(check: Check | None, report: Any, now: Any) -> Check | None:
        if check is not None and not report.failing:
            for said in check.said:
                said.name = report.source
        return change(check, report, now)

    patch.setattr(orders, "changed_check", believing)


def nobody_collects_what_was_not_deleted(patch: Patch) -> None:
    patch.setattr(Collector, "look", lambda *_: [])


def a_switch_is_no_place(patch: Patch) -> None:
    places_of = incidents.places_of
    patch.setattr(incidents, "places_of", lambda location: [one for one in places_of(location) if one.kind == "rack"])


def play_the_limits() -> None:
    limits.test_by_default_ten_firings_of_each_check_pass_in_a_day(Panel())


def play_the_switching() -> None:
    limits.test_switching_on_an_automation_that_is_on_resets_no_counter(Panel())


def play_the_search() -> None:
    search.test_work_begins_only_while_the_fuse_is_in_and_the_check_fails()
    search.test_every_cms_holds_a_task_for_a_host_in_work_between_two_steps_too()


def play_the_deaths() -> None:
    for death in range(1, 40):
        deaths.check((death,))


def play_a_dark_rack() -> None:
    fleet = Fleet(racks=4, per_rack=12, projects=1, seed=3)
    life = fleets.Life(fleet, 0, 3)
    fleets.rack_loses_power(life)
    assert fleet.auditor.actions == 0


def play_a_busy_project() -> None:
    fleet = Fleet(racks=8, per_rack=3, projects=1, seed=3, max_busy=3)
    for names in fleet.racks.values():
        fleet.break_host(names[0], "broken disk")
    fleets.Life(fleet, 0, 3).live(60, faults=False)


def play_for_days(name: str) -> Callable[[], None]:
    """A play of the fleet, which also has a test of its own without a bug."""

    def play() -> None:
        fleets.play_for_days(name)

    play.__name__ = name
    return play


# The bug, the play in which it shows, and the promise that is found broken, if it has a word.
BUGS: list[tuple[Callable[[Patch], None], Callable[[], None], str]] = [
    (the_eleventh_passes, play_the_limits, ""),
    (switching_on_what_is_on_launders_the_limit, play_the_switching, ""),
    (the_fuse_is_not_looked_at_when_the_work_begins, play_the_search, ""),
    (the_old_task_goes_before_the_new_one_is_there, play_the_search, ""),
    (the_reboot_is_sent_before_its_intent_is_stored, play_the_deaths, ""),
    (the_world_is_not_asked_after_a_death, play_the_deaths, ""),
    (a_dark_rack_is_many_broken_hosts, play_a_dark_rack, ""),
    (the_default_cms_grants_one_too_many, play_a_busy_project, ""),
    (nothing_that_fails_is_paused, play_for_days("a CMS rejects dry runs"), "EFFORT"),
    (a_check_has_failed_since_it_first_did, play_for_days("hosts_come_back_by_themselves"), "ITSELF"),
    (a_bad_wave_stops_nothing, play_for_days("planned_reboots_install_a_bad_kernel"), "WAVE"),
    (a_dead_controller_is_tried_for_ever, play_for_days("controllers_die"), "HELD"),
    (one_source_clears_what_another_said, play_for_days("sources_contradict_each_other"), "ITSELF"),
    (nobody_collects_what_was_not_deleted, play_for_days("a CMS deletes nothing"), "HELD"),
    (a_switch_is_no_place, play_for_days("switch_goes_dark"), "behind a dark switch"),
]
PLAYS = {play.__name__: play for _, play, _ in BUGS if play.__name__ not in fleets.PLAYS}


@pytest.mark.long
@pytest.mark.parametrize(("bug", "play", "word"), BUGS, ids=lambda one: getattr(one, "__name__", None))
def test_a_seeded_bug_is_found(bug: Callable[[Patch], None], play: Callable[[], None], word: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        with pytest.raises(AssertionError, match=word or None):
            play()


@pytest.mark.long
@pytest.mark.parametrize("name", PLAYS)
def test_without_a_bug_every_play_keeps_its_promises(name: str) -> None:
    PLAYS[name]()
