"""A flood of connections from one address does not make a healthy replica fail the probes that come from there, too."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import cycle

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from serving.h2 import frames, hpack
from serving.limiting.admission import Admission
from tests.wire.fake_table import GET
from tests.wire.grpc_client import Client
from tests.wire.limited import limited
from tests.wire.raw_http import RawHttp, post

FEW = 4
PROBES = 30
_FLOODERS, _HELD = 10, 30
PAGES = ("/livez", "/readyz?fresh=10s", "/metrics")


async def _flood(port: int, stop: asyncio.Event) -> None:
    """Open connections as fast as possible: some are idle, some call, some send half a request."""
    sayings = (b"", post(b'{"id":"web-1"}'), b"GET /livez HTTP/1.1\r\n", frames.PREFACE, b"\x16\x03\x01")
    held: deque[asyncio.StreamWriter] = deque()
    for said in cycle(sayings):
        if stop.is_set():
            break
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            held.append(writer)
        if len(held) > _HELD:
            held.popleft().close()
        await asyncio.sleep(0.005)
    for writer in held:
        writer.close()


@asynccontextmanager
async def flooded(http: RawHttp) -> AsyncIterator[None]:
    """All connections that there may be are taken, and more come all the time."""
    async with AsyncExitStack() as stack:
        for _ in range(FEW):
            connection = await stack.enter_async_context(http.connect())
            await connection.send(post(b'{"id":"web-1"}'))
            assert (await connection.answer()).status == 200
        stop = asyncio.Event()
        flooding = [asyncio.create_task(_flood(http.port, stop)) for _ in range(_FLOODERS)]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*flooding)


async def _by_h1(port: int, page: str) -> int:
    return (await RawHttp(port).get(page)).status


async def _by_h2(port: int, page: str) -> int:
    """All at once, as curl and Go do: they do not wait for our settings."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", page.encode()), (b":authority", b"x")]
    asked = frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, hpack.encode(head))
    writer.write(frames.PREFACE + frames.settings({}) + asked)
    try:
        while True:
            size = await reader.readexactly(frames.HEADER_BYTES)
            high, low, kind, _, stream_id = frames.FRAME.unpack(size)
            payload = await reader.readexactly(high << 8 | low)
            if (kind, stream_id) == (frames.HEADERS, 1):
                return 200 if payload.startswith(hpack.encode([(b":status", b"200")])) else 503
    finally:
        writer.close()


Probe = Callable[[int, str], Awaitable[int]]
per_peer = limited(max_connections_per_peer=FEW)
in_all = limited(max_connections=FEW)


@pytest.mark.parametrize("probe", [_by_h1, _by_h2])
@per_peer
async def test_probes_beside_a_flood_from_their_own_address_are_answered(
    http: RawHttp, admission: Admission, probe: Probe
) -> None:
    async with flooded(http):
        for number in range(PROBES):
            assert await probe(http.port, PAGES[number % len(PAGES)]) == 200
    assert admission.refused["max_connections_per_peer"] > 0


@pytest.mark.parametrize("probe", [_by_h1, _by_h2])
@in_all
async def test_probes_are_answered_while_all_connections_are_taken(
    http: RawHttp, admission: Admission, probe: Probe
) -> None:
    async with flooded(http):
        for number in range(PROBES):
            assert await probe(http.port, PAGES[number % len(PAGES)]) == 200
    assert admission.refused["max_connections"] > 0


@per_peer
async def test_a_health_check_over_grpc_is_a_probe_too(http: RawHttp) -> None:
    async with flooded(http):
        for _ in range(5):
            options = (("grpc.use_local_subchannel_pool", 1),)
            async with aio.insecure_channel(f"127.0.0.1:{http.port}", options=options) as channel:
                answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=30)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING


@per_peer
async def test_on_a_connection_too_many_only_a_probe_is_answered_and_then_it_ends(
    http: RawHttp, admission: Admission
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(FEW):
            connection = await stack.enter_async_context(http.connect())
            await connection.send(post(b'{"id":"web-1"}'))
            assert (await connection.answer()).status == 200
        for path in ("/", "/extra", "/sd/prometheus", "/livez2", f"/{GET}"):
            assert (await http.get(path)).status == 503
        assert (await http.post(b'{"id":"web-1"}', path="/livez")).status in (405, 503)
        async with http.connect() as probe:
            await probe.send(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n" + post(b'{"id":"web-1"}'))
            answer = await probe.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert await probe.hung_up()
        async with aio.insecure_channel(f"127.0.0.1:{http.port}") as channel:
            with pytest.raises(aio.AioRpcError) as refused:
                await Client(channel).get("web-1")
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    while admission.connections_of.held_by("127.0.0.1"):
        await asyncio.sleep(0.01)


@limited(max_connections=FEW + 2, max_connections_per_peer=FEW)
async def test_probes_that_are_never_finished_take_no_place_from_other_addresses(http: RawHttp) -> None:
    length = {"content_type": "application/json", "content_length": "10"}
    async with AsyncExitStack() as stack:
        for number in range(FEW + 4):
            connection = await stack.enter_async_context(http.connect())
            if number < FEW:
                await connection.send(post(b'{"id":"web-1"}'))
                assert (await connection.answer()).status == 200
            else:
                await connection.send(post(b"", path="/grpc.health.v1.Health/Check", **length))
        await _by_h1(http.port, "/livez")  # what was sent before is read by now
        reader, writer = await asyncio.open_connection("127.0.0.1", http.port, local_addr=("127.0.0.2", 0))
        writer.write(post(b'{"id":"web-1"}'))
        assert b" 200 " in await reader.readline()
        writer.close()


@per_peer
async def test_half_a_probe_does_not_hold_a_connection_too_many(http: RawHttp, admission: Admission) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(FEW):
            await stack.enter_async_context(http.connect())
        async with http.connect() as half:
            await half.send(b"GET /livez HTTP/1.1\r\nhost: x\r\n")
            assert (await half.answer()).status == 503
            assert await half.hung_up()
    while admission.connections_of.held_by("127.0.0.1"):
        await asyncio.sleep(0.01)
