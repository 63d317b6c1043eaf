"""What is promised of the transport: every judge that is on this machine finds nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.judges import tools
from tests.judges.__main__ import run_judges
from tests.judges.envoy import proxy, uses, without_hq
from tests.judges.judges import JUDGES, run_judge
from tests.judges.verdict import Missing, Verdict

_AWAY_S = 660.0


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", JUDGES)
async def test_a_judge_finds_nothing(name: str) -> None:
    verdict = await run_judge(name)
    if not verdict.ran:
        pytest.skip(verdict.skipped)
    assert verdict.good, "\n".join([verdict.line(), *verdict.failed])


@pytest.mark.long
@pytest.mark.night
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("form", ["DELTA_GRPC", "GRPC"])
async def test_hq_away_for_eleven_minutes_fails_no_request_through_envoy(tmp_path: Path, form: str) -> None:
    try:
        path, _ = await tools.envoy()
    except Missing as why:
        pytest.skip(str(why))
    async with proxy(tmp_path, path, form) as (at, gateway, port):
        await at.hq.put("web-1", host="127.0.1.2", port=port)
        await at.hq.weigh("web-1", 0)
        load = asyncio.create_task(at.load())
        try:
            await uses(at, {"127.0.1.1"})
            at.failed.clear()  # before Envoy had its first endpoints
            await without_hq(at, gateway, _AWAY_S)
        finally:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)
        assert not at.failed


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
