"""What is promised of the transport: every judge that is on this machine finds nothing."""

from __future__ import annotations

import os

import pytest

from tests.judges.__main__ import run_judges
from tests.judges.judges import JUDGES, run_judge
from tests.judges.verdict import Verdict


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", JUDGES)
async def test_a_judge_finds_nothing(name: str) -> None:
    verdict = await run_judge(name)
    if not verdict.ran:
        pytest.skip(verdict.skipped)
    assert verdict.good, "\n".join([verdict.line(), *verdict.failed])


def _die_or_pass(name: str) -> tuple[Verdict, float]:
    if name == "dies":
        os._exit(9)
    return Verdict(version="1", passed=1), 0.0


@pytest.mark.long
async def test_a_judge_whose_process_dies_has_failed_and_the_others_are_heard(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await run_judges(("dies", "one", "two"), 2, _die_or_pass) == 1
    said = capsys.readouterr().out
    assert "failed: all of it: its process ended: A process in the process pool" in said
    assert "3 judges: 3 ran, 0 skipped, 1 found something" in said
