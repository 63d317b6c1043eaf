"""Random faults in virtual time: no order is lost or takes effect twice, never two act; and seeded bugs are found."""

from __future__ import annotations

import pytest

from tests.control.judge import violations
from tests.control.seeded_bugs import BUGS, Bug
from tests.control.simulated import Run
from tests.support.virtual_time import run_virtually


def check(seed: int) -> None:
    story = run_virtually(Run(seed).run)
    assert violations(story) == []
    assert story.acks > 50
    assert len(story.acting_since) > 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_no_order_is_lost_or_taken_twice_and_two_processes_never_act_at_once(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_no_order_is_lost_or_taken_twice_in_many_runs(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    assert any(violations(run_virtually(Run(seed).run)) for seed in range(8))
