"""Spring Cloud Consul over the Consul gateway, as the example sets it up: what it finds, and its calls."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from tests.judges import tools
from tests.judges.gateway_world import MANY, PAIR, follow, within, world
from tests.judges.haproxy import say_who
from tests.judges.processes import started
from tests.judges.verdict import Verdict
from tests.support.gateway_process import GatewayProcess, Registry, programs
from tests.support.reserved_port import quiet_port
from tests.support.tcp_balancer import tcp_balancer

_START_S: Final = 240.0  # Java compiles its program first, on a machine that does something else, too
_ROLL_OUTS: Final = 3
_DRAIN_S: Final = 10.0  # the example keeps a list for 5 s


async def spring(directory: Path) -> Verdict:
    """Its discovery client follows; its load balancer calls through two gateways, of which one is killed."""
    folder, version = await tools.spring()
    verdict = Verdict(version)
    order = ("java", "-cp", f"{folder}/*:{tools.SPRING}")
    for name in ("follow", "call"):
        (directory / name).mkdir()
    await _follows(verdict, directory / "follow", order)
    await verdict.case(
        f"1 to {MANY} to 1 and {_ROLL_OUTS} roll-outs under load", _roll_out(directory / "call", order), 3 * _START_S
    )
    return verdict


def _port(address: str) -> str:
    return f"--spring.cloud.consul.port={address.rpartition(':')[2]}"


async def _follows(verdict: Verdict, directory: Path, order: tuple[str | Path, ...]) -> None:
    log = directory / "found.log"
    async with world(directory, "consul") as at:
        places = {id_: f"127.0.0.{number}:{at.ports[id_]}" for number, id_ in enumerate(PAIR, 1)}

        def found() -> str:
            return next(reversed(_lines(log, "found")), "")

        async def shows(id_: str) -> None:
            await within(lambda: found() == f"found {places[id_]}")

        async def both() -> None:
            await within(lambda: found() == f"found {' '.join(places.values())}", _START_S)

        async with started((*order, tools.SPRING / "Follow.java", "web", _port(at.gateway.http)), log):
            await verdict.case("both instances are found", both(), _START_S)
            await follow(verdict, at, shows)


def _lines(log: Path, *words: str) -> list[str]:
    """Lines that begin with one of these words: not the client's own log."""
    return [line for line in log.read_text(errors="replace").splitlines() if line.split(" ", 1)[0] in words]


async def _roll_out(directory: Path, order: tuple[str | Path, ...]) -> None:
    """One instance after the other takes over, and each server ends once it is drained; no call fails."""
    log, port = directory / "calls.log", quiet_port()
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(programs(directory))
        hq = await running.registry()
        gateways = [await running.gateway("consul", hq, name=f"consul-{name}") for name in "ab"]
        front = await stack.enter_async_context(tcp_balancer([gateway.http for gateway in gateways]))
        server = await _take_over(hq, 0, port)
        await stack.enter_async_context(started((*order, tools.SPRING / "Call.java", "web", _port(front)), log))
        await within(lambda: len(_lines(log, "ok")) > 0, _START_S)
        many = await asyncio.start_server(say_who, "0.0.0.0", quiet_port())
        await _grow_and_shrink(hq, many.sockets[0].getsockname()[1], log)
        for number in range(1, _ROLL_OUTS + 1):
            following = await _take_over(hq, number, port)
            await _is_called(log, f"127.0.3.{number + 1}:{port}")
            await hq.report(f"web-{number - 1}", is_ready=False)
            await _kill_one_and_drain(gateways[number % 2], hq)
            server.close()
            await server.wait_closed()
            server = following
        said = _lines(log, "ok", "error")  # before the servers end: the client calls on
        server.close()
        many.close()
    failed = [line for line in said if line.startswith("error")]
    assert not failed, f"{len(failed)} of {len(said)} calls failed: {failed[:3]}"


async def _grow_and_shrink(hq: Registry, port: int, log: Path) -> None:
    hosts = [f"127.0.4.{number}" for number in range(1, MANY)]
    for host in hosts:
        await hq.put(f"web-{host}", host=host, port=port)
    await within(lambda: any("127.0.4." in line for line in _lines(log, "ok")[-20:]), _START_S)
    for host in hosts:
        await hq.delete(f"web-{host}")
    await within(lambda: not any("127.0.4." in line for line in _lines(log, "ok")[-20:]), _START_S)


async def _is_called(log: Path, place: str) -> None:
    await within(lambda: f"ok {place}" in _lines(log, "ok")[-20:], _START_S)


async def _take_over(hq: Registry, number: int, port: int) -> asyncio.Server:
    """A server of its own, and the ready instance that it is."""
    host = f"127.0.3.{number + 1}"
    server = await asyncio.start_server(say_who, host, port)
    await hq.put(f"web-{number}", host=host, port=port)
    return server


async def _kill_one_and_drain(gateway: GatewayProcess, hq: Registry) -> None:
    await gateway.has_saved_all_of(hq)
    await gateway.kill()
    await asyncio.sleep(_DRAIN_S)
    await gateway.again()
    async with asyncio.timeout(_START_S):
        while (await gateway.get("/readyz?fresh=10s"))[0] != 200:  # it starts with the list of its file
            await asyncio.sleep(0.05)
