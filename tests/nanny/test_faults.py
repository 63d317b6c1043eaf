"""Real processes of Nanny and HQ, killed, paused and cut off, while orders contradict each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checker.orders import CAUGHT, ONCE, SERVES, Look, check_bad, check_orders, check_served
from tests.rig.nanny_run import NannyRun


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_the_floor_is_kept_and_orders_happen_once_whatever_is_killed_paused_or_cut_off(tmp_path: Path) -> None:
    run = NannyRun(tmp_path, seed=1)
    await run.run(30.0)
    assert [str(one) for one in run.violations()] == []
    assert run.bad
    assert run.arrived  # a Nanny that touches nothing is safe and useless


def test_the_checker_finds_a_look_below_the_floor() -> None:
    [found] = check_served([Look(1.0, ("a", "b")), Look(1.1, ("a",))], 2)
    assert found.promise is SERVES
    [found] = check_served([Look(1.0, ("a",), excused=1), Look(1.1, (), excused=1)], 2)
    assert "0 ready, 1 on dead nodes" in found.what


def test_the_checker_finds_a_roll_out_of_what_crashes_that_did_not_fail() -> None:
    outcomes = {"a": "ROLLED_BACK", "b": "FAILED", "c": "REACHED", "d": "OPEN"}
    found = list(check_bad(outcomes))
    assert [one.what.split()[0] for one in found] == ["c", "d"]
    assert all(one.promise is CAUGHT for one in found)


def test_the_checker_finds_orders_lost_doubled_carried_out_though_refused_or_given_by_nobody() -> None:
    answers = {"fine": True, "lost": True, "twice": True, "no": False}
    found = list(check_orders(answers, ["fine", "twice", "twice", "no", "ghost"]))
    assert {one.what.split()[0] for one in found} == {"lost", "twice", "no", "ghost"}
    assert all(one.promise is ONCE for one in found)
