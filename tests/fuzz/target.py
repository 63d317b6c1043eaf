"""A real replica to be attacked, as a process of its own: `hq dev` on free ports."""

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
_LISTENING: Final = re.compile(r"listening: gRPC (\S+), HTTP (\S+?)(,|\s|$)", re.MULTILINE)
# Shorter patience, so that requests that are never complete do not wait for longer than the fuzzer does.
FLAGS: Final = ("--slow-request", "2s")
_SERVES: Final = "Ctrl-C stops it"
_ACCIDENTS: Final = ("Traceback", "failed unexpectedly", " ERROR ", " CRITICAL ", "Exception")


class Target:
    """The process and its addresses."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process, self._log = process, log
        self.grpc = self.http = ""

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.returncode is None

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

    async def serves(self) -> None:
        """Return when it has read its store and says what to try."""
        async with asyncio.timeout(_START_S):
            while _SERVES not in self.log_text():
                assert self.is_alive(), self.log_text()
                await asyncio.sleep(0.05)
        found = _LISTENING.search(self.log_text())
        assert found is not None, self.log_text()
        self.grpc, self.http = found[1], found[2]

    async def end(self) -> None:
        if self.is_alive():
            self._process.send_signal(signal.SIGINT)
        async with asyncio.timeout(_START_S):
            await self._process.wait()


@asynccontextmanager
async def started(directory: Path, *flags: str) -> AsyncIterator[Target]:
    """`hq dev` with these flags, until the end of the block."""
    log = directory / "target.log"
    env = {k: v for k, v in os.environ.items() if not k.startswith("HQ_")}
    with log.open("wb") as to:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hq.main", "dev", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=to,
            stderr=to,
            env={**env, "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "proto")))},
        )
    target = Target(process, log)
    try:
        await target.serves()
        yield target
    finally:
        await target.end()


def faults_in(log: str) -> list[str]:
    """What a log must not hold, with the lines after it."""
    lines = log.splitlines()
    return [
        "log: " + " | ".join(lines[n : n + 12]) for n, line in enumerate(lines) if any(a in line for a in _ACCIDENTS)
    ][:5]
