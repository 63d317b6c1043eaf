"""An HQ, servers that say who they are, and a gateway: what the judges of gateways follow, and what happens to it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.judges.processes import started
from tests.judges.verdict import Verdict
from tests.support.gateway_process import GatewayProcess, Programs, Registry, programs

PAIR: Final = ("web-1", "web-2")
MANY: Final = 200
_LABELS: Final = {"app-protocol": "grpc"}
_CHANGES: Final = 200
_PATIENCE_S: Final = 30.0
_QUIET_S: Final = 3.0  # in which a client shows that it goes on undisturbed


@dataclass(slots=True)
class World:
    """Two instances of `web`, of which one is ready at a time after the first change.

    Attributes:
        ports: of the servers that the instances are, by id; `many`: one that answers at every address.
    """

    programs: Programs
    hq: Registry
    gateway: GatewayProcess
    ports: dict[str, int]
    ready: str = ""

    async def only(self, id_: str) -> None:
        """This one is ready from now on, and then the other one is not: as a roll-out does it."""
        other = next(one for one in PAIR if one != id_)
        await self.hq.report(id_, is_ready=True)
        await self.hq.report(other, is_ready=False)
        self.ready = id_

    async def swap(self) -> None:
        """Two changes: the other one is ready."""
        await self.only(PAIR[self.ready == PAIR[0]])

    async def grow(self) -> None:
        """198 more instances, which all say `many`."""
        for number in range(3, MANY + 1):
            host = f"127.0.1.{number}"
            await self.hq.put(f"web-{number}", host=host, port=self.ports["many"], labels=_LABELS)

    async def shrink(self) -> None:
        """The pair is left."""
        for number in range(3, MANY + 1):
            await self.hq.delete(f"web-{number}")

    async def weigh(self, **weights: int) -> None:
        """Give instances weights: `weigh(web_1=90)`."""
        for name, weight in weights.items():
            await self.hq.weigh(name.replace("_", "-"), weight)


@asynccontextmanager
async def world(directory: Path, kind: str, *flags: str) -> AsyncIterator[World]:
    """Both instances are ready."""
    log = directory / "who.log"
    async with (
        programs(directory) as running,
        started((sys.executable, "-m", "tests.judges.who_server", *PAIR, "many"), log),
    ):
        ports = await _ports(log)
        hq = await running.registry()
        for number, id_ in enumerate(PAIR, 1):
            await hq.put(id_, host=f"127.0.0.{number}", port=ports[id_], labels=_LABELS)
        yield World(running, hq, await running.gateway(kind, hq, *flags), ports)


async def _ports(log: Path) -> dict[str, int]:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            lines = [line.split() for line in log.read_text().splitlines() if line.startswith("listening ")]
            if len(lines) == len(PAIR) + 1:
                return {name: int(port) for _, name, port in lines}
            await asyncio.sleep(0.05)


Shows = Callable[[str], Awaitable[None]]
"""Returns when the judge uses or shows this instance, and no other. Raises TimeoutError."""


async def follow(verdict: Verdict, at: World, shows: Shows, changes: int = _CHANGES) -> None:
    """The cases of every judge that follows: changes, a killed gateway, an HQ that is away."""

    async def change() -> None:
        for _ in range(changes // 2):
            await at.swap()
            await shows(at.ready)

    async def killed() -> None:
        await at.gateway.kill()
        await asyncio.sleep(_QUIET_S)
        await at.gateway.again()
        await at.swap()
        await shows(at.ready)

    async def away() -> None:
        await at.gateway.has_saved_all_of(at.hq)
        at.hq.pause()
        try:
            await asyncio.sleep(_QUIET_S)
            await shows(at.ready)
            await at.gateway.kill()
            await at.gateway.again()
            await shows(at.ready)
        finally:
            at.hq.resume()
        await at.swap()
        await shows(at.ready)

    await verdict.case(f"{changes} changes", change(), 240.0)
    await verdict.case("a killed gateway", killed(), 90.0)
    await verdict.case("HQ away, and the gateway killed meanwhile", away(), 90.0)


async def within(what: Callable[[], bool], at_most_s: float = _PATIENCE_S) -> None:
    """Return when it holds. Raises TimeoutError."""
    async with asyncio.timeout(at_most_s):
        while not what():
            await asyncio.sleep(0.005)
