"""The Go client holds what the suite asks of every client."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.conformance.__main__ import play_one
from tests.conformance.client_process import ClientProcess
from tests.conformance.scenarios import read_scenarios

MODULE = Path(__file__).parents[2] / "clients" / "go"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("go") is None, reason="there is no go on PATH")
async def test_the_go_client_holds(tmp_path: Path) -> None:
    for command in (
        ["go", "vet", "./..."],
        ["go", "test", "-race", "./..."],
        ["go", "build", "-o", str(tmp_path / "client"), "./cmd/hqconformance"],
    ):
        run = await asyncio.create_subprocess_exec(*command, cwd=MODULE)
        assert await run.wait() == 0, command
    client = ClientProcess([str(tmp_path / "client")])
    problems = {scenario.name: await play_one(client, scenario) for scenario in read_scenarios()}
    await client.close()
    assert not {name: problem for name, problem in problems.items() if problem}
