"""docs/nanny-service.md: a first service, rolled out, back and away, run as written by one shell."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.judges.processes import ROOT, environment
from tests.support.gateway_process import Program, Registry

PAGE = ROOT / "docs" / "nanny-service.md"


def typed_and_printed() -> tuple[list[str], list[str]]:
    """What the page types, and what it says that is printed; ids of snapshots are alike."""
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    typed = [line[2:] for line in lines if line.startswith("$ ")]
    return typed, [_alike(line) for line in lines if not line.startswith("$ ")]


def _alike(line: str) -> str:
    return re.sub(r"snapshot [0-9a-f]{16}", "snapshot ID", line)


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_the_page_runs_as_written(tmp_path: Path) -> None:
    hq = Registry(tmp_path)
    words = ("dev", "--store", "memory", "--term", "2s", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
    typed, wanted = typed_and_printed()
    try:
        await hq.start()
        nanny = Program("nanny.main", (*words, "--location", f"default={hq.grpc}"), tmp_path / "nanny.log")
        await nanny.start()
        env = {**environment(), "HQ_SERVER": hq.grpc, "NANNY_SERVER": nanny.grpc, "TMPDIR": str(tmp_path)}
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-c", "\n".join(typed).replace("$PWD/.venv/bin", str(Path(sys.executable).parent))),
            cwd=ROOT,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            told, errors = await asyncio.wait_for(shell.communicate(), 240.0)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            await nanny.kill()
    finally:
        await hq.kill()
    assert [_alike(line) for line in told.decode().splitlines()] == wanted, errors.decode()
