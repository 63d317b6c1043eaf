"""What everybody may ask without saying who they are is within the limits as well: health, reflection, pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc  # type: ignore[import-untyped]

from serving.admission import Admission
from tests.wire.limited import limited

BUSY = grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.fixture
async def channel(grpc_port: int) -> AsyncIterator[aio.Channel]:
    async with aio.insecure_channel(f"127.0.0.1:{grpc_port}") as opened:
        yield opened


async def _end(call: Any) -> grpc.StatusCode:
    """How a stream ends that should."""
    try:
        async with asyncio.timeout(30):
            while await call.read() is not aio.EOF:
                pass
    except aio.AioRpcError:
        pass
    code: grpc.StatusCode = await call.code()
    return code


@limited(max_streams_per_peer=2)
async def test_watches_of_health_count_as_streams_of_their_peer(channel: aio.Channel, admission: Admission) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    held = [stub.Watch(health_pb2.HealthCheckRequest(service=f"{one}" + "x" * 3_000_000)) for one in range(2)]
    for watch in held:
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    assert await _end(stub.Watch(health_pb2.HealthCheckRequest())) is BUSY
    assert (admission.streams, admission.refused) == (2, {"max_streams_per_peer": 1})
    for watch in held:
        watch.cancel()
    while admission.streams:
        await asyncio.sleep(0.01)


@limited(slow_request_s=0.4)
async def test_a_health_check_that_does_not_arrive_is_given_up(channel: Any) -> None:
    call = channel.stream_unary("/grpc.health.v1.Health/Check")()
    await call.wait_for_connection()
    assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@limited(max_streams_per_peer=1, slow_request_s=0.8)
async def test_reflection_counts_as_a_stream_takes_short_words_and_ends(
    channel: aio.Channel, admission: Admission
) -> None:
    stub, ask = reflection_pb2_grpc.ServerReflectionStub(channel), reflection_pb2.ServerReflectionRequest
    held = stub.ServerReflectionInfo()
    await held.write(ask(list_services=""))
    assert (await held.read()).list_services_response.service
    assert await _end(stub.ServerReflectionInfo()) is BUSY
    assert await _end(held) is grpc.StatusCode.DEADLINE_EXCEEDED
    assert admission.streams == 0
    long = stub.ServerReflectionInfo()
    await long.write(ask(file_containing_symbol="x" * 100_000))
    assert await _end(long) is grpc.StatusCode.INVALID_ARGUMENT
