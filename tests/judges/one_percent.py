"""A canary of one per cent by weight gets one per cent of the requests: counted at the servers, whoever balances."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue

from tests.judges import tools
from tests.judges.envoy import proxy, uses
from tests.judges.gateway_judges import XDS_TARGET, bootstrap
from tests.judges.gateway_world import PAIR, within, world
from tests.judges.haproxy import Balancer, balancer
from tests.judges.processes import run, started
from tests.judges.verdict import Verdict
from tests.support.reserved_port import quiet_port

_REQUESTS: Final = 100_000
_USUAL, _CANARY = 99, 1
_WIDTH: Final = 0.003  # of the share, to each side
_HAPROXY_STEP: Final = 1 / 256
_CALLERS: Final = 16
_SETTLED: Final = 3_000  # requests by which a balancer that still has equal weights is known
_START_S: Final = 60.0
_RUN_S: Final = 600.0
_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: web\r\n\r\n"


class CountedServers:
    """An HTTP server that keeps connections open. `served`: requests by the host at which they came."""

    def __init__(self) -> None:
        self.served: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        host = writer.get_extra_info("sockname")[0]
        body = f"{host}:{writer.get_extra_info('sockname')[1]}".encode()
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.served[host] += 1
                writer.write(answer)
        writer.close()


async def _ask(port: int) -> None:
    """Send requests over one connection, one after the other, until cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            writer.write(_REQUEST)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
    finally:
        writer.close()


@asynccontextmanager
async def _load(port: int) -> AsyncIterator[Callable[[], None]]:
    """Callers until the end of the block; what is yielded raises what ended one of them."""
    callers = [asyncio.create_task(_ask(port)) for _ in range(_CALLERS)]

    def look() -> None:
        for ended in [one for one in callers if one.done()]:
            ended.result()

    try:
        yield look
    finally:
        for one in callers:
            one.cancel()
        await asyncio.gather(*callers, return_exceptions=True)


Served = Callable[[], Awaitable[Counter[str]]]


async def _measure(served: Served, canary: str, width: float, look: Callable[[], None] = lambda: None) -> None:
    """Send so many requests; return the canary's share of them."""
    begin = await served()
    while (more := await served() - begin).total() < _REQUESTS:
        look()
        await asyncio.sleep(0.1)
    share = more[canary] / more.total()
    print(f"{more[canary]} of {more.total()} requests: {share:.3%}", flush=True)
    wanted = _CANARY / (_USUAL + _CANARY)
    assert wanted - width <= share <= wanted + width, f"{more[canary]} of {more.total()} requests: {share:.3%}"


async def _settle(served: Served, canary: str) -> None:
    """Return once the balancer has the weights: with equal ones, half of the requests are the canary's."""
    async with asyncio.timeout(_START_S):
        while True:
            begin = await served()
            while (more := await served() - begin).total() < _SETTLED:
                await asyncio.sleep(0.05)
            if more[canary] / more.total() < 0.05:
                return


# --- HTTP ---------------------------------------------------------------------------------------------------------


async def envoy(directory: Path) -> Verdict:
    """Envoy, whose clusters take their endpoints from the xDS gateway."""
    path, version = await tools.envoy()
    verdict, servers = Verdict(version), CountedServers()
    async with proxy(directory, path, "DELTA_GRPC", servers.serve) as (at, _, port):
        await _measure_http(verdict, at, servers, port, _WIDTH)
    return verdict


async def haproxy(directory: Path) -> Verdict:
    """HAProxy over the DNS gateway: its weights are steps of 1/256."""
    path, _ = await tools.on_path("haproxy", "haproxy")
    verdict, servers = Verdict((await run((path, "-v"), 10.0)).text.splitlines()[0][:40]), CountedServers()
    port = quiet_port()
    places = [(f"127.0.1.{number}", port) for number in (1, 2)]
    async with balancer(directory, path, places, "{}", 8192, servers.serve) as at:
        await _measure_http(verdict, at, servers, port, _HAPROXY_STEP)
    return verdict


async def _measure_http(verdict: Verdict, at: Balancer, servers: CountedServers, port: int, width: float) -> None:
    async def served() -> Counter[str]:
        return Counter(servers.served)

    async def measured() -> None:
        one_by_one = asyncio.create_task(at.load())
        await at.hq.put("web-1", host="127.0.1.2", port=port)
        await uses(at, {"127.0.1.1", "127.0.1.2"})
        one_by_one.cancel()
        await at.hq.weigh("web-0", _USUAL)
        await at.hq.weigh("web-1", _CANARY)
        async with _load(at.port) as look:
            await _settle(served, "127.0.1.2")
            await _measure(served, "127.0.1.2", width, look)

    await verdict.case(f"1 % by weight is 1 % of {_REQUESTS} requests", measured(), _RUN_S)


# --- gRPC ---------------------------------------------------------------------------------------------------------


async def xds_python(directory: Path) -> Verdict:
    """grpcio."""
    return await _measure_calls(
        directory, f"grpcio {grpc.__version__}", (sys.executable, "-m", "tests.judges.xds_caller")
    )


async def xds_go(directory: Path) -> Verdict:
    """google.golang.org/grpc/xds."""
    path, version = await tools.go_program("xdsfollow", "google.golang.org/grpc")
    return await _measure_calls(directory, version, (path,))


async def _measure_calls(directory: Path, version: str, order: Sequence[str | Path]) -> Verdict:
    verdict, log = Verdict(version), directory / "calls.log"
    canary = PAIR[1]
    async with world(directory, "xds") as at:
        (directory / "bootstrap.json").write_text(json.dumps(bootstrap(at)))
        env = {"GRPC_XDS_BOOTSTRAP": str(directory / "bootstrap.json")}
        channels = {
            name: grpc.aio.insecure_channel(f"127.0.0.{number}:{at.ports[name]}") for number, name in enumerate(PAIR, 1)
        }

        async def served() -> Counter[str]:
            return Counter({name: await _served_at(channel) for name, channel in channels.items()})

        async def measured() -> None:
            await at.weigh(web_1=_USUAL, web_2=_CANARY)
            async with started((*order, XDS_TARGET, "0"), log, env):
                await within(lambda: "ok " in log.read_text(errors="replace"), _START_S)
                await _settle(served, canary)
                await _measure(served, canary, _WIDTH)
            failed = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("error ")]
            assert not failed, f"{len(failed)} calls failed: {failed[:3]}"

        try:
            await verdict.case(f"1 % by weight is 1 % of {_REQUESTS} calls", measured(), _RUN_S)
        finally:
            for channel in channels.values():
                await channel.close()
    return verdict


async def _served_at(channel: grpc.aio.Channel) -> int:
    count = channel.unary_unary(
        "/judged.Who/Served", request_serializer=Empty.SerializeToString, response_deserializer=StringValue.FromString
    )
    return int((await count(Empty())).value)
