"""Envoy with a configuration of its own, whose clusters take their endpoints from the gateway."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.judges import tools
from tests.judges.gateway_world import within
from tests.judges.haproxy import Balancer, HttpServer, say_who
from tests.judges.processes import started
from tests.judges.verdict import Verdict
from tests.support.gateway_process import GatewayProcess, programs
from tests.support.reserved_port import quiet_port

_EXAMPLE: Final = Path(__file__).parents[2] / "examples/gateways/envoy.yaml"
_COUNT: Final = 200
QUIET_S: Final = 3.0
_TURN_S: Final = 120.0  # in which each of two hundred is asked twice, on a machine that does something else, too


@asynccontextmanager
async def proxy(
    directory: Path, path: Path, form: str, serve: HttpServer = say_who
) -> AsyncIterator[tuple[Balancer, GatewayProcess, int]]:
    """Envoy over an HQ whose service has one instance, `web-0`; and the port of all servers, 127.0.1.1 and so on."""
    async with programs(directory) as running:
        hq, port = await running.registry(), quiet_port()
        servers = [await asyncio.start_server(serve, f"127.0.1.{n + 1}", port) for n in range(_COUNT)]
        try:
            await hq.put("web-0", host="127.0.1.1", port=port)
            gateway = await running.gateway("xds", hq)
            at = Balancer(hq, quiet_port(), directory / "unused")
            config = _EXAMPLE.read_text().replace("port_value: 7671", f"port_value: {gateway.grpc.rpartition(':')[2]}")
            config = config.replace("port_value: 8080", f"port_value: {at.port}").replace(": DELTA_GRPC", f": {form}")
            (directory / "envoy.yaml").write_text(config)
            order = (path, "-c", directory / "envoy.yaml", "--concurrency", "1", "--use-dynamic-base-id", "-l", "warn")
            async with started(order, directory / "envoy.log"):
                await within(lambda: listens(at.port))
                yield at, gateway, port
        finally:
            for server in servers:
                server.close()


def listens(port: int) -> bool:
    """Whether something listens at a port of 127.0.0.1."""
    return f":{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()


async def envoy(directory: Path) -> Verdict:
    """Envoy's configuration as in the example: incremental."""
    return await _follows(directory, "DELTA_GRPC")


async def envoy_whole(directory: Path) -> Verdict:
    """State of the world."""
    return await _follows(directory, "GRPC")


async def _follows(directory: Path, form: str) -> Verdict:
    """Growth under load, weights, and a gateway that is killed."""
    path, version = await tools.envoy()
    verdict = Verdict(version)
    async with proxy(directory, path, form) as (at, gateway, port):
        load = asyncio.create_task(at.load())
        try:
            await within(lambda: bool(at.answered))
            at.failed.clear()  # before Envoy had its first endpoints
            await verdict.case(f"1 to {_COUNT} to 1", _growth(at, port), 480.0)
            await verdict.case("weights of 90 and 10 are the shares of requests", _weights(at, port), 480.0)
            await verdict.case("a killed gateway", _kill_gateway(at, gateway), 90.0)
            await verdict.case("HQ away, and the gateway killed meanwhile", without_hq(at, gateway, QUIET_S), 90.0)
        finally:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)
        verdict.count("no request failed", f"{dict(at.failed)}" if at.failed else "")
    return verdict


async def uses(at: Balancer, hosts: set[str]) -> None:
    """Return when the last requests went to all of these and to no others."""
    while True:
        at.answered.clear()
        await within(lambda: at.answered.total() >= max(10, 2 * len(hosts)), _TURN_S)
        if {place.partition(":")[0] for place in at.answered} == hosts:
            return


async def _growth(at: Balancer, port: int) -> None:
    hosts = [f"127.0.1.{number + 1}" for number in range(_COUNT)]
    for number, host in enumerate(hosts[1:], 1):
        await at.hq.put(f"web-{number}", host=host, port=port)
    await uses(at, {*hosts})
    for number in range(1, _COUNT):
        await at.hq.delete(f"web-{number}")
    await uses(at, {hosts[0]})


async def _weights(at: Balancer, port: int) -> None:
    await at.hq.put("web-1", host="127.0.1.2", port=port)
    await at.hq.weigh("web-0", 90)
    await at.hq.weigh("web-1", 10)
    await uses(at, {"127.0.1.1", "127.0.1.2"})
    while True:  # until Envoy has the weights: with equal ones, half of the requests are the light one's
        at.answered.clear()
        await within(lambda: at.answered.total() >= 100, _TURN_S)
        if at.answered[f"127.0.1.2:{port}"] < 30:
            break
    at.answered = Counter()
    await within(lambda: at.answered.total() >= 1_000, _TURN_S)
    share = at.answered[f"127.0.1.2:{port}"] / at.answered.total()
    assert 0.06 < share < 0.14, f"{share:.1%} of the requests"
    await at.hq.weigh("web-0", 0)
    await uses(at, {"127.0.1.2"})


async def _kill_gateway(at: Balancer, gateway: GatewayProcess) -> None:
    await gateway.kill()
    await asyncio.sleep(QUIET_S)
    await uses(at, {"127.0.1.2"})
    await gateway.again()
    await at.hq.weigh("web-0", 100)
    await at.hq.weigh("web-1", 0)
    await uses(at, {"127.0.1.1"})


async def without_hq(at: Balancer, gateway: GatewayProcess, away_s: float) -> None:
    """HQ is silent for so long, and its gateway is killed halfway; then changes come again."""
    await gateway.has_saved_all_of(at.hq)
    at.hq.pause()
    try:
        await asyncio.sleep(away_s / 2)
        await gateway.kill()
        await gateway.again()
        await asyncio.sleep(away_s / 2)
        await uses(at, {"127.0.1.1"})
    finally:
        at.hq.resume()
    await at.hq.weigh("web-1", 100)
    await at.hq.weigh("web-0", 0)
    await uses(at, {"127.0.1.2"})
