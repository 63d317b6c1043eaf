"""A check by the gRPC health service, against a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc  # type: ignore[import-untyped,unused-ignore]

from hqpb.v1.instance_pb2 import ReadinessCheck, ResourceAllocation
from instancectl.containers.checks import Checker
from instancectl.content.guard import NoGuard
from instancectl.processes.children import Children
from instancectl.processes.commands import Commands
from instancectl.processes.reaper import ProcessReaper
from instancectl.wanted.desired import Desired

Status = health_pb2.HealthCheckResponse


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Port of a server that is healthy but for its service `sick`."""
    servicer = health.aio.HealthServicer()
    await servicer.set("", Status.SERVING)
    await servicer.set("sick", Status.NOT_SERVING)
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    number = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield number
    await server.stop(None)


@pytest.mark.parametrize(
    ("name", "service", "passes"),
    [("rpc", "", True), ("rpc", "sick", False), ("rpc", "unknown", False), ("other", "", False), ("closed", "", False)],
)
async def test_a_grpc_check_passes_if_the_server_says_that_it_serves(
    port: int, name: str, service: str, passes: bool
) -> None:
    allocation = ResourceAllocation()
    allocation.port.add(name="rpc", number=port)
    allocation.port.add(name="closed", number=1)
    desired = Desired("i-1", "node-1", (), allocation)
    checker = Checker(desired, Commands(Children("x", ProcessReaper())), NoGuard(), Path("/"))
    check = ReadinessCheck()
    check.grpc.port, check.grpc.service = name, service
    assert await checker.passes(check, {}, 20.0) is passes
