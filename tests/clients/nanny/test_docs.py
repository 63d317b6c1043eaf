"""docs/nanny.md: the commands run as they are written, and print what is printed there."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from pathlib import Path

import pytest

from nannyctl.exits import MEANINGS
from tests.clients.process import ROOT, environment
from tests.support.replicas import ReplicaProcess

PAGE = ROOT / "docs" / "nanny.md"

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


def commands() -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines that it prints there."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found: list[tuple[str, list[str]]] = []
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


async def printed(command: str, replica: ReplicaProcess, folder: Path) -> list[str]:
    """What a command prints in a shell that knows `nanny`."""
    shell = f'nanny() {{ {shlex.quote(sys.executable)} -m nannyctl.main "$@"; }}; '
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", shell + command.replace("127.0.0.1:7071", replica.grpc)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**environment(replica.grpc), "HOME": str(folder), "NANNY_CONFIG": ""},
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, (command, err.decode())
    return re.sub(r"version \d+", "version N", out.decode()).splitlines()


@pytest.mark.long
async def test_the_commands_of_the_page_run_as_written(replica: ReplicaProcess, tmp_path: Path) -> None:
    shown = commands()
    assert len(shown) >= 5
    for command, lines in shown:
        out = await printed(command, replica, tmp_path)
        assert out[: len(lines)] == lines, command


@pytest.mark.usefixtures("etcd_binary")
def test_the_page_lists_every_exit_code() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)}
    assert told == {int(code) for code in MEANINGS}
