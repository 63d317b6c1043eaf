"""Both transports over a fake table, on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop
from grpc import aio
from prometheus_client import CollectorRegistry, Counter

from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.admission import Admission
from serving.limiting.limits import Limits
from serving.standard.pages import HttpPage, PageAnswer, PageRequest
from serving.telemetry import traffic
from serving.telemetry.metrics import Table
from serving.transport.server import Server
from tests.support.rights_requests import create
from tests.support.secured import Caller, Secured, Served, secure_channel, served
from tests.wire.fake_table import FakeHealth, FakeRegistry
from tests.wire.grpc_client import Client as GrpcClient
from tests.wire.raw_http import RawHttp


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loop that HQ runs on."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def limits() -> Limits:
    """Overridden where a test is about a limit."""
    return Limits()


@pytest.fixture
async def registry() -> FakeRegistry:
    return FakeRegistry()


@pytest.fixture
def health() -> FakeHealth:
    return FakeHealth()


@pytest.fixture
def shared(limits: Limits) -> ServerContext:
    return ServerContext(limits, SystemClock(), RequestIds("test"))


@pytest.fixture
def admission(shared: ServerContext) -> Admission:
    return shared.admission


@pytest.fixture
async def grpc_port(registry: FakeRegistry, health: FakeHealth, shared: ServerContext) -> AsyncIterator[int]:
    server = Server(registry.methods(), health, shared, CollectorRegistry(), {})
    yield await server.listen("127.0.0.1:0")
    await server.stop(0.0)


@pytest.fixture
async def grpc_client(grpc_port: int) -> AsyncIterator[GrpcClient]:
    async with aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        yield GrpcClient(channel)


@pytest.fixture
async def http_server(registry: FakeRegistry, health: FakeHealth, shared: ServerContext) -> AsyncIterator[Server]:
    metrics = CollectorRegistry()
    Counter("hq_things", "Things.", registry=metrics).inc()
    metrics.register(Table(traffic.METRICS, shared.traffic))
    server = Server(registry.methods(), health, shared, metrics, {"/extra": HttpPage(extra_page)})
    yield server
    await server.stop(0.0)


@pytest.fixture
async def http_port(http_server: Server) -> int:
    return await http_server.listen("127.0.0.1:0")


@pytest.fixture
def http(http_port: int) -> RawHttp:
    return RawHttp(http_port)


async def extra_page(request: PageRequest) -> PageAnswer:
    names = ",".join(sorted(request.query()))
    return PageAnswer(200, "application/json", f'["{names}"]'.encode())


# --- a secured replica ----------------------------------------------------------------------------------------------

As = Callable[[str], Caller]


@pytest.fixture
def files(tmp_path: Path) -> Secured:
    return Secured(tmp_path)


@pytest.fixture
async def replica(files: Secured) -> AsyncIterator[Served]:
    """With web-1 on n1, web-2 on n2 and mail-1 on n1."""
    async with served(files.security()) as one:
        async with secure_channel(one.addresses.grpc, files.authority) as channel:
            admin = Caller(channel, files.issuer.token("admin"))
            for name, service, node in (("web-1", "web", "n1"), ("web-2", "web", "n2"), ("mail-1", "mail", "n1")):
                await admin.call("CreateInstance", create(name, service, node))
        yield one


@pytest.fixture
async def as_(replica: Served, files: Secured) -> AsyncIterator[As]:
    """A caller with a token of this subject; "": without."""
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        yield lambda subject: Caller(channel, files.issuer.token(subject) if subject else "")
