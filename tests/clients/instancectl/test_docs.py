"""docs/instancectl.md: the commands run as they are written, and print what is printed there."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
from pathlib import Path

import pytest

from tests.clients.instancectl.supervised import ROOT, clean_environment, free_port
from tests.support.console_blocks import commands, normal
from tests.support.replicas import ReplicaProcess

PAGE = ROOT / "docs" / "instancectl.md"
EXAMPLE = "examples/instancectl/hello.yaml"
MARK = "=== next"


def script(replica: ReplicaProcess) -> str:
    """The page as one shell script. Its `&` must start instancectl itself, which is then killed by `$!`."""
    python = shlex.quote(sys.executable)
    lines = [
        "trap 'kill $! 2>/dev/null' EXIT",
        f'hqctl() {{ HQ_SERVER={replica.grpc} {python} -m hqctl.main "$@"; }}',
        f"alias instancectl='{python} -m instancectl.main'",
        *(f"{command}\necho '{MARK}'" for command, _ in commands(PAGE)),
    ]
    return "\n".join(lines).replace("127.0.0.1:7071", replica.grpc)


@pytest.mark.long
async def test_the_commands_of_the_page_run_as_written(hq: ReplicaProcess, tmp_path: Path) -> None:
    port = str(free_port())
    example = tmp_path / "hello.yaml"
    example.write_text((ROOT / EXAMPLE).read_text().replace("8090", port))
    page = tmp_path / "page.sh"
    ours = script(hq).replace(EXAMPLE, str(example)).replace("/tmp/hello-1", str(tmp_path / "hello-1"))
    page.write_text(ours.replace("8090", port))
    process = await asyncio.create_subprocess_exec(
        *("sh", str(page)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**clean_environment(), "HOME": str(tmp_path)},
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), 60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()  # its trap ends the supervisor
    *printed, _ = out.decode().replace(str(example), EXAMPLE).split(f"{MARK}\n")
    for (command, expected), found in zip(commands(PAGE), printed, strict=True):
        assert normal(found)[: len(normal(expected))] == normal(expected), (command, out.decode())
