"""Machines of an operator, in directories: links to versions, and a `systemctl` that restarts real processes."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.clients.process import Outcome, ended
from tests.support.gateway_process import Program
from tests.support.reserved_port import kept_addresses

_MODULES = {"hq": "hq.main", "hq-cms": "cms.main", "hq-nanny": "nanny.main", "hq-walle": "walle.main"}
_COMMANDS = {"hq": "hq.main", "hqctl": "hqctl.main", "nanny": "nanny.main", "walle": "walle.main"}


def console_blocks(page: Path, section: str) -> list[str]:
    """What a section of a page types, block by block."""
    text = page.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^ *```console\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return ["\n".join(re.findall(r"^ *\$ (.*)$", block, re.MULTILINE)) for block in blocks]


class Machine:
    """`opt/hq` is a link to a version; units are started from it, each on addresses that it keeps.

    Attributes:
        units: their processes, by name.
        started: each unit and version that was started, in order.
    """

    def __init__(self, directory: Path, versions: Mapping[str, Path], etcd: str, units: Mapping[str, tuple[str, ...]]):
        self.directory, self._versions, self._etcd = directory, versions, etcd
        self._flags = {name: (*kept_addresses(), *flags) for name, flags in units.items()}
        self.units: dict[str, Program] = {}
        self.started: list[tuple[str, str]] = []
        for version, root in versions.items():
            folder = directory / "opt" / f"hq-{version}" / "bin"
            folder.mkdir(parents=True)
            for command, module in _COMMANDS.items():
                _write_script(folder / command, _command_of(root, module))
        (directory / "bin").mkdir()

    async def restart(self, unit: str) -> None:
        """SIGTERM, wait for its end, and start it as `opt/hq` says."""
        if unit in self.units:
            assert await self.units[unit].terminate() == 0, f"{unit} did not end in order"
        version = (self.directory / "opt" / "hq").readlink().name.removeprefix("hq-")
        log = self.directory / f"{unit}-{len(list(self.directory.glob('*.log')))}.log"
        words = ("serve", "--etcd", self._etcd, *self._flags[unit])
        self.units[unit] = Program(_MODULES[unit], words, log, self._versions[version])
        await self.units[unit].start()
        self.started.append((unit, version))

    async def start(self, version: str) -> None:
        """Everything, as this version."""
        (self.directory / "opt" / "hq").symlink_to(f"hq-{version}")
        for unit in self._flags:
            await self.restart(unit)

    async def run(self, commands: str) -> Outcome:
        """Let an operator type this here."""
        here = re.sub(r"(?<![\w/])/opt/", f"{self.directory}/opt/", commands)
        if "hq" in self.units:
            here = here.replace("127.0.0.1:7080", self.units["hq"].http)
        path = f"{self.directory}/bin:{self.directory}/opt/hq/bin:{os.environ['PATH']}"
        async with self._systemctl():
            shell = await asyncio.create_subprocess_exec(
                *("bash", "-e", "-c", here),
                cwd=self.directory,
                env={**os.environ, "PATH": path, "ETCD": self._etcd},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            return await ended(shell)

    @asynccontextmanager
    async def _systemctl(self) -> AsyncIterator[None]:
        """`systemctl restart UNIT` asks this process, which answers when it is done."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            verb, unit = (await reader.readline()).decode().split()
            assert verb == "restart"
            await self.restart(unit)
            writer.write(b"done\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        ask = f'exec 3<>/dev/tcp/127.0.0.1/{port}; echo "$1 $2" >&3; read -r said <&3; [ "$said" = done ]'
        _write_script(self.directory / "bin" / "systemctl", ask)
        async with server:
            yield

    async def kill(self) -> None:
        for program in self.units.values():
            await program.kill()

    def log_text(self) -> str:
        return "".join(path.read_text(errors="replace") for path in self.directory.glob("*.log"))


def _command_of(root: Path, module: str) -> str:
    path = os.pathsep.join(str(root / folder) for folder in ("", "proto", "clients"))
    return f'PYTHONPATH={path} exec {sys.executable} -P -m {module} "$@"'


def _write_script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
