"""What is promised of the transport: every judge that is on this machine finds nothing."""

from __future__ import annotations

import pytest

from tests.judges.judges import JUDGES, run_judge


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", JUDGES)
async def test_a_judge_finds_nothing(name: str) -> None:
    verdict = await run_judge(name)
    if not verdict.ran:
        pytest.skip(verdict.skipped)
    assert verdict.good, "\n".join([verdict.line(), *verdict.failed])
