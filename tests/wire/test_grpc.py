"""The gRPC transport, as grpcio's client sees it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from grpc import aio

from serving.clock import SystemClock
from serving.errors import FailedPrecondition, InvalidRequest, Retry
from serving.limiting.admission import Admission
from tests.support.sample_instances import eventually
from tests.wire.fake_table import FAILURES, SERVICE, FakeRegistry
from tests.wire.grpc_client import Client, details_of


async def test_a_call_is_answered(grpc_client: Client) -> None:
    assert (await grpc_client.get("web-1")).instance.meta.id == "web-1"


async def test_an_error_comes_with_its_code_message_and_details(grpc_client: Client) -> None:
    for name, expected in FAILURES.items():
        with pytest.raises(aio.AioRpcError) as raised:
            await grpc_client.get(f"fail:{name}")
        details = details_of(raised.value)
        info = details["ErrorInfo"]
        assert isinstance(info, error_details_pb2.ErrorInfo)
        assert raised.value.code().name == expected.code
        assert raised.value.details() == str(expected)
        assert (info.reason, info.domain, dict(info.metadata)) == (expected.reason, "hq", expected.metadata)
        assert ("RetryInfo" in details) == isinstance(expected, Retry)
        assert ("BadRequest" in details) == isinstance(expected, InvalidRequest)
        assert ("PreconditionFailure" in details) == isinstance(expected, FailedPrecondition)


async def test_a_client_that_retries_by_itself_is_told_when(grpc_client: Client) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await grpc_client.get("fail:Retry")
    assert dict(raised.value.trailing_metadata())["grpc-retry-pushback-ms"] == "2500"


async def test_an_unexpected_error_is_logged_and_not_told(
    grpc_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(aio.AioRpcError) as raised:
        await grpc_client.get("boom", metadata=(("x-request-id", "abc-3"),))
    assert raised.value.code() is grpc.StatusCode.INTERNAL
    assert raised.value.details() == "internal error; see call abc-3 in the log"
    assert "a secret of the machine room" in caplog.text
    assert "abc-3" in caplog.text


@pytest.mark.parametrize("accident", ["timeout", "inner-cancel"])
async def test_a_call_cut_off_inside_has_an_unknown_outcome(grpc_client: Client, accident: str) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await grpc_client.get(accident)
    info = details_of(raised.value)["ErrorInfo"]
    assert isinstance(info, error_details_pb2.ErrorInfo)
    assert info.reason == "OUTCOME_UNKNOWN"


async def test_a_truncated_message_is_an_invalid_request(grpc_client: Client) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await grpc_client.raw(b"\x0a\x05ab")
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "BadRequest" in details_of(raised.value)


async def test_an_unknown_method_is_unimplemented(grpc_client: Client) -> None:
    nope: Any = grpc_client.channel.unary_unary(f"/{SERVICE}/Nope")
    with pytest.raises(aio.AioRpcError) as raised:
        await nope(b"")
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_the_method_knows_deadline_peer_and_request_id(grpc_client: Client, registry: FakeRegistry) -> None:
    assert (await grpc_client.get("deadline")).instance.meta.id == "none"
    assert (await grpc_client.get("deadline", timeout=60)).instance.meta.id == "some"
    assert (await grpc_client.get("peer")).instance.meta.id.startswith("127.0.0.1:")
    sent = await grpc_client.get("request-id", metadata=(("x-request-id", "abc-1"),))
    made_up = await grpc_client.get("request-id")
    assert sent.instance.meta.id == "abc-1"
    assert made_up.instance.meta.id.startswith("test-")
    left_s = (registry.calls[1].deadline or 0.0) - SystemClock().now()
    assert 50 < left_s < 61  # gRPC rounds timeouts


async def test_the_deadline_ends_the_call_at_the_server_as_well(
    grpc_client: Client, registry: FakeRegistry, admission: Admission
) -> None:
    while not registry.started.is_set():  # one whose time was up on its way shows nothing
        with pytest.raises(aio.AioRpcError) as raised:
            await grpc_client.get("wait", timeout=0.05)
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait_for(registry.ended.wait(), 30)
    await eventually(lambda: admission.calls == 0)


async def test_a_client_that_leaves_cancels_its_call_and_is_no_error_in_the_log(
    grpc_client: Client, registry: FakeRegistry, admission: Admission, caplog: pytest.LogCaptureFixture
) -> None:
    call = asyncio.create_task(grpc_client.get("wait"))
    await registry.started.wait()
    call.cancel()
    await asyncio.wait_for(registry.ended.wait(), 30)
    await eventually(lambda: admission.calls == 0)
    assert caplog.records == []


async def test_a_stream_is_read_to_its_end(grpc_client: Client, admission: Admission) -> None:
    assert [m.resume_token async for m in grpc_client.watch("count:20")] == [str(n) for n in range(20)]
    await eventually(lambda: admission.streams == 0)


@pytest.mark.parametrize("name", ["Retry", "InvalidRequest", "ShuttingDown"])
async def test_a_stream_that_fails_raises_after_its_messages(grpc_client: Client, name: str) -> None:
    seen: list[str] = []

    async def read() -> None:
        async for message in grpc_client.watch(f"fail:{name}"):
            seen.append(message.resume_token)  # noqa: PERF401  # what was seen before the error counts

    with pytest.raises(aio.AioRpcError) as raised:
        await read()
    assert seen == ["0", "1"]
    assert raised.value.code().name == FAILURES[name].code
    assert "ErrorInfo" in details_of(raised.value)


async def test_a_client_that_leaves_ends_its_stream(
    grpc_client: Client, registry: FakeRegistry, admission: Admission
) -> None:
    async def first() -> None:
        async for _ in grpc_client.watch("quiet"):
            pass

    watching = asyncio.create_task(first())
    await registry.started.wait()
    assert admission.streams == 1
    watching.cancel()
    await asyncio.wait_for(registry.ended.wait(), 30)
    await eventually(lambda: admission.streams == 0)


async def test_a_slow_reader_holds_the_stream_back(grpc_client: Client, registry: FakeRegistry) -> None:
    stream = grpc_client.watch("endless")
    await anext(stream)
    await eventually(lambda: registry.sent)
    sent = -1
    while registry.sent != sent:  # until the buffers are full
        sent = registry.sent
        await asyncio.sleep(0.3)
    assert 0 < sent < 2_000, "messages of 64 kB pile up somewhere"
    await stream.aclose()
