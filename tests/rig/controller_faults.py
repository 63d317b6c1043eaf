"""A program of ours as a process of its own, and what befalls it and its networks in a run under faults."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.judges.processes import ROOT, environment
from tests.support.faulty_proxy import Proxy

Faults = Mapping[str, Callable[[], AbstractAsyncContextManager[None]]]

_LISTENING: Final = re.compile(r"listening: gRPC (\S+), HTTP ([^\s,]+)")
_START_S: Final = 60.0


@dataclass
class Process:
    """A program of ours that may be killed and started again. `log` grows over all its starts."""

    words: tuple[str, ...]
    log: Path
    running: asyncio.subprocess.Process | None = None
    http: str = ""
    grpc: str = ""

    async def start(self) -> None:
        began = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as out:
            self.running = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", *self.words), stdout=out, stderr=out, env=environment(), cwd=ROOT
            )
        async with asyncio.timeout(_START_S):
            while (found := _LISTENING.search(self.log.read_text()[began:])) is None:
                assert self.running.returncode is None, self.log.read_text()[-2_000:]
                await asyncio.sleep(0.05)
        self.grpc, self.http = found[1], found[2]

    def send(self, number: int) -> None:
        assert self.running is not None
        with suppress(ProcessLookupError):
            self.running.send_signal(number)

    async def kill(self) -> None:
        if self.running is not None and self.running.returncode is None:
            self.send(signal.SIGKILL)
            await self.running.wait()


async def strike(
    rng: random.Random,
    goes_on: Callable[[], bool],
    lasts_s: float,
    say: Callable[[str], None],
    faults: Callable[[], tuple[str, Faults]],
) -> Counter[str]:
    """One fault after the other, each at most so long, while it `goes_on`; how often each came.

    `faults` chooses whom the next one befalls: its name, and the faults there are.
    """
    struck: Counter[str] = Counter()
    while goes_on():
        await asyncio.sleep(rng.uniform(0.5, 3.0))
        whom, there_are = faults()
        name = rng.choice(list(there_are))
        struck[name] += 1
        say(f"{name} {whom}")
        async with there_are[name]():
            await asyncio.sleep(rng.uniform(0.5, lasts_s))
    return struck


@asynccontextmanager
async def killed(process: Process) -> AsyncIterator[None]:
    """And started again."""
    await process.kill()
    try:
        yield
    finally:
        await process.start()


@asynccontextmanager
async def paused(process: Process) -> AsyncIterator[None]:
    process.send(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send(signal.SIGCONT)


@asynccontextmanager
async def cut(*ways: Proxy) -> AsyncIterator[None]:
    """Connections are reset."""
    for way in ways:
        way.cut()
    try:
        yield
    finally:
        for way in ways:
            way.heal()


@asynccontextmanager
async def stalled(way: Proxy) -> AsyncIterator[None]:
    """Nothing passes, and nobody is told."""
    way.stall()
    try:
        yield
    finally:
        way.heal()
