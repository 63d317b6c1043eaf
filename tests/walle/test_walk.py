"""The walk of docs/walle.md, command by command: each is repeated until it answers what the page says."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.reserved_port import KeptPort

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "walle.md").read_text()
BIN = Path(sys.executable).parent
WAIT_S = 40.0
EXAMPLE = ROOT / "examples" / "walle" / "walle.yaml"


def commands() -> list[tuple[str, list[str]]]:
    """What the page types, and the lines that must be in the answer."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.strip():
                found[-1][1].append(line)
    return found


async def output_of(command: str, env: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command), env=env, cwd=env["PWD"], stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return output.decode()


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Wall-E as the page starts it, on free ports; PWD is a folder in which files may be written."""
    kept = KeptPort()  # held until the end: the program binds it some time later
    port = kept.number
    env = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "WALLE_SERVER": f"127.0.0.1:{port}"}
    env["PWD"] = str(tmp_path)
    (start,) = re.findall(r"^walle dev .*$", PAGE, re.MULTILINE)
    config = tmp_path / "walle.yaml"  # its program asks the port of the page, unless it is given another
    config.write_text(EXAMPLE.read_text().replace("[walle, hosts", f'[walle, --server, "127.0.0.1:{port}", hosts'))
    start = start.replace(str(EXAMPLE.relative_to(ROOT)), str(config))
    argv = [*shlex.split(start), "--grpc", f"127.0.0.1:{port}", "--http", "127.0.0.1:0"]
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*argv, env=env, cwd=ROOT, stdout=log, stderr=log)
        try:
            yield env
        finally:
            with suppress(ProcessLookupError):  # it ended
                process.terminate()
            await asyncio.wait_for(process.wait(), 20)


def looks_only(command: str) -> bool:
    return any(word in shlex.split(command) for word in ("get", "list", "show", "forecast"))


def squeezed(text: str) -> str:
    """Columns move with their contents."""
    return " ".join(text.split())


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_the_walk_goes_as_the_page_says(env: dict[str, str]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_S
    while re.search("leader: (?!no process)", shown := await output_of("walle settings get", env)) is None:
        assert loop.time() < deadline, shown
    for command, expected in commands():
        if command.startswith("cat "):  # a file that the reader has
            Path(env["PWD"], command.removeprefix("cat ")).write_text("\n".join(expected) + "\n")
        deadline = loop.time() + WAIT_S
        while True:
            output = await output_of(command, env)
            missing = [line for line in expected if squeezed(line) not in squeezed(output)]
            if not missing or not looks_only(command):
                break
            assert loop.time() < deadline, f"$ {command}\n{output}\nmissing: {missing}"
            await asyncio.sleep(0.3)
        assert not missing, f"$ {command}\n{output}\nmissing: {missing}"
