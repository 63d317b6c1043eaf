"""The TypeScript example holds what the suite asks of every client, from `npm ci` and the public .proto files alone."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.conformance.__main__ import play_one
from tests.conformance.client_process import ClientProcess
from tests.conformance.scenarios import read_scenarios

ROOT = Path(__file__).parents[2]
_MADE = shutil.ignore_patterns("node_modules", "dist", "gen")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm on PATH: install Node.js 20 or newer")
async def test_the_typescript_client_holds(tmp_path: Path) -> None:
    folder = tmp_path / "clients" / "typescript"
    shutil.copytree(ROOT / "clients" / "typescript", folder, ignore=_MADE)
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    for command in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "build"]):
        run = await asyncio.create_subprocess_exec(*command, cwd=folder)
        assert await run.wait() == 0, command
    client = ClientProcess(["node", str(folder / "dist" / "conformance.js")])
    problems = {scenario.name: await play_one(client, scenario) for scenario in read_scenarios()}
    await client.close()
    assert not {name: problem for name, problem in problems.items() if problem}
