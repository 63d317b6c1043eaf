"""Beside the calls: health, reflection, start and stop."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (  # type: ignore[import-untyped]
    ProtoReflectionDescriptorDatabase,
)
from prometheus_client import CollectorRegistry

from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.transport.server import Server
from tests.wire.fake_table import SERVICE, FakeHealth, FakeRegistry
from tests.wire.grpc_client import Client


async def test_health_follows_readiness_for_the_server_and_each_service(
    grpc_client: Client, health: FakeHealth
) -> None:
    stub = health_pb2_grpc.HealthStub(grpc_client.channel)
    for ready, status in ((True, "SERVING"), (False, "NOT_SERVING"), (True, "SERVING")):
        health.is_loaded = ready
        for service in ("", SERVICE):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
            assert health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status) == status


async def test_health_of_an_unknown_service_is_not_found(grpc_client: Client) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await health_pb2_grpc.HealthStub(grpc_client.channel).Check(health_pb2.HealthCheckRequest(service="x"))
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_health_watch_is_told_of_changes(grpc_client: Client, health: FakeHealth) -> None:
    watching = health_pb2_grpc.HealthStub(grpc_client.channel).Watch(health_pb2.HealthCheckRequest())
    assert (await watching.read()).status == health_pb2.HealthCheckResponse.SERVING
    health.is_loaded = False
    answer = await asyncio.wait_for(watching.read(), 30)
    assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
    watching.cancel()


async def test_reflection_describes_the_services(grpc_port: int) -> None:
    def ask() -> tuple[set[str], list[str]]:
        with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            services = set(database.get_services())
            file = database.FindFileContainingSymbol(SERVICE)
            return services, [m.name for m in file.service[0].method]

    services, methods = await asyncio.to_thread(ask)
    assert {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= services
    assert "FindInstances" in methods


def _server(registry: FakeRegistry) -> Server:
    shared = ServerContext(Limits(), SystemClock(), RequestIds("test"))
    return Server(registry.methods(), FakeHealth(), shared, CollectorRegistry(), {})


async def test_a_taken_port_is_an_error(registry: FakeRegistry, grpc_port: int) -> None:
    second = _server(registry)
    with pytest.raises(OSError, match=f"127.0.0.1:{grpc_port}"):
        await second.listen(f"127.0.0.1:{grpc_port}")
    await second.stop(0)


async def test_stopping_lets_calls_finish_within_the_grace(registry: FakeRegistry) -> None:
    server = _server(registry)
    port = await server.listen("127.0.0.1:0")
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = asyncio.create_task(Client(channel).get("wait"))
        await registry.started.wait()
        stopping = asyncio.create_task(server.stop(10))
        await asyncio.sleep(0.05)
        registry.release.set()
        assert (await call).instance.meta.id == "wait"
        await asyncio.wait_for(stopping, 30)


async def test_stopping_breaks_off_what_outlives_the_grace(registry: FakeRegistry) -> None:
    server = _server(registry)
    port = await server.listen("127.0.0.1:0")
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = asyncio.create_task(Client(channel).get("wait"))
        await registry.started.wait()
        await asyncio.wait_for(server.stop(0.1), 30)
        with pytest.raises(aio.AioRpcError) as raised:
            await call
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "aborted by a replica that is shutting down" in (raised.value.details() or "")
