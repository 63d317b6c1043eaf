"""HAProxy over the DNS gateway: `server-template` with SRV, while a service grows, shrinks, and shares one host."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.judges import tools
from tests.judges.gateway_world import within
from tests.judges.processes import ROOT, run, started
from tests.judges.verdict import Verdict
from tests.support.gateway_process import GatewayProcess, Registry, programs
from tests.support.reserved_port import quiet_port

_MANY: Final = 200
_FITTING: Final = 55  # of them at least, in an answer of 4,096 bytes
_CASE_S: Final = 300.0  # with the start of HQ, of a gateway and of HAProxy, on a machine that does something else, too
_CHANGES: Final = 40
_EXAMPLE: Final = ROOT / "examples/gateways/haproxy.cfg"
_QUIET_S: Final = 3.0

HttpServer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Serves one connection."""


@dataclass(slots=True)
class Balancer:
    """HAProxy, and what a load of requests through it came to.

    Attributes:
        gateway: that it follows.
        answered: requests by the address that answered.
        failed: all others by what came instead.
    """

    hq: Registry
    port: int
    stats: Path
    gateway: GatewayProcess | None = None
    answered: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    async def is_up(self) -> bool:
        """It answers."""
        try:
            await self.servers()
        except (ConnectionRefusedError, ValueError):
            return False
        return True

    async def servers(self) -> int:
        """How many get requests."""
        reader, writer = await asyncio.open_unix_connection(str(self.stats))
        writer.write(b"show servers state web\n")
        # HAProxy once wrote bytes here that are not text: perhaps a name that it was just changing, behind the state.
        lines = [line.split() for line in (await reader.read()).decode(errors="replace").splitlines()]
        writer.close()
        [head] = [line[1:] for line in lines if line[:1] == ["#"]]
        at = head.index("srv_op_state")
        return sum(line[at] == "2" for line in lines if len(line) > at and line[0] != "#")

    async def has(self, least: int, most: int) -> None:
        """Return when it has so many servers."""
        async with asyncio.timeout(30):
            while not least <= await self.servers() <= most:
                await asyncio.sleep(0.05)

    async def load(self) -> None:
        """Ask again and again, each time over a connection of its own."""
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
                writer.close()
            except OSError as error:
                head, body = str(error).encode(), b""
            line = head.decode(errors="replace").partition("\r\n")[0]
            if line.startswith("HTTP/1.1 200"):
                self.answered[body.decode()] += 1
            else:
                self.failed[line] += 1
            await asyncio.sleep(0.005)


