"""Real processes of the CMS, killed, paused and cut off, while clients use what they are granted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.checker.leave import (
    BOUNCE,
    FLOOR,
    MOST_TAKEN_BACK,
    STARVED,
    WHOLE,
    Ask,
    Service,
    Work,
    check,
    check_asks,
    check_calendar,
    check_groups,
)
from tests.cms.test_seeded_bugs import BUGS_IN_PROCESSES
from tests.rig.cms_run import CmsRun

WEB = Service("web", {"web-0": "h0", "web-1": "h1", "web-2": "h2"}, frozenset({"web-2"}), 1)


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_no_floor_is_broken_by_leave_whatever_is_killed_paused_or_cut_off(tmp_path: Path) -> None:
    run = CmsRun(tmp_path, seed=1)
    await run.run(15.0)
    assert [str(one) for one in run.broken()] == []
    assert run.frozen[1] > run.frozen[0] > 0
    assert run.grants >= 2, run.answers  # a ledger that never grants is safe and useless


@pytest.mark.long
@pytest.mark.night
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("bug", "word"), BUGS_IN_PROCESSES, ids=lambda one: getattr(one, "__name__", one))
async def test_the_checker_finds_seeded_bugs_in_real_processes(bug: Any, word: str, tmp_path: Path) -> None:
    run = CmsRun(tmp_path, seed=1, bug=bug.__name__, awaited=word)
    await run.run(120.0)
    assert word in {violation.word for violation in run.broken()}


def test_the_checker_finds_two_works_that_break_a_floor_together() -> None:
    works = [Work("a", ("h0",), 1.0, 5.0), Work("b", ("h1",), 4.0, 6.0)]
    [found] = check(works, [WEB])
    assert found.promise is FLOOR
    assert "b begins" in found.what


def test_the_checker_blames_neither_work_one_after_the_other_nor_repairs_of_the_broken() -> None:
    works = [Work("a", ("h0",), 1.0, 4.0), Work("b", ("h1",), 4.0, 6.0), Work("c", ("h2",), 4.5, 5.0)]
    assert not list(check(works, [WEB]))


BRIEF = Service("web", {f"web-{n}": f"h{n}" for n in range(4)}, frozenset(), 3, 2, bound_s=100.0)


@pytest.mark.parametrize(
    ("other", "work", "blamed"),
    [
        (Work("a", ("h0",), 0.0, 50.0, is_brief=True), Work("b", ("h1",), 10.0, 20.0, is_brief=True), False),
        (Work("a", ("h0",), 0.0, 50.0, is_brief=True), Work("b", ("h1",), 10.0, 20.0), True),
        (Work("a", ("h0",), 0.0, 200.0, is_brief=True), Work("b", ("h1",), 150.0, 160.0, is_brief=True), True),
        (Work("a", ("h0", "h1"), 0.0, 50.0, is_brief=True), Work("b", ("h1",), 10.0, 20.0), True),
    ],
    ids=["both brief", "one is not", "the first is late", "on a host of brief work"],
)
def test_the_checker_knows_the_floor_of_brief_work(other: Work, work: Work, blamed: bool) -> None:
    assert [one.promise for one in check([other, work], [BRIEF])] == [FLOOR] * blamed


def test_the_checker_blames_work_in_a_freeze_long_waits_and_oks_withdrawn_again_and_again() -> None:
    works = [Work("a", ("h0",), 5.0, 6.0), Work("b", ("h0",), 5.0, 6.0, is_exempt=True), Work("c", ("h0",), 9.0, 10.0)]
    assert [one.what[:1] for one in check_calendar(works, [(4.0, 9.0)])] == ["a"]
    asks = [Ask("a", 0.0, 9.0), Ask("b", 0.0, None), Ask("c", 5.0, None, MOST_TAKEN_BACK + 1)]
    assert [one.promise for one in check_asks(asks, ended=11.0, patience_s=10.0)] == [STARVED, BOUNCE]


@pytest.mark.parametrize(("begins", "blamed"), [((1.0, 1.0), False), ((1.0, 2.0), True), ((1.0,), True)])
def test_the_checker_knows_which_tasks_begin_together(begins: tuple[float, ...], *, blamed: bool) -> None:
    works = [Work(f"t{n}", ("h0",), began, 9.0, group="g") for n, began in enumerate(begins)]
    assert [one.promise for one in check_groups(works, {"g": 2})] == [WHOLE] * blamed
