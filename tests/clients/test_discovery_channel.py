"""Calls over a service's endpoints: a gRPC channel and an httpx transport, with real servers behind them."""

from __future__ import annotations

import asyncio
import importlib.util
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc  # type: ignore[import-untyped,unused-ignore]

from hqclient.discovery import Discovery, DiscoverySettings, LeastUsed, Service
from hqclient.discovery.balanced import BalancedChannel
from tests.clients.conftest import SETTINGS
from tests.clients.telling import History, serving, telling_replica
from tests.support.reserved_port import kept_ports

Code = grpc.StatusCode


class Greeter(health.aio.HealthServicer):  # type: ignore[misc,unused-ignore]
    """A server of health.v1: one call with one answer, one with a stream; counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.port = 0
        self._server: grpc.aio.Server | None = None

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.asked += 1
        return await super().Check(request, context)

    async def start(self) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        health_pb2_grpc.add_HealthServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)


@asynccontextmanager
async def following(*ports: int) -> AsyncIterator[tuple[Service, History]]:
    """An entered service whose instances have these ports."""
    history = History(random.Random(1))
    for port in ports:
        history.write_serving(serving(f"web-{port}", port=port))
    replica = telling_replica(history)
    await replica.start()
    try:
        found = Discovery([replica.address], settings=DiscoverySettings(client=SETTINGS))
        async with found.service("web", port="http", pick=LeastUsed(random.Random(1))) as web:
            await web.ready(at_least=len(ports))
            yield web, history
    finally:
        await replica.stop()


@pytest.fixture
async def greeters() -> AsyncIterator[list[Greeter]]:
    made = [Greeter() for _ in range(3)]
    for greeter in made:
        await greeter.start()
    yield made
    for greeter in made:
        await greeter.stop()


async def check(channel: grpc.aio.Channel) -> Any:
    return await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=30)


async def test_calls_are_spread_over_the_endpoints(greeters: list[Greeter]) -> None:
    async with following(*(g.port for g in greeters)) as (web, _), BalancedChannel(web) as channel:
        answers = await asyncio.gather(*(check(channel) for _ in range(30)))
        assert all(answer.status == health_pb2.HealthCheckResponse.SERVING for answer in answers)
        assert channel.get_state() is grpc.ChannelConnectivity.READY
        assert sum(web.uses(endpoint) for endpoint in web.endpoints) == 0
    assert [greeter.asked for greeter in greeters] == [10, 10, 10]


async def test_an_endpoint_that_is_gone_costs_one_call_at_most(greeters: list[Greeter]) -> None:
    async with following(*(g.port for g in greeters)) as (web, _), BalancedChannel(web) as channel:
        await greeters[0].stop()
        ended: list[object] = []
        for _ in range(20):
            ended += await asyncio.gather(check(channel), return_exceptions=True)
            await asyncio.sleep(0)
    failed = [answer.code() for answer in ended if isinstance(answer, grpc.aio.AioRpcError)]
    assert failed == [Code.UNAVAILABLE]


async def test_streams_stay_where_they_are_and_count_as_uses(greeters: list[Greeter]) -> None:
    async with following(*(g.port for g in greeters)) as (web, _), BalancedChannel(web) as channel:
        streams = [
            health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=60) for _ in range(3)
        ]
        for stream in streams:
            await stream.read()
        assert [web.uses(endpoint) for endpoint in web.endpoints] == [1, 1, 1]
        for stream in streams:
            stream.cancel()
        async with asyncio.timeout(30):
            while any(web.uses(endpoint) for endpoint in web.endpoints):
                await asyncio.sleep(0.005)


async def test_a_new_endpoint_is_called_and_streams_of_the_others_go_on(greeters: list[Greeter]) -> None:
    first, second, _ = greeters
    async with following(first.port) as (web, history), BalancedChannel(web) as channel:
        stream = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=60)
        await stream.read()
        history.write_serving(serving(f"web-{second.port}", port=second.port))
        await web.ready(at_least=2)
        await check(channel)
        assert (first.asked, second.asked) == (0, 1)
        history.write(f"web-{second.port}", gone=True)
        await web.ready(at_least=1)
        async with asyncio.timeout(30):
            while len(web.endpoints) > 1:
                await asyncio.sleep(0.005)
        await check(channel)
        assert (first.asked, second.asked) == (1, 1)
        assert not stream.done()
        stream.cancel()


async def test_without_endpoints_a_call_is_unavailable() -> None:
    async with following() as (web, _), BalancedChannel(web) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await check(channel)
        assert caught.value.code() is Code.UNAVAILABLE
        assert "0 ready endpoints" in (caught.value.details() or "")


async def test_a_channel_is_ready_when_an_endpoint_is_connected(greeters: list[Greeter]) -> None:
    async with following() as (web, history), BalancedChannel(web) as channel:
        waiting = asyncio.create_task(channel.channel_ready())
        await asyncio.sleep(0)
        history.write_serving(serving("web-1", port=greeters[0].port))
        await asyncio.wait_for(waiting, 30)
        assert channel.get_state() is grpc.ChannelConnectivity.READY


# --- httpx --------------------------------------------------------------------------------------------------------


def transport_of_the_example() -> Any:
    path = Path(__file__).resolve().parents[2] / "examples" / "discovery" / "httpx_transport.py"
    spec = importlib.util.spec_from_file_location("httpx_transport", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DiscoveryTransport


@asynccontextmanager
async def http_server(name: str, hosts: list[str]) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        hosts.append(next(line.split(": ")[1] for line in head.splitlines() if line.lower().startswith("host:")))
        body = f"{name} {head.split()[1]}".encode()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_httpx_finds_a_service_by_its_name_and_passes_over_what_is_gone() -> None:
    hosts: list[str] = []
    async with AsyncExitStack() as stack:
        ports = [await stack.enter_async_context(http_server(name, hosts)) for name in ("one", "two")]
        web, _ = await stack.enter_async_context(following(*ports, kept_ports()[0]))
        transport = transport_of_the_example()({"web": web})
        client = await stack.enter_async_context(httpx.AsyncClient(transport=transport))
        answers = [(await client.get("http://web/hello?x=1")).text for _ in range(12)]
        with pytest.raises(httpx.ConnectError, match="no service of this name"):
            await client.get("http://other/")
        assert sum(web.uses(endpoint) for endpoint in web.endpoints) == 0
    assert set(answers) == {"one /hello?x=1", "two /hello?x=1"}
    assert set(hosts) == {"web"}
