"""The walk of docs/gateways.md, command by command: a Go program, dig and consul-template follow a roll-out."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.judges import tools
from tests.judges.processes import ROOT, environment
from tests.judges.verdict import Missing
from tests.support.gateway_process import Programs
from tests.support.reserved_port import quiet_port

_SECTION: Final = (ROOT / "docs" / "gateways.md").read_text().partition("## Try it")[2].partition("\n## ")[0]
_PORTS: Final = ("7671", "7653", "7680", "9001", "9002")  # of the page, beside HQ's 7071
_STAY: Final = ("servers.py", "hq-gateway", "go run", "consul-template -consul-addr")
_WAIT_S: Final = 120.0  # `go run` compiles gRPC first


class Walk:
    """The page's commands in a folder that looks like the tree, with free ports in place of the page's."""

    def __init__(self, folder: Path, hq: str) -> None:
        self._folder, self._conf = folder, folder / "web.conf"
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self.ports = {port: str(quiet_port()) for port in _PORTS}
        self._told = {"7071": hq.rpartition(":")[2], **self.ports}
        (folder / ".venv").symlink_to(sys.prefix)
        shutil.copytree(ROOT / "examples" / "gateways", folder / "examples" / "gateways")
        for name in ("web.yaml", "bootstrap.json"):
            path = folder / "examples" / "gateways" / name
            path.write_text(self.translated(path.read_text()))
        self._env = environment() | {
            "HQ_SERVER": hq,
            "PATH": f"{tools.FOLDER / 'bin'}:{os.environ['PATH']}",
            "HQ_GATEWAY_GRPC": f"127.0.0.1:{self.ports['7671']}",
            "HQ_GATEWAY_DNS": f"127.0.0.1:{self.ports['7653']}",
        }

    def translated(self, text: str) -> str:
        """A line of the page translated for this test's addresses."""
        text = text.replace("/tmp/web.conf", str(self._conf))
        return re.sub(r"\b(7071|7671|7653|7680|9001|9002)\b", lambda found: self._told[found[0]], text)

    async def type(self, command: str) -> str:
        """What it prints; a command that stays is left running, and its output is `said(command)`."""
        stays = any(word in command for word in _STAY)
        http = self.ports["7680"] if "hq-gateway consul" in command else "0"
        with self._log(command).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *("bash", "-c", self.translated(command)),
                cwd=self._folder,
                env=self._env | {"HQ_GATEWAY_HTTP": f"127.0.0.1:{http}"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # bash, go, and the program that go built end together
            )
        if stays:
            self._processes[command] = process
        else:
            code = await asyncio.wait_for(process.wait(), _WAIT_S)
            assert code == 0, f"$ {command}\n{self.said(command)}"
        return self.said(command)

    def said(self, command: str) -> str:
        return self._log(command).read_text(errors="replace")

    async def is_up(self, command: str, starts: int = 1) -> None:
        """Return when this server listens, if it is one."""
        word = "serving on" if "servers.py" in command else "listening" if "hq-gateway" in command else ""
        await _within(lambda: not word or self.said(command).count(word) >= starts, lambda: self.said(command))

    async def shows(self, port: str) -> None:
        """Return when the Go program's next calls, the template and dig name this server; no call ever failed."""
        calls = self.said(_only("go run"))

        def answers() -> list[str]:
            return self.said(_only("go run"))[len(calls) :].splitlines()[-3:]

        await _within(lambda: answers() == [f"answered by 127.0.0.1:{port}"] * 3, answers)
        await _within(lambda: f"server 127.0.0.1:{port};" in _text(self._conf), lambda: _text(self._conf))
        assert (await self.type(_only("dig"))).splitlines()[-1].split()[2] == port
        assert "failed" not in self.said(_only("go run"))

    async def list_is_kept(self) -> None:
        """Return when the file that the gateways share says that the second instance alone is ready."""

        def ready() -> list[set[str]]:
            kept = [json.loads(path.read_text()) for path in (self._folder / ".hq" / "gateways").glob("*.json")]
            return [{one["id"] for one in each["instances"] if one["is_ready"]} for each in kept]

        await _within(lambda: ready() == [{"web-2"}], ready)

    async def gateways_start_again(self) -> None:
        gateways = [command for command in commands() if "hq-gateway" in command]
        await self.end(*gateways)
        self._conf.unlink()
        for command in gateways:
            await self.type(command)
            await self.is_up(command, starts=2)
        await self.end(_only("consul-template"))
        await self.type(_only("consul-template"))  # writes the file anew

    async def end(self, *which: str) -> None:
        """SIGKILL these commands; none named: all."""
        for command in which or tuple(self._processes):
            process = self._processes.pop(command)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def _log(self, command: str) -> Path:
        return self._folder / f"{re.sub(r'[^a-z0-9]+', '-', command.lower())[:100]}.log"


def commands() -> list[str]:
    """What the page types, in its order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", _SECTION, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if not line.startswith("#")]


def _only(word: str) -> str:
    """The page's one command that does this."""
    (found,) = [command for command in commands() if word in command and "hqctl" not in command]
    return found


async def _within(holds: Callable[[], bool], of: Callable[[], object]) -> None:
    try:
        async with asyncio.timeout(_WAIT_S):
            while not holds():
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(str(of()))


def test_the_page_types_what_the_walk_knows() -> None:
    every = "\n".join(commands())
    assert all(word in every for word in (*_STAY, "dig", "hqctl apply", *_PORTS[1:4])), every


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_the_walk_goes_as_the_page_says(tmp_path: Path, started: Programs) -> None:
    await _have_tools()
    (tmp_path / "walk").mkdir()
    hq = await started.registry()
    walk = Walk(tmp_path / "walk", hq.grpc)
    every = commands()
    rolls_out = next(at for at, command in enumerate(every) if "web-2" in command)
    try:
        for command in every[:rolls_out]:
            await walk.type(command)
            await walk.is_up(command)
        await walk.shows(walk.ports["9001"])
        for command in every[rolls_out:]:
            await walk.type(command)
        await walk.shows(walk.ports["9002"])

        await walk.list_is_kept()
        hq.pause()
        await walk.gateways_start_again()
        await walk.shows(walk.ports["9002"])
        hq.resume()
    finally:
        await walk.end()


async def _have_tools() -> None:
    for name in ("go", "dig"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not on PATH")
    try:
        await tools.go_tool("consul-template")
    except Missing as missing:
        pytest.skip(str(missing))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
