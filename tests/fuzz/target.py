"""A real replica to be attacked, a process of its own on free ports: `hq dev`, or `hq serve` that asks who calls."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_START_S: Final = 60.0
_LISTENING: Final = re.compile(r"listening: gRPC (\S+), HTTP (\S+?)(?:,|\s|$)", re.MULTILINE)
_CERTIFIED: Final = re.compile(r"gRPC with certificates (\S+)$", re.MULTILINE)
# Shorter patience, so that requests that are never complete do not wait for longer than the fuzzer does.
FLAGS: Final = ("--slow-request", "2s")
_ACCIDENTS: Final = ("Traceback", "failed unexpectedly", " ERROR ", " CRITICAL ", "Exception")
_SERVES: Final = re.compile("Ctrl-C stops it")
_DESIGNED: Final = "cannot load the file, its previous contents remain in force"


class Target:
    """The process and its addresses."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process, self._log = process, log
        self.grpc = self.http = self.certified = ""

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.returncode is None

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

    async def says(self, words: re.Pattern[str]) -> re.Match[str]:
        """Return when its log does."""
        async with asyncio.timeout(_START_S):
            while (found := words.search(self.log_text())) is None:
                assert self.is_alive(), self.log_text()
                await asyncio.sleep(0.05)
        return found

    async def listens(self) -> None:
        """Return when its addresses are known."""
        found = await self.says(_LISTENING)
        self.grpc, self.http = found[1], found[2]
        certified = _CERTIFIED.search(self.log_text())
        self.certified = certified[1] if certified else ""

    async def end(self) -> None:
        if self.is_alive():
            self._process.send_signal(signal.SIGINT)
        async with asyncio.timeout(_START_S):
            await self._process.wait()


@asynccontextmanager
async def started(directory: Path, *flags: str) -> AsyncIterator[Target]:
    """`hq dev` with these flags, until the end of the block; it serves."""
    async with _started(directory, "dev", *flags) as target:
        await target.says(_SERVES)
        yield target


@asynccontextmanager
async def guarded_by(directory: Path, *flags: str) -> AsyncIterator[Target]:
    """`hq serve` with these flags, until the end of the block; it listens."""
    async with _started(directory, "serve", *flags) as target:
        yield target


@asynccontextmanager
async def _started(directory: Path, command: str, *flags: str) -> AsyncIterator[Target]:
    log = directory / "target.log"
    env = {k: v for k, v in os.environ.items() if not k.startswith("HQ_")}
    with log.open("wb") as to:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hq.main", command, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=to,
            stderr=to,
            env={**env, "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "proto"), str(_ROOT / "clients")))},
        )
    target = Target(process, log)
    try:
        await target.listens()
        yield target
    finally:
        await target.end()


def faults_in(log: str) -> list[str]:
    """What a log must not hold, with the lines after it."""
    lines = log.splitlines()
    bad = [n for n, line in enumerate(lines) if any(a in line for a in _ACCIDENTS) and _DESIGNED not in line]
    return ["log: " + " | ".join(lines[n : n + 12]) for n in bad][:5]
