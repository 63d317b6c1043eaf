"""docs/cms-end-to-end.md, run as written by one shell: real supervisors, and a looker-on from outside."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.judges.processes import ROOT, environment
from tests.rig.controller_faults import Process

PAGE = ROOT / "docs" / "cms-end-to-end.md"
_WITHIN_S = 200.0


def commands() -> list[str]:
    """What the page types, in order."""
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def printed() -> list[str]:
    """What it says that is printed."""
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if not line.startswith("$ ")]


@asynccontextmanager
async def servers(folder: Path) -> AsyncIterator[dict[str, str]]:
    """HQ and the CMS as the page starts them, on free ports; the variables that name them."""
    where = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
    async with AsyncExitStack() as stack:
        hq = Process(("hq.main", "dev", "--store", "memory", "--report-interval", "4s", *where), folder / "hq.log")
        stack.push_async_callback(hq.kill)
        await hq.start()
        words = ("cms.main", "dev", "--store", "memory", "--sites", "examples/cms/sites.yaml")
        cms = Process((*words, "--location", f"default={hq.grpc}", *where), folder / "cms.log")
        stack.push_async_callback(cms.kill)
        await cms.start()
        yield {"HQ_SERVER": hq.grpc, "HQ_CMS": cms.grpc}


async def run_page(folder: Path) -> list[str]:
    """What it prints. Everything that its shell left behind is ended."""
    async with servers(folder) as variables:
        bin_folder = str(Path(sys.executable).parent)
        script = "\n".join(commands()).replace("$PWD/.venv/bin", bin_folder)
        with (folder / "shell.log").open("wb") as errors:
            shell = await asyncio.create_subprocess_exec(
                *("bash", "-c", script),
                cwd=ROOT,
                env={**environment(), **variables, "TMPDIR": str(folder)},
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        try:
            told, _ = await asyncio.wait_for(shell.communicate(), _WITHIN_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        return told.decode().splitlines()


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_the_page_runs_as_written_and_its_floors_hold(tmp_path: Path) -> None:
    told = await run_page(tmp_path)
    wanted = printed()
    least = [re.sub(r"least \d+", "least N", line) for line in told]
    assert least == [re.sub(r"least \d+", "least N", line) for line in wanted], (tmp_path / "shell.log").read_text()


@pytest.mark.long
@pytest.mark.night
@pytest.mark.timeout(3600)
async def test_the_floors_of_the_page_hold_in_twenty_runs(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert "BROKEN" not in "\n".join(await run_page(folder)), f"run {number}"
