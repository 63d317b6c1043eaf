"""The Connect protocol as somebody else's client speaks it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from connectrpc.client import ConnectClient
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from google.rpc import error_details_pb2  # type: ignore[import-untyped]

from hqpb.v1 import service_pb2
from tests.support.connect_calls import method
from tests.wire.fake_table import FAILURES, FakeRegistry

GET = method("GetInstance", service_pb2.GetInstanceRequest, service_pb2.GetInstanceResponse)
WATCH = method("WatchInstances", service_pb2.WatchInstancesRequest, service_pb2.WatchInstancesResponse)


@pytest.fixture(params=[False, True], ids=["proto", "json"])
async def client(http_port: int, request: pytest.FixtureRequest) -> AsyncIterator[ConnectClient]:
    """It compresses requests and asks for compressed answers by default."""
    async with ConnectClient(f"http://127.0.0.1:{http_port}", proto_json=request.param) as connect:
        yield connect


async def get(client: ConnectClient, text: str, timeout_ms: int | None = None) -> service_pb2.GetInstanceResponse:
    request = service_pb2.GetInstanceRequest(id=text)
    return await client.execute_unary(request=request, method=GET, timeout_ms=timeout_ms)


def watch(
    client: ConnectClient, order: str, timeout_ms: int | None = None
) -> AsyncIterator[service_pb2.WatchInstancesResponse]:
    request = service_pb2.WatchInstancesRequest(resume_token=order)
    return client.execute_server_stream(request=request, method=WATCH, timeout_ms=timeout_ms)


async def test_a_call_is_answered(client: ConnectClient) -> None:
    assert (await get(client, "web-1")).instance.meta.id == "web-1"


async def test_a_large_answer_is_read(client: ConnectClient) -> None:
    answer = await get(client, "big:2000000")
    assert len(answer.instance.meta.annotations["padding"]) == 2_000_000


async def test_an_error_comes_with_its_code_message_and_details(client: ConnectClient) -> None:
    for name, expected in FAILURES.items():
        with pytest.raises(ConnectError) as raised:
            await get(client, f"fail:{name}")
        info = error_details_pb2.ErrorInfo()
        assert raised.value.details[0].Unpack(info)
        assert raised.value.code.name == expected.code
        assert raised.value.message == str(expected)
        assert info.reason == expected.reason


async def test_a_stream_is_read_to_its_end(client: ConnectClient) -> None:
    assert [m.resume_token async for m in watch(client, "count:20")] == [str(n) for n in range(20)]


async def test_a_stream_that_fails_raises_after_its_messages(client: ConnectClient) -> None:
    seen: list[str] = []

    async def read() -> None:
        async for message in watch(client, "fail:ShuttingDown"):
            seen.append(message.resume_token)  # noqa: PERF401  # what was seen before the error counts

    with pytest.raises(ConnectError) as raised:
        await read()
    assert seen == ["0", "1"]
    assert raised.value.code == Code.UNAVAILABLE


@pytest.mark.long
async def test_the_timeout_reaches_the_method(client: ConnectClient, registry: FakeRegistry) -> None:
    with pytest.raises(ConnectError) as raised:
        await get(client, "wait", timeout_ms=3_000)
    assert raised.value.code == Code.DEADLINE_EXCEEDED
    assert registry.calls[0].deadline is not None
    await asyncio.wait_for(registry.ended.wait(), 30)


@pytest.mark.long
async def test_the_timeout_ends_a_stream(client: ConnectClient, registry: FakeRegistry) -> None:
    with pytest.raises(ConnectError) as raised:
        async for _ in watch(client, "quiet", timeout_ms=3_000):
            pass
    assert raised.value.code == Code.DEADLINE_EXCEEDED
    await asyncio.wait_for(registry.ended.wait(), 30)


async def test_an_unknown_method_is_unimplemented(client: ConnectClient) -> None:
    nope = method("Nope", service_pb2.GetInstanceRequest, service_pb2.GetInstanceResponse)
    with pytest.raises(ConnectError) as raised:
        await client.execute_unary(request=service_pb2.GetInstanceRequest(), method=nope)
    assert raised.value.code == Code.UNIMPLEMENTED
