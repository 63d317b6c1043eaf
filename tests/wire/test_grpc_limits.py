"""Limits of the gRPC transport: each is refused cleanly. Sizes and rates: test_abuse.py, beside HTTP's."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from hqpb.v1 import service_pb2
from serving.context import ServerContext
from serving.limiting.admission import Admission
from tests.wire.fake_table import WATCH, FakeRegistry
from tests.wire.grpc_client import Client, code_of, details_of
from tests.wire.limited import limited


@limited(max_calls=2)
async def test_a_call_too_many_is_told_to_come_again(
    grpc_client: Client, registry: FakeRegistry, admission: Admission
) -> None:
    waiting = []
    for _ in range(2):
        registry.started.clear()
        waiting.append(asyncio.create_task(grpc_client.get("wait")))
        await registry.started.wait()
    with pytest.raises(aio.AioRpcError) as raised:
        await grpc_client.get("web-1")
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "RetryInfo" in details_of(raised.value)
    registry.release.set()
    await asyncio.gather(*waiting)
    assert (await grpc_client.get("web-1")).instance.meta.id == "web-1"
    assert admission.refused == {"max_calls": 1}


@limited(max_streams=0)
async def test_a_stream_too_many_is_refused(grpc_client: Client) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await anext(grpc_client.watch("count:1"))
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_data_sent_behind_a_request_is_refused(grpc_client: Client, registry: FakeRegistry) -> None:
    channel: Any = grpc_client.channel
    stream = channel.stream_stream(f"/{WATCH}")()
    await stream.write(service_pb2.WatchInstancesRequest(resume_token="quiet").SerializeToString())
    sent_bytes = 0
    try:
        while sent_bytes < 64 << 20:
            await stream.write(b"x" * 20_000)
            sent_bytes += 20_000
    except (aio.AioRpcError, asyncio.InvalidStateError):
        pass
    assert sent_bytes < 1 << 20
    assert await stream.code() in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INTERNAL)  # as the write failed
    assert not registry.started.is_set()


@limited(max_response_bytes=10_000)
async def test_an_answer_too_large_is_an_error_with_details(grpc_client: Client) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await grpc_client.get("big:10001")
    info = details_of(raised.value)["ErrorInfo"]
    assert isinstance(info, error_details_pb2.ErrorInfo)
    assert info.reason == "TOO_LARGE"


@limited(max_response_bytes=200_000, max_answers_bytes=100_000)
@pytest.mark.parametrize("size_bytes", [100_001, 200_001])
async def test_a_call_whose_answer_is_refused_does_not_count_as_successful(
    grpc_client: Client, shared: ServerContext, size_bytes: int
) -> None:
    with pytest.raises(aio.AioRpcError):
        await grpc_client.get(f"big:{size_bytes}")
    calls = {code: count for (_, _, code), count in shared.traffic.calls().items() if count}
    assert calls == {"RESOURCE_EXHAUSTED": 1}


@limited(max_connections=1)
async def test_a_connection_too_many_is_refused(grpc_client: Client, grpc_port: int) -> None:
    await grpc_client.get("web-1")
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with aio.insecure_channel(f"127.0.0.1:{grpc_port}", options=options) as channel:
        with pytest.raises(aio.AioRpcError) as raised:
            await Client(channel).get("web-1", timeout=1)
    assert raised.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
    assert (await grpc_client.get("web-1")).instance.meta.id == "web-1"


@limited(max_calls=0)
async def test_health_answers_under_overload(grpc_client: Client) -> None:
    answer = await health_pb2_grpc.HealthStub(grpc_client.channel).Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.long
async def test_a_request_that_was_refused_is_not_kept_until_garbage_is_collected(grpc_client: Client) -> None:
    malformed = b"\xff" * 1_000_000
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(20):
            assert await code_of(grpc_client.raw(malformed)) is grpc.StatusCode.INVALID_ARGUMENT
            assert await code_of(grpc_client._watch(malformed).read()) is grpc.StatusCode.INVALID_ARGUMENT
        await asyncio.sleep(0.2)  # the calls end behind their answers
        assert tracemalloc.get_traced_memory()[0] < 5_000_000
    finally:
        tracemalloc.stop()
        gc.enable()
