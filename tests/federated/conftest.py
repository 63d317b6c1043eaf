"""Locations in this process, and a gateway over them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from prometheus_client import CollectorRegistry

from federated.clock import FederatedSystemClock
from federated.gateway import FederatedGateway
from federated.locations.channel import Dialer
from federated.locations.config import ConfigFile
from federated.locations.locations import Locations
from federated.server import FederatedServer
from hqpb.v1 import service_stubs
from serving.calls.incoming import RequestIds
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from tests.federated.fake_location import FakeLocation
from tests.federated.federated_process import write_config


@dataclass
class RunningGateway:
    """A gateway in the test's own loop, and a client of it."""

    gateway: FederatedGateway
    stub: service_stubs.InstanceServiceStub
    addresses: Addresses
    config: Path
    metrics: CollectorRegistry


StartGateway = Callable[..., Awaitable[RunningGateway]]
StartLocations = Callable[..., Awaitable[list[FakeLocation]]]
StartPair = Callable[..., Awaitable[tuple[FakeLocation, FakeLocation, RunningGateway]]]


@asynccontextmanager
async def running_gateway(config: Path) -> AsyncIterator[RunningGateway]:
    """Serve until the block ends."""
    clock, rng = FederatedSystemClock(), random.Random(1)
    locations = Locations(ConfigFile(config), clock, rng, Dialer(), 1 << 20)
    shared = ServerContext(Limits(), clock, RequestIds("test"))
    gateway = FederatedGateway(locations, clock, rng, 3 << 20)
    server = FederatedServer(gateway, shared, Addresses("127.0.0.1:0", "127.0.0.1:0"), 0.2)
    serving = asyncio.create_task(server.serve())
    try:
        addresses = await server.listening
        await locations.started.wait()
        async with grpc.aio.insecure_channel(addresses.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            yield RunningGateway(gateway, service_stubs.InstanceServiceStub(channel), addresses, config, server.metrics)
            server.stop()  # before the channel closes: clients are to hear of it
            await asyncio.wait([serving], timeout=5)
    finally:
        server.stop()
        await serving


@pytest.fixture
async def start_locations() -> AsyncIterator[StartLocations]:
    """`await start_locations("east", "west", replicas=2)`."""
    started: list[FakeLocation] = []

    async def start(*names: str, replicas: int = 1) -> list[FakeLocation]:
        made = [FakeLocation(name, replicas) for name in names]
        for location in made:
            await location.start()
        started.extend(made)
        return made

    yield start
    for location in started:
        await location.stop()


@pytest.fixture
async def start_gateway(tmp_path: Path) -> AsyncIterator[StartGateway]:
    """`await start_gateway(locations, timeout="4s")`: a location that is only late is not taken for silent."""
    async with AsyncExitStack() as stack:

        async def start(locations: Sequence[FakeLocation], timeout: str = "4s") -> RunningGateway:
            config = tmp_path / "gateway.yaml"
            write_config(config, {one.name: one.addresses for one in locations}, timeout)
            return await stack.enter_async_context(running_gateway(config))

        yield start


@pytest.fixture
def start_pair(start_locations: StartLocations, start_gateway: StartGateway) -> StartPair:
    """`east, west, gateway = await start_pair(east="a b", west="c")`: two locations, a gateway over both."""

    async def start(
        east: str = "", west: str = "", *, replicas: int = 1, timeout: str = "4s"
    ) -> tuple[FakeLocation, FakeLocation, RunningGateway]:
        locations = await start_locations("east", "west", replicas=replicas)
        for location, ids in zip(locations, (east, west), strict=True):
            for id_ in ids.split():
                location.put(id_)
        return locations[0], locations[1], await start_gateway(locations, timeout)

    return start
