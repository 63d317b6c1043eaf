"""Random histories of small clouds, each decision compared with the oracle's."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cms.histories import IMPATIENT, History


def run(seeds: range, *, has_rollouts: bool = False) -> Counter[str]:
    """How often each event happened in all of them."""
    events: Counter[str] = Counter()
    for seed in seeds:
        history = History(seed, has_rollouts)
        history.run()
        events += history.events
    return events


def _is_useful(events: Counter[str], histories: int) -> None:
    """A ledger that never grants is safe and useless: an hour of virtual time has some ten orders."""
    assert events["grant"] + events["offer"] > 6 * histories
    for event in ("withdraw", "lapse", "reject", "confirm"):
        assert events[event] > histories / 20, event


@pytest.mark.long
@pytest.mark.parametrize("has_rollouts", [False, True])
def test_the_ledger_decides_as_its_oracle_and_grants_everything_that_it_can(*, has_rollouts: bool) -> None:
    _is_useful(run(range(60), has_rollouts=has_rollouts), 60)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=[pytest.mark.night, pytest.mark.timeout(0)])])
def test_the_ledger_decides_as_its_oracle_over_many_histories(count: int) -> None:
    _is_useful(run(range(count)), count)


@pytest.mark.long
@pytest.mark.parametrize("count", [20, pytest.param(2_000, marks=[pytest.mark.night, pytest.mark.timeout(0)])])
def test_the_ledger_decides_as_its_oracle_where_tasks_wait_until_they_have_turns(count: int) -> None:
    for seed in range(count):
        History(seed, rules=IMPATIENT, steps=240).run()


def test_instances_held_by_an_earlier_ok_are_charged_to_it_only_until_it_is_withdrawn() -> None:
    History(20868).run()  # a later ok on the same host was confirmed below the floor