async def say_who(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that answers one request with its own address."""
    with suppress(OSError, asyncio.IncompleteReadError):
        await reader.readuntil(b"\r\n\r\n")
        host, port = writer.get_extra_info("sockname")
        body = f"{host}:{port}".encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
    writer.close()


@asynccontextmanager
async def balancer(
    directory: Path,
    path: Path,
    places: Iterable[tuple[str, int]],
    nameserver: str,
    payload: int,
    serve: HttpServer = say_who,
) -> AsyncIterator[Balancer]:
    """HAProxy over an HQ whose service has one instance, `web-0`, with servers at these hosts and ports."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(programs(directory))
        hq = await running.registry()
        for host, port in places:
            await stack.enter_async_context(await asyncio.start_server(serve, host, port))
        [(host, port), *_] = places
        await hq.put("web-0", host=host, port=port)
        gateway = await running.gateway("dns", hq)
        at = Balancer(hq, quiet_port(), directory / "stats")
        where = nameserver.format(gateway.dns_address)
        config = _EXAMPLE.read_text().replace("/tmp/haproxy.sock", str(at.stats)).replace(":8080", f":{at.port}")
        config = config.replace("nameserver dns 127.0.0.1:7653", f"nameserver dns {where}")
        (directory / "haproxy.cfg").write_text(config.replace("size 8192", f"size {payload}"))
        order = (path, "-db", "-f", directory / "haproxy.cfg")
        await stack.enter_async_context(started(order, directory / "haproxy.log"))
        await within(at.stats.exists)
        async with asyncio.timeout(30):
            while not await at.is_up():  # the socket is there before HAProxy listens
                await asyncio.sleep(0.05)
        at.gateway = gateway
        yield at


async def haproxy(directory: Path) -> Verdict:
    """Growth over UDP, as much as fits; over TCP, all of it; ten instances on one host."""
    path, _ = await tools.on_path("haproxy", "haproxy")
    verdict = Verdict((await run((path, "-v"), 10.0)).text.splitlines()[0][:40])
    for name, nameserver, payload, least in (("UDP", "{}", 8192, _FITTING), ("TCP", "tcp@{}", 65_535, _MANY)):
        folder = directory / name
        folder.mkdir()
        await verdict.case(f"1 to {_MANY} to 1 over {name}", _growth(folder, path, nameserver, payload, least), _CASE_S)
    await verdict.case("ten instances on one host are all used", _one_host(directory, path), _CASE_S)
    for name, nameserver, payload in (("UDP", "{}", 8192), ("TCP", "tcp@{}", 65_535)):
        folder = directory / f"changes-{name}"
        folder.mkdir()
        await verdict.case(
            f"{_CHANGES} changes, a killed gateway, HQ away, over {name}",
            _roll_out(folder, path, nameserver, payload),
            _CASE_S,
        )
    return verdict


async def _growth(directory: Path, path: Path, nameserver: str, payload: int, least: int) -> None:
    port = quiet_port()
    places = [(f"127.0.1.{number + 1}", port) for number in range(_MANY)]
    async with balancer(directory, path, places, nameserver, payload) as at:
        await at.has(1, 1)
        load = asyncio.create_task(at.load())
        for number, (host, _) in enumerate(places[1:], 1):
            await at.hq.put(f"web-{number}", host=host, port=port)
            assert await at.servers() >= 1, f"all servers were lost when there were {number + 1} instances"
            if not number % 20:
                await at.has(min(number, least), _MANY)
        await at.has(least, _MANY)
        for number in range(1, _MANY):
            await at.hq.delete(f"web-{number}")
            assert await at.servers() >= 1, f"all servers were lost when there were {_MANY - number} instances"
            if not number % 20:  # otherwise an answer may share no server with the one before
                await at.has(1, _MANY - number)
        await at.has(1, 1)
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        assert not at.failed, f"of {at.answered.total()} requests failed: {dict(at.failed)}"
        assert at.answered


async def _roll_out(directory: Path, path: Path, nameserver: str, payload: int) -> None:
    """Under load, instances become ready and leave in turn, as a roll-out does it; then whoever can goes away."""
    places = [(f"127.0.1.{number + 1}", port) for port in [quiet_port()] for number in range(2)]
    async with balancer(directory, path, places, nameserver, payload) as at:
        await at.hq.put("web-1", host=places[1][0], port=places[1][1])
        await at.has(2, 2)
        load = asyncio.create_task(at.load())
        gateway = at.gateway
        assert gateway is not None
        for number in range(_CHANGES // 2):
            await _only(at, number % 2)
        await gateway.has_saved_all_of(at.hq)  # an older list would move HAProxy from one server to the other at once
        await gateway.kill()
        await asyncio.sleep(_QUIET_S)
        assert await at.servers() == 1, "while the gateway was away"
        await gateway.again()
        await _only(at, 0)
        await gateway.has_saved_all_of(at.hq)
        at.hq.pause()
        try:
            await gateway.kill()
            await gateway.again(until_ready=False)
            await asyncio.sleep(_QUIET_S)
            assert await at.servers() == 1, "while HQ was away"
        finally:
            at.hq.resume()
        await _only(at, 1)
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        assert not at.failed, f"{at.failed.total()} of {at.answered.total()} requests failed: {dict(at.failed)}"
        assert at.answered


async def _only(at: Balancer, number: int) -> None:
    """Switch one of the two servers off once HAProxy has seen both; the other one is used alone."""
    await at.hq.report(f"web-{number}", is_ready=True)
    await at.has(2, 2)
    await at.hq.report(f"web-{1 - number}", is_ready=False)
    await at.has(1, 1)


async def _one_host(directory: Path, path: Path) -> None:
    places = [("127.0.0.1", quiet_port()) for _ in range(10)]
    async with balancer(directory, path, places, "{}", 8192) as at:
        for number, (host, port) in enumerate(places[1:], 1):
            await at.hq.put(f"web-{number}", host=host, port=port)
        await at.has(10, 10)
        load = asyncio.create_task(at.load())
        try:
            await within(lambda: len(at.answered) == 10)
        finally:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)
