"""The witness as a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.rig.installation import PREFIX


class WitnessProcess:
    """tests/rig/witness.py in a process of its own.

    Attributes:
        seen: the revision up to which it has written everything.
    """

    def __init__(self, out: Path, history: int, endpoints: Sequence[str], seen: int = 0) -> None:
        self.out, self._history, self._endpoints, self.seen = out, history, list(endpoints), seen
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return when it watches."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.rig.witness", str(self.out), PREFIX, str(self._history), str(self.seen)),
            *self._endpoints,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        await self._take(await self._process.stdout.readline())
        self._reading = asyncio.create_task(self._read())

    async def end(self, timeout_s: float = 60.0) -> int:
        """Let it see everything there is, and leave; its exit code."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"end\n")
        async with asyncio.timeout(timeout_s):
            return await self._process.wait()

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            await self._take(line)

    async def _take(self, line: bytes) -> None:
        word, _, number = line.decode().partition(" ")
        if word == "at":
            self.seen = int(number)
