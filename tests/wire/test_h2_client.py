"""The client of our own against two servers: grpcio's and our own."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator

import pytest
from google.rpc import code_pb2 as codes  # type: ignore[import-untyped]
from prometheus_client import CollectorRegistry

from hqclient.errors import DETAILS_KEY, decode_status
from hqpb.v1 import service_pb2
from serving.context import ServerContext
from serving.transport.client import Channel
from serving.transport.client_call import CallFailed
from serving.transport.server import Server
from tests.support.grpcio_server import GrpcioServer
from tests.support.sample_instances import eventually
from tests.wire.fake_table import FAILURES, GET, SERVICE, WATCH, FakeHealth, FakeRegistry


@pytest.fixture(params=["own", "grpcio"])
async def address(
    registry: FakeRegistry, health: FakeHealth, shared: ServerContext, request: pytest.FixtureRequest
) -> AsyncIterator[str]:
    server: Server | GrpcioServer
    if request.param == "own":
        server = Server(registry.methods(), health, shared, CollectorRegistry(), {})
    else:
        server = GrpcioServer(registry.methods())
    yield f"127.0.0.1:{await server.listen('127.0.0.1:0')}"
    await server.stop(0.0)


@pytest.fixture
async def channel(address: str) -> AsyncIterator[Channel]:
    made = Channel(address)
    yield made
    await made.close()
    assert not made._connections


async def get(channel: Channel, text: str, timeout_s: float | None = 10.0, **metadata: str) -> str:
    request = service_pb2.GetInstanceRequest(id=text).SerializeToString()
    named = tuple((name.replace("_", "-"), value) for name, value in metadata.items())
    answer = await channel.unary(f"/{GET}", request, timeout_s, named)
    found = service_pb2.GetInstanceResponse.FromString(answer).instance.meta
    return found.annotations.get("padding", found.id)


def watch(channel: Channel, order: str) -> AsyncIterator[bytes]:
    request = service_pb2.WatchInstancesRequest(resume_token=order).SerializeToString()
    return channel.stream(f"/{WATCH}", request)


async def until_idle(channel: Channel, registry: FakeRegistry) -> None:
    """The call has ended on both sides, and nothing is left of it here."""
    async with asyncio.timeout(30):
        await registry.ended.wait()
    assert channel._current is not None
    machine = channel._current._machine
    assert not machine.streams
    assert not channel._current._waiting
    assert machine.outgoing.waiting == 0


async def test_calls_share_one_connection(channel: Channel) -> None:
    names = [f"web-{number}" for number in range(200)]
    assert await asyncio.gather(*(get(channel, name) for name in names)) == names
    assert len(channel._connections) == 1


async def test_metadata_and_the_deadline_arrive(channel: Channel, registry: FakeRegistry) -> None:
    assert await get(channel, "request-id", x_request_id="from-me", authorization="Bearer x") == "from-me"
    assert registry.calls[-1].all_headers("authorization") == ("Bearer x",)
    assert await get(channel, "deadline") == "some"
    assert await get(channel, "deadline", None) == "none"


@pytest.mark.parametrize("size", [16_300, 65_531, 65_536, 3_000_000])
async def test_large_answers_arrive_whole(channel: Channel, size: int) -> None:
    assert len(await get(channel, f"big:{size}")) == size


async def test_large_requests_arrive_whole(channel: Channel) -> None:
    text = "x" * 1_000_000
    assert await get(channel, text) == text


async def test_an_error_is_decoded_as_it_always_was(channel: Channel) -> None:
    for name, expected in FAILURES.items():
        with pytest.raises(CallFailed) as raised:
            await get(channel, f"fail:{name}")
        error = raised.value
        decoded = decode_status(error.code, error.message, error.binary(DETAILS_KEY))
        assert (decoded.code.name, decoded.message) == (expected.code, str(expected))
        assert (decoded.reason, decoded.from_hq, decoded.sent) == (expected.reason, True, True)


async def test_an_unknown_method_is_unimplemented(channel: Channel) -> None:
    with pytest.raises(CallFailed) as raised:
        await channel.unary(f"/{SERVICE}/Nothing", b"", 5.0)
    assert raised.value.code == codes.UNIMPLEMENTED


@pytest.mark.parametrize("pair", [("a", "\n"), ("a", "ä"), ("A", "x"), (":path", "/x"), ("a-bin", "x"), ("a", b"x")])
async def test_metadata_that_cannot_be_sent_fails_the_call_alone(channel: Channel, pair: tuple[str, str]) -> None:
    with pytest.raises(CallFailed, match="cannot be sent") as raised:
        await channel.unary(f"/{GET}", b"", 5.0, [pair])
    assert raised.value.is_unprocessed
    assert await get(channel, "web-1") == "web-1"


async def test_a_deadline_ends_the_call_on_both_sides(channel: Channel, registry: FakeRegistry) -> None:
    while not registry.started.is_set():  # one whose time was up on its way shows nothing
        began = time.monotonic()
        with pytest.raises(CallFailed) as raised:
            await get(channel, "wait", 0.2)
        assert raised.value.code == codes.DEADLINE_EXCEEDED
        assert time.monotonic() - began > 0.15
        assert not (registry.started.is_set() and raised.value.is_unprocessed)
    await until_idle(channel, registry)


async def test_a_cancelled_call_frees_everything(channel: Channel, registry: FakeRegistry) -> None:
    task = asyncio.create_task(get(channel, "wait"))
    await registry.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_idle(channel, registry)
    gone = weakref.ref(task)
    del task
    gc.collect()
    assert gone() is None
    assert await get(channel, "web-1") == "web-1"


async def test_a_stream_brings_its_messages_and_ends(channel: Channel, registry: FakeRegistry) -> None:
    tokens = [service_pb2.WatchInstancesResponse.FromString(m).resume_token async for m in watch(channel, "count:500")]
    assert tokens == [str(number) for number in range(500)]
    await until_idle(channel, registry)


async def test_messages_before_an_error_arrive(channel: Channel) -> None:
    messages = watch(channel, "fail:StoreFull")
    assert await anext(messages) < await anext(messages)
    with pytest.raises(CallFailed, match="the store is full"):
        await anext(messages)


async def test_a_stream_that_its_reader_leaves_ends_at_the_server(channel: Channel, registry: FakeRegistry) -> None:
    messages = channel.stream(f"/{WATCH}", service_pb2.WatchInstancesRequest(resume_token="quiet").SerializeToString())
    await anext(messages)
    reader = asyncio.ensure_future(anext(messages))
    await asyncio.sleep(0.05)
    messages.leave()
    with pytest.raises(CallFailed, match="closed"):
        await reader
    await until_idle(channel, registry)


async def test_a_slow_reader_holds_the_server_back(channel: Channel, registry: FakeRegistry) -> None:
    messages = channel.stream(
        f"/{WATCH}", service_pb2.WatchInstancesRequest(resume_token="endless").SerializeToString()
    )
    await anext(messages)
    sent = -1
    while registry.sent != sent < 100:  # until the buffers are full
        sent = registry.sent
        await asyncio.sleep(0.3)
    assert sent < 100
    for _ in range(200):
        await anext(messages)
    messages.leave()
    await until_idle(channel, registry)


async def test_more_calls_than_the_server_takes_wait_in_order(channel: Channel, registry: FakeRegistry) -> None:
    await get(channel, "web-1")
    assert channel._current is not None
    channel._current._machine.peer_max_streams = 2
    order: list[int] = []

    async def one(number: int) -> None:
        await get(channel, "wait" if number < 2 else "web-1")
        order.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(8)]
    await eventually(lambda: len(registry.calls) == 3)
    tasks[4].cancel()
    with pytest.raises(CallFailed) as raised:
        await get(channel, "web-1", 0.1)
    assert (raised.value.code, raised.value.is_unprocessed) == (codes.DEADLINE_EXCEEDED, True)
    registry.release.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order[2:] == [2, 3, 5, 6, 7]


async def test_closing_gives_calls_their_grace_and_then_ends_them(
    address: str, channel: Channel, registry: FakeRegistry
) -> None:
    await get(channel, "web-1")
    calls = [asyncio.create_task(get(channel, text)) for text in ("web-1", "wait")]
    await asyncio.sleep(0)
    closing = asyncio.create_task(channel.close(30.0))
    assert await calls[0] == "web-1"
    with pytest.raises(CallFailed) as raised:
        await get(channel, "web-2")
    assert raised.value.is_unprocessed
    assert not calls[1].done()
    await channel.close(0.1)
    with pytest.raises(CallFailed) as raised:
        await calls[1]
    assert (raised.value.code, raised.value.is_unprocessed) == (codes.UNAVAILABLE, False)
    await closing


@pytest.mark.long
async def test_an_address_where_nothing_listens_is_told_at_once_and_found_once_something_does(
    address: str, registry: FakeRegistry, health: FakeHealth, shared: ServerContext
) -> None:
    server = Server(registry.methods(), health, shared, CollectorRegistry(), {})
    port = await server.listen("127.0.0.1:0")
    await server.stop(0.0)
    channel = Channel(f"127.0.0.1:{port}")
    for _ in range(20):
        with pytest.raises(CallFailed, match="cannot connect") as raised:
            await get(channel, "web-1")
        assert (raised.value.code, raised.value.is_unprocessed) == (codes.UNAVAILABLE, True)
    again = Server(registry.methods(), health, shared, CollectorRegistry(), {})
    await again.listen(f"127.0.0.1:{port}")
    await asyncio.sleep(1.3)
    assert await get(channel, "web-1") == "web-1"
    await channel.close()
    await again.stop(0.0)
