"""The commands of docs/federated.md run as written, on ports that are free."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.reserved_port import kept_ports
from tests.support.sample_instances import eventually

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"hq": "hq.main", "hqctl": "hqctl.main", "hq-federated": "federated.main"}
PORTS = ("7071", "7073", "7080", "7083", "7171", "7180")


def blocks() -> list[list[str]]:
    """The commands in the code blocks of the page that have no language."""
    text = (ROOT / "docs" / "federated.md").read_text()
    return [block.strip().splitlines() for block in re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]


class Shell:
    """Runs commands of the page with other ports; ends what it started."""

    def __init__(self, directory: Path) -> None:
        free = [str(port) for _ in range(3) for port in kept_ports()]
        self.ports = dict(zip(PORTS, free, strict=True))
        self._config = directory / "federated.yaml"
        self._config.write_text(self._free((ROOT / "examples" / "federated.yaml").read_text()))
        self.started: list[asyncio.subprocess.Process] = []

    async def start(self, command: str) -> asyncio.subprocess.Process:
        words = shlex.split(self._free(command).replace("examples/federated.yaml", str(self._config)))
        if words[0].startswith(".venv/bin/"):
            words[:1] = [sys.executable, "-m", MODULES[Path(words[0]).name]]
        if words[2:4] == ["hq.main", "dev"] and "--grpc" not in words:
            words += ["--grpc", f"127.0.0.1:{self.ports['7071']}", "--http", f"127.0.0.1:{self.ports['7080']}"]
        if words[2] == "federated.main":
            words += ["--grpc", f"127.0.0.1:{self.ports['7171']}", "--http", f"127.0.0.1:{self.ports['7180']}"]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HQ_", "http_proxy", "HTTP_PROXY"))}
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=ROOT,
            env={**env, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proto"), str(ROOT / "clients")))},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self.started.append(process)
        return process

    async def run(self, command: str) -> str:
        process = await self.start(command)
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        return out.decode()

    def _free(self, text: str) -> str:
        return re.sub(r"127\.0\.0\.1:(\d+)", lambda m: f"127.0.0.1:{self.ports[m[1]]}", text)


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    made = Shell(tmp_path)
    yield made
    for process in made.started:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_the_page_can_be_followed(shell: Shell) -> None:
    servers, (apply, create, find) = blocks()
    running = [await shell.start(command) for command in servers]

    async def answers() -> bool:
        said = await shell.run(find)
        return "No instance matches" in said and "did not respond" not in said

    async def whole_table() -> str:
        said = await shell.run(find)
        return "" if "did not respond" in said else said

    await eventually(answers, 90, what="both locations answer through the gateway")
    assert "web-1 created" in await shell.run(apply)
    assert '"cluster":"west"' in await shell.run(create)
    table = await eventually(whole_table, 90, what="a table that lacks no location")
    assert re.search(r"^CLUSTER +INSTANCE", table, re.MULTILINE)
    assert re.findall(r"^(east|west) +(web-\d)", table, re.MULTILINE) == [
        ("east", "web-1"),
        ("east", "web-2"),
        ("west", "web-9"),
    ]
    running[1].send_signal(signal.SIGINT)
    await asyncio.wait_for(running[1].communicate(), 60)
    without = await shell.run(find)
    assert "web-9" not in without
    assert "west did not respond" in without
