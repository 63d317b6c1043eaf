"""The call that a method serves is the current one: logs, stored plans and calls made on its behalf name it, no other.

The message of a call may come long after its headers, and those of other callers in between.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from hqpb.v1 import service_pb2
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.encoding.envelopes import envelope
from serving.h2 import frames, hpack
from serving.limiting.limits import Limits
from serving.transport.server import Server
from tests.support.h2_peer import Frame, body, parse
from tests.wire.echo_table import EchoTable
from tests.wire.fake_table import GET, FakeHealth
from tests.wire.raw_http import RawHttp, post

_ENOUGH_S = 0.2  # for what was sent to be read


@pytest.fixture
async def port() -> AsyncIterator[int]:
    clock = SystemClock()
    shared = ServerContext(Limits(), clock, RequestIds("made-up"))
    server = Server(EchoTable(clock, 1).methods(), FakeHealth(), shared, CollectorRegistry(), {})
    yield await server.listen("127.0.0.1:0")
    await server.stop(0)


def _headers(stream_id: int, word: str) -> bytes:
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/" + GET.encode()), (b":authority", b"x")]
    more = [(b"te", b"trailers"), (b"content-type", b"application/grpc"), (b"x-request-id", word.encode())]
    return frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, hpack.encode([*fields, *more]))


def _message(stream_id: int, order: str, word: str) -> bytes:
    request = service_pb2.GetInstanceRequest(id=f"{order}:{word}").SerializeToString()
    return frames.frame(frames.DATA, frames.END_STREAM, stream_id, envelope(0, request))


def _current(message: bytes) -> str:
    instance = service_pb2.GetInstanceResponse.FromString(message).instance
    return str(json.loads(instance.meta.annotations["echo"])["current_id"])


async def _answers(port: int, *parts: bytes, streams: int) -> dict[int, str]:
    """Send these requests one after the other; return which call was current, by stream."""
    async with RawHttp(port).connect() as connection:
        await connection.send(frames.PREFACE + frames.settings({}))
        for part in parts:
            await connection.send(part)
            await asyncio.sleep(_ENOUGH_S)
        got, found = b"", list[Frame]()
        async with asyncio.timeout(10):
            while sum(one.kind == frames.HEADERS and one.flags & frames.END_STREAM for one in found) < streams:
                got += await connection.reader.read(65_536)
                found = parse(got)
    return {number: _current(body(found, number)[5:]) for number in range(1, 2 * streams, 2)}


@pytest.mark.parametrize("order", ["now", "later"])
async def test_the_current_call_is_not_the_one_whose_headers_came_last(port: int, order: str) -> None:
    heads = _headers(1, "ann") + _headers(3, "bob")
    told = await _answers(port, heads + _message(1, order, "ann") + _message(3, order, "bob"), streams=2)
    assert told == {1: "ann", 3: "bob"}


@pytest.mark.parametrize("order", ["now", "later"])
async def test_a_call_is_current_when_its_message_comes_later_than_its_headers(port: int, order: str) -> None:
    assert await _answers(port, _headers(1, "ann"), _message(1, order, "ann"), streams=1) == {1: "ann"}


@pytest.mark.parametrize("order", ["now", "later"])
async def test_a_call_over_http1_is_current_when_its_body_comes_later_than_its_headers(port: int, order: str) -> None:
    request = service_pb2.GetInstanceRequest(id=f"{order}:ann").SerializeToString()
    said = post(request, content_type="application/proto", x_request_id="ann")
    async with RawHttp(port).connect() as connection:
        await connection.send(said[: -len(request)])
        await asyncio.sleep(_ENOUGH_S)
        await connection.send(request)
        assert _current((await connection.answer()).body) == "ann"
