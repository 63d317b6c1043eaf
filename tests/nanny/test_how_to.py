"""Pages of Nanny, each run as written by one shell: a first service, rolled out, back and away; a canary by weight."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.judges.processes import ROOT, environment
from tests.support.gateway_process import Program, Registry
from tests.support.reserved_port import KeptPort


def typed_and_printed(page: str) -> tuple[list[str], list[str]]:
    """What a page types, and what it says that is printed; ids of snapshots are alike."""
    blocks = re.findall(r"^```console\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    typed = [line[2:] for line in lines if line.startswith("$ ")]
    return typed, [_alike(line) for line in lines if not line.startswith("$ ")]


def _alike(line: str) -> str:
    return re.sub(r"snapshot [0-9a-f]{16}", "snapshot ID", line)


@pytest.mark.long
@pytest.mark.timeout(480)
@pytest.mark.parametrize("page", ["nanny-service.md", "nanny-canary.md"])
async def test_the_page_runs_as_written(page: str, tmp_path: Path) -> None:
    kept = KeptPort()
    prometheus = f"127.0.0.1:{kept.number}"
    if "canary" in page and shutil.which("prometheus") is None:
        pytest.skip("no prometheus on PATH: apt-get install prometheus")
    checks = tmp_path / "checks.yaml"
    checks.write_text((ROOT / "examples" / "nanny" / "checks.yaml").read_text().replace("127.0.0.1:9090", prometheus))
    hq = Registry(tmp_path)
    words = ["dev", "--store", "memory", "--term", "2s", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    words += ["--prometheus", str(checks)]
    typed, wanted = typed_and_printed(page)
    try:
        await hq.start()
        nanny = Program("nanny.main", (*words, "--location", f"default={hq.grpc}"), tmp_path / "nanny.log")
        await nanny.start()
        env = {
            **environment(),
            "HQ_SERVER": hq.grpc,
            "NANNY_SERVER": nanny.grpc,
            "PROMETHEUS": prometheus,
            "TMPDIR": str(tmp_path),
        }
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-c", "\n".join(typed).replace("$PWD/.venv/bin", str(Path(sys.executable).parent))),
            cwd=ROOT,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            told, errors = await asyncio.wait_for(shell.communicate(), 420.0)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            await nanny.kill()
    finally:
        await hq.kill()
    assert [_alike(line) for line in told.decode().splitlines()] == wanted, errors.decode()
