"""The client's connections come and go: no call is lost that need not be, and one that was not processed says so."""

from __future__ import annotations

import asyncio

import pytest
from google.rpc import code_pb2 as codes  # type: ignore[import-untyped]
from prometheus_client import CollectorRegistry

from hqpb.v1 import service_pb2
from serving.context import ServerContext
from serving.h2 import frames
from serving.h2.frames import END_STREAM
from serving.limiting.limits import Limits
from serving.transport.client import Channel
from serving.transport.client_call import CallFailed
from serving.transport.server import Server
from tests.support.sample_instances import eventually
from tests.wire.fake_table import GET, FakeHealth, FakeRegistry
from tests.wire.raw_h2_server import OK, OK_HEAD, RawPeer, raw_server

PATH = "/t.T/Get"


async def good(peer: RawPeer) -> None:
    peer.greet()
    while True:
        peer.answer(await peer.request(), b"new")


async def test_calls_above_the_last_one_are_unprocessed_and_those_below_are_answered() -> None:
    released = asyncio.Event()

    async def leaving(peer: RawPeer) -> None:
        peer.greet()
        first, second = await peer.request(), await peer.request()
        peer.write(frames.goaway(first, 0))
        await released.wait()
        peer.headers(first, OK_HEAD)
        peer.message(first, b"old")
        peer.headers(first, OK, END_STREAM)
        await peer.rest()
        assert second > first

    async with raw_server(leaving, good) as address:
        channel = Channel(address)
        first, second = (asyncio.create_task(channel.unary(PATH, b"?", 5.0)) for _ in range(2))
        with pytest.raises(CallFailed) as raised:
            await second
        assert (raised.value.code, raised.value.is_unprocessed) == (codes.UNAVAILABLE, True)
        assert not first.done()
        await asyncio.sleep(0.15)  # it had never answered: the next attempt waits
        released.set()
        assert await first == b"old"
        async with asyncio.timeout(30):
            while channel._connections:
                await asyncio.sleep(0.01)
        assert await channel.unary(PATH, b"?", 5.0) == b"new"
        await channel.close()


async def test_a_new_connection_serves_while_the_old_one_drains() -> None:
    released = asyncio.Event()

    async def leaving(peer: RawPeer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.answer(stream, b"first")
        stream = await peer.request()
        peer.write(frames.goaway(frames.MAX_STREAM_ID, 0))
        await released.wait()
        peer.answer(stream, b"old")
        await peer.rest()

    async with raw_server(leaving, good) as address:
        channel = Channel(address)
        assert await channel.unary(PATH, b"?", 5.0) == b"first"
        old = asyncio.create_task(channel.unary(PATH, b"?", 5.0))
        await eventually(lambda: channel._current is None)
        assert await channel.unary(PATH, b"?", 5.0) == b"new"
        assert len(channel._connections) == 2
        released.set()
        assert await old == b"old"
        await channel.close()


async def test_no_more_streams_are_open_than_the_server_says() -> None:
    async def narrow(peer: RawPeer) -> None:
        peer.greet({frames.MAX_CONCURRENT_STREAMS: 2})
        for _ in range(10):
            one, other = await peer.request(), await peer.request()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await peer.until(frames.HEADERS)
            peer.answer(one, b"%d" % one)
            peer.answer(other, b"%d" % other)
        await peer.rest()

    async with raw_server(narrow) as address:
        channel = Channel(address)
        calls = [channel.unary(PATH, b"?", 5.0) for _ in range(20)]
        assert await asyncio.gather(*calls) == [b"%d" % number for number in range(1, 41, 2)]
        await channel.close()


async def test_a_server_that_takes_no_calls_at_all_is_waited_for_until_the_deadline() -> None:
    async def full(peer: RawPeer) -> None:
        peer.greet({frames.MAX_CONCURRENT_STREAMS: 0})
        await peer.rest()
        assert not [one for one in peer.seen if one[0] == frames.HEADERS]

    async with raw_server(full) as address:
        channel = Channel(address)
        with pytest.raises(CallFailed) as raised:
            await channel.unary(PATH, b"?", 0.2)
        assert (raised.value.code, raised.value.is_unprocessed) == (codes.DEADLINE_EXCEEDED, True)
        assert channel._current is not None
        assert not channel._current._waiting
        await channel.close()


@pytest.mark.long
async def test_connections_that_age_are_renewed_under_load_without_a_failed_call(
    registry: FakeRegistry, health: FakeHealth, shared: ServerContext
) -> None:
    aging = ServerContext(Limits(max_connection_age_s=0.2, max_connection_age_grace_s=5.0), shared.clock, shared.ids)
    server = Server(registry.methods(), health, aging, CollectorRegistry(), {})
    channel = Channel(f"127.0.0.1:{await server.listen('127.0.0.1:0')}")
    request = service_pb2.GetInstanceRequest(id="web-1").SerializeToString()
    seen = set()

    async def ask(until: float) -> int:
        answered = 0
        while asyncio.get_running_loop().time() < until:
            assert await channel.unary(f"/{GET}", request, 5.0)
            seen.add(id(channel._current))
            answered += 1
        return answered

    until = asyncio.get_running_loop().time() + 4.0
    assert sum(await asyncio.gather(*(ask(until) for _ in range(8)))) > 100
    assert len(seen) > 1
    await channel.close()
    await server.stop(0.0)
