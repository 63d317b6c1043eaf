"""What a program pays for following services: by our clients, and by Consul's own for Go over `hq-gateway consul`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench import tools
from tests.bench.bench import Bench
from tests.bench.machine import ROOT
from tests.bench.reconnecting import ROOM
from tests.bench.stats import percentile
from tests.bench.usage import cpu_s, memory_bytes
from tests.judges.processes import environment
from tests.support.gateway_process import GatewayProcess, Registry, programs

GROUP: Final = "libraries"
_PATIENCE_S: Final = 300.0
_CHANGES: Final = 100
_PROBE: Final = "probe-1"
_SETTLE_S: Final = 2.0


class Population(NamedTuple):
    """How many services there are, and how many ready instances each has."""

    services: int
    each: int

    @property
    def name(self) -> str:
        services = "one service" if self.services == 1 else f"{self.services:,} services"
        return f"{services} of {self.each:,}"

    @property
    def names(self) -> list[str]:
        return [f"s-{number}" for number in range(self.services)]


async def run(bench: Bench) -> None:
    """The group `libraries`: 50,000 endpoints of one service, and 1,000 services of ten."""
    less = 50 if bench.quick else 1
    program = await tools.go_program("following", bench.directory / "following")
    if program is None:
        bench.say(f"{GROUP:10} {tools.NO_GO}: Python only")
    for population in (Population(1, 50_000 // less), Population(1_000 // less, 10)):
        directory = bench.directory / f"{GROUP}-{population.services}"
        directory.mkdir()
        async with programs(directory) as running:
            hq = await running.registry("hq", "default", *ROOM)
            await _fill(hq, population)
            gateway = await running.gateway("consul", hq, *ROOM)
            for name, words in _followers(program, hq, gateway).items():
                await _measure(bench, population, hq, name, words)


def _followers(program: Path | None, hq: Registry, gateway: GatewayProcess) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {"Python": (sys.executable, "-m", "tests.bench.following", hq.grpc)}
    if program is not None:
        found["Go"] = (str(program), "hq", hq.grpc)
        found["Consul's for Go"] = (str(program), "consul", gateway.http)
    return found


async def _fill(hq: Registry, population: Population) -> None:
    """The probe is one more instance of the first service."""
    for number, service in enumerate(population.names):
        hosts = {f"{service}-{n}": f"10.{number % 250}.{n // 250}.{n % 250}" for n in range(population.each)}
        await hq.put_many(hosts, service)
    await hq.put(_PROBE, population.names[0], host="10.251.0.1")


async def _measure(bench: Bench, population: Population, hq: Registry, name: str, words: Sequence[str]) -> None:
    """One library: its first list, and changes one by one."""
    size = population.services * population.each + 1
    async with AsyncExitStack() as stack:
        process = await asyncio.create_subprocess_exec(
            *words, *population.names, cwd=ROOT, env=environment(), stdout=asyncio.subprocess.PIPE
        )
        stack.callback(process.kill)
        began = time.monotonic()
        await _says(process, size)
        complete_s, first_s = time.monotonic() - began, cpu_s([process.pid])
        await asyncio.sleep(_SETTLE_S)
        before_s, times_ms = cpu_s([process.pid]), []
        for number in range(_CHANGES):
            is_ready = bool(number % 2)
            sent = time.monotonic()
            await hq.report(_PROBE, is_ready=is_ready)
            await _says(process, size - (not is_ready))
            times_ms.append((time.monotonic() - sent) * 1e3)
        spent_s = cpu_s([process.pid]) - before_s
        facts = {
            "memory": (memory_bytes(process.pid) / 1e6, "MB"),
            "processor until all are there": (first_s, "s"),
            "all are there after": (complete_s, "s"),
            "processor of a change": (spent_s / _CHANGES * 1e3, "ms"),
            "sent to seen, p50": (percentile(sorted(times_ms), 0.5), "ms"),
            "sent to seen, p99": (percentile(sorted(times_ms), 0.99), "ms"),
        }
        for what, (value, unit) in facts.items():
            bench.fact(GROUP, f"{population.name}, {name}: {what}", [value], unit, size=size)


async def _says(process: asyncio.subprocess.Process, total: int) -> None:
    """Return when it has so many endpoints."""
    assert process.stdout is not None
    async with asyncio.timeout(_PATIENCE_S):
        while line := await process.stdout.readline():
            if int(line) == total:
                return
    raise RuntimeError(f"it ended before it had {total:,} endpoints")
