"""The TypeScript example does what the suite asks of every client, from `npm ci` and the public .proto files alone."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.conformance.__main__ import play_one
from tests.conformance.client_process import ClientProcess
from tests.conformance.scenarios import read_scenarios
from tests.support.gateway_process import programs

ROOT = Path(__file__).parents[2]
_MADE = shutil.ignore_patterns("node_modules", "dist", "gen")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm on PATH: install Node.js 20 or newer")
async def test_the_typescript_client_passes_the_suite(tmp_path: Path) -> None:
    folder = tmp_path / "clients" / "typescript"
    shutil.copytree(ROOT / "clients" / "typescript", folder, ignore=_MADE)
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    page = (ROOT / "docs" / "typescript.md").read_text().split("```ts\n")[1].split("```")[0]
    page = page.replace('"127.0.0.1:7071"', "process.argv[2]!")
    (folder / "src" / "page.ts").write_text('import { Discovery } from "./discovery.js";\n' + page)
    for command in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "build"]):
        run = await asyncio.create_subprocess_exec(*command, cwd=folder)
        assert await run.wait() == 0, command
    client = ClientProcess(["node", str(folder / "dist" / "conformance.js")])
    problems = {scenario.name: await play_one(client, scenario) for scenario in read_scenarios()}
    await client.close()
    assert not {name: problem for name, problem in problems.items() if problem}
    await _page_works(folder)


async def _page_works(folder: Path) -> None:
    """The lines that docs/typescript.md begins with print what is found, and end with SIGTERM."""
    async with programs(folder) as started:
        hq = await started.registry()
        await hq.put("shop-1", "shop", port=8091, labels={"zone": "east"})
        command = ("node", str(folder / "dist" / "page.js"), hq.grpc)
        run = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=asyncio.subprocess.PIPE)
        assert run.stdout is not None
        async with asyncio.timeout(60):
            assert await run.stdout.readline() == b"shop-1 127.0.0.1:8091 { zone: 'east' }\n"
            run.terminate()
            assert await run.wait() == 0
