"""Envoy that takes everything from two gateways: a listener, routes, clusters and endpoints, HTTP and gRPC servers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue

from tests.judges import tools
from tests.judges.envoy import QUIET_S, listens, uses
from tests.judges.gateway_world import within
from tests.judges.haproxy import Balancer, say_who
from tests.judges.processes import started
from tests.judges.verdict import Verdict
from tests.support.gateway_process import GatewayProcess, programs
from tests.support.reserved_port import quiet_port

_EXAMPLE: Final = Path(__file__).parents[2] / "examples/gateways/envoy-all.yaml"
_GATEWAY: Final = "              - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 7671}}}\n"
_HOSTS: Final = ("127.0.1.1", "127.0.1.2")
_CHANGES: Final = 200


@dataclass(slots=True)
class _Edge:
    """Envoy with a load on it, its gateways, and the ports of servers that speak HTTP and gRPC."""

    at: Balancer
    gateways: list[GatewayProcess]
    http: int
    grpc: int

    async def put(self, host: str, *, is_ready: bool = True) -> None:
        """An instance of `web` at one of the hosts."""
        await self.at.hq.put(f"web-{host[-1]}", host=host, port=self.http, is_ready=is_ready)

    async def only(self, host: str) -> None:
        """This one of the two is ready, and then the other one is not."""
        for one in (host, *({*_HOSTS} - {host})):
            await self.at.hq.report(f"web-{one[-1]}", is_ready=one == host)

    def call(self, service: str) -> str:
        """Who answers a gRPC call to a service."""
        options = [("grpc.default_authority", service), ("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(f"127.0.0.1:{self.at.port}", options) as channel:
            who = channel.unary_unary(
                "/judged.Who/Who",
                request_serializer=Empty.SerializeToString,
                response_deserializer=StringValue.FromString,
            )
            return str(who(Empty(), timeout=5).value)


@asynccontextmanager
async def _edge(directory: Path, path: Path) -> AsyncIterator[_Edge]:
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(programs(directory))
        hq, port, log = await running.registry(), quiet_port(), directory / "who.log"
        for host in _HOSTS:
            await stack.enter_async_context(await asyncio.start_server(say_who, host, port))
        await stack.enter_async_context(started((sys.executable, "-m", "tests.judges.who_server", "rpc-1"), log))
        await within(lambda: "listening" in log.read_text())
        gateways = [await running.gateway("xds", hq, name=f"xds-{name}") for name in "ab"]
        made = _Edge(Balancer(hq, quiet_port(), directory / "unused"), gateways, port, int(log.read_text().split()[-1]))
        for host in _HOSTS:
            await made.put(host)
        await hq.put("rpc-1", "rpc", port=made.grpc, labels={"app-protocol": "grpc"})
        config = _EXAMPLE.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{made.at.port}")
        each = [_GATEWAY.replace("7671", gateway.grpc.rpartition(":")[2]) for gateway in gateways]
        (directory / "envoy.yaml").write_text(config.replace(_GATEWAY, "".join(each)))
        order = (path, "-c", directory / "envoy.yaml", "--concurrency", "1", "--use-dynamic-base-id", "-l", "warn")
        await stack.enter_async_context(started(order, directory / "envoy.log"))
        await within(lambda: listens(made.at.port))
        yield made


async def envoy_all(directory: Path) -> Verdict:
    """Routes to every service, a roll-out, a gateway that is killed, and gateways that know nothing."""
    path, version = await tools.envoy()
    verdict = Verdict(version)
    async with _edge(directory, path) as edge:
        load = asyncio.create_task(edge.at.load())
        try:
            await within(lambda: edge.at.answered.total() >= 5)
            edge.at.failed.clear()  # before Envoy had its first endpoints
            await verdict.case("gRPC to a server that a label says speaks it", _grpc(edge, "rpc", "rpc-1"))
            await verdict.case("a route to a new service, and none when it is gone", _new_service(edge), 120.0)
            await verdict.case(f"{_CHANGES} changes", _changes(edge), 240.0)
            await verdict.case("each of two gateways killed", _kill_each(edge), 120.0)
            await verdict.case("HQ away, and both gateways start without a list", _know_nothing(edge), 120.0)
        finally:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)
        verdict.count("no request failed", f"{dict(edge.at.failed)}" if edge.at.failed else "")
        said = (directory / "envoy.log").read_text()
        verdict.count("nothing was refused", said[-500:] if "rejected" in said else "")
    return verdict


async def _grpc(edge: _Edge, service: str, expected: str) -> None:
    """Within some time: Envoy may not have its route yet."""
    async with asyncio.timeout(30):
        while True:
            try:
                said = await asyncio.to_thread(edge.call, service)
            except grpc.RpcError:
                await asyncio.sleep(0.05)
            else:
                assert said == expected, said
                return


async def _new_service(edge: _Edge) -> None:
    await edge.at.hq.put("new-1", "new", port=edge.grpc, labels={"app-protocol": "h2c"})
    await _grpc(edge, "new", "rpc-1")
    await edge.at.hq.delete("new-1")
    async with asyncio.timeout(30):
        while True:
            try:
                await asyncio.to_thread(edge.call, "new")
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:  # what Envoy says of a 404
                    return
            await asyncio.sleep(0.05)


async def _changes(edge: _Edge) -> None:
    for number in range(_CHANGES // 2):
        await edge.only(_HOSTS[number % 2])
    await uses(edge.at, {_HOSTS[1]})


async def _kill_each(edge: _Edge) -> None:
    for host, gateway in zip(_HOSTS, edge.gateways, strict=True):
        await gateway.kill()
        await edge.only(host)
        await uses(edge.at, {host})
        await gateway.again()


async def _know_nothing(edge: _Edge) -> None:
    for gateway in edge.gateways:
        await gateway.kill()
        gateway.forget()
    edge.at.hq.pause()
    try:
        for gateway in edge.gateways:
            await gateway.again(until_ready=False)
        await asyncio.sleep(QUIET_S)
        await uses(edge.at, {_HOSTS[1]})
        await _grpc(edge, "rpc", "rpc-1")
    finally:
        edge.at.hq.resume()
    await edge.only(_HOSTS[0])
    await uses(edge.at, {_HOSTS[0]})
