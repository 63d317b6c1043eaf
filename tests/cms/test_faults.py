"""Real processes of the CMS, killed, paused and cut off, while clients use what they are granted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checker.leave import FLOOR, Service, Work, check
from tests.rig.cms_run import CmsRun

WEB = Service("web", {"web-0": "h0", "web-1": "h1", "web-2": "h2"}, frozenset({"web-2"}), 1)


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_no_floor_is_broken_by_leave_whatever_is_killed_paused_or_cut_off(tmp_path: Path) -> None:
    run = CmsRun(tmp_path, seed=1)
    await run.run(15.0)
    assert [str(one) for one in check(run.works, run.services)] == []
    assert run.grants >= 2, run.answers  # a ledger that never grants is safe and useless


def test_the_checker_finds_two_works_that_break_a_floor_together() -> None:
    works = [Work("a", ("h0",), 1.0, 5.0), Work("b", ("h1",), 4.0, 6.0)]
    [found] = check(works, [WEB])
    assert found.promise is FLOOR
    assert "b begins" in found.what


def test_the_checker_blames_neither_work_one_after_the_other_nor_repairs_of_the_broken() -> None:
    works = [Work("a", ("h0",), 1.0, 4.0), Work("b", ("h1",), 4.0, 6.0), Work("c", ("h2",), 4.5, 5.0)]
    assert not list(check(works, [WEB]))
