"""Each abuse is refused and counted, while every call of a well-behaved client at another address succeeds."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import grpc
import pytest

from serving.limiting.admission import Admission
from serving.limiting.limits import KIB, MIB, Limits
from tests.wire.fake_table import WATCH, FakeRegistry
from tests.wire.grpc_client import Client, code_of
from tests.wire.limited import limited
from tests.wire.neighbour import Neighbour, beside
from tests.wire.raw_http import RawAnswer, RawHttp, post
from tests.wire.test_http_stream import envelope

BUSY = grpc.StatusCode.RESOURCE_EXHAUSTED
STREAM = {"content_type": "application/connect+json"}


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
async def neighbour(grpc_port: int, http_port: int) -> AsyncIterator[Neighbour]:
    async with beside(grpc_port, http_port) as calling:
        yield calling


async def http_of(http: RawHttp, count: int, body: bytes, **headers: str) -> list[RawAnswer]:
    return await asyncio.gather(*(http.post(body, **headers) for _ in range(count)))


# --- shares of one peer ---


@limited(max_calls_per_peer=3)
async def test_one_peer_gets_only_its_share_of_the_calls(
    neighbour: Neighbour, http: RawHttp, grpc_client: Client, registry: FakeRegistry, admission: Admission
) -> None:
    waiting = [asyncio.create_task(grpc_client.get("wait")) for _ in range(3)]
    while admission.calls_of.held_by("127.0.0.1") < 3:
        await asyncio.sleep(0.01)
    over_grpc = [await code_of(grpc_client.get("web-1")) for _ in range(20)]
    over_http = await http_of(http, 20, b'{"id":"web-1"}')
    assert over_grpc == [BUSY] * 20
    assert {(a.status, a.headers["retry-after"]) for a in over_http} == {(429, "1")}
    registry.release.set()
    await asyncio.gather(*waiting)
    assert await code_of(grpc_client.get("web-1")) is grpc.StatusCode.OK
    assert admission.refused == {"max_calls_per_peer": 40}


@limited(max_streams_per_peer=2)
async def test_one_peer_gets_only_its_share_of_the_streams(
    neighbour: Neighbour, http: RawHttp, grpc_client: Client, registry: FakeRegistry, admission: Admission
) -> None:
    held = [grpc_client.open_watch("quiet") for _ in range(2)]
    for stream in held:
        await stream.read()
    assert await code_of(anext(grpc_client.watch("count:1"))) is BUSY
    answer = await http.post(envelope(b'{"resumeToken":"count:1"}'), f"/{WATCH}", **STREAM)
    assert b'"code":"resource_exhausted"' in answer.body
    for stream in held:
        stream.cancel()
    while admission.streams:
        await asyncio.sleep(0.01)
    assert await code_of(anext(grpc_client.watch("count:1"))) is grpc.StatusCode.OK
    assert admission.refused == {"max_streams_per_peer": 2}


@limited(max_bodies_bytes_per_peer=100 * KIB)
async def test_requests_of_open_watches_count_towards_their_peers_body_limit(
    neighbour: Neighbour, http: RawHttp, grpc_client: Client, admission: Admission
) -> None:
    order = "quiet:" + "x" * 40_000
    held = [grpc_client.open_watch(order) for _ in range(2)]
    for stream in held:
        await stream.read()
    assert 80_000 < admission.bodies_of.held_by("127.0.0.1") < 81_000
    assert await code_of(anext(grpc_client.watch(order))) is BUSY
    async with asyncio.timeout(30):
        answer = await http.post(envelope(b'{"resumeToken":"%s"}' % order.encode()), f"/{WATCH}", **STREAM)
    assert b'"code":"resource_exhausted"' in answer.body
    for stream in held:
        stream.cancel()
    while admission.bodies_bytes:
        await asyncio.sleep(0.01)
    assert await code_of(anext(grpc_client.watch(order))) is grpc.StatusCode.OK


@limited(max_calls_per_peer_s=0.02)
async def test_one_caller_over_its_rate_slows_nobody_else(
    grpc_port: int, grpc_client: Client, http: RawHttp, admission: Admission
) -> None:
    codes = [await code_of(grpc_client.get("web-1")) for _ in range(40)]
    assert codes.count(BUSY) == 39
    assert (await http.post(b'{"id":"web-1"}')).status == 429
    assert admission.refused["max_calls_per_peer_s"] == codes.count(BUSY) + 1


@limited(max_calls_per_peer_s=0.02)
async def test_pages_count_towards_the_rate_of_their_caller_and_those_of_health_do_not(
    http: RawHttp, admission: Admission
) -> None:
    statuses = [(await http.get("/extra")).status for _ in range(40)]
    assert set(statuses) == {200, 429}
    assert admission.refused == {"max_calls_per_peer_s": statuses.count(429)}
    assert [(await http.get(page)).status for page in ("/livez", "/readyz")] == [200, 200]


@limited(max_connections_per_peer=4)
@pytest.mark.long
async def test_one_peer_gets_only_its_share_of_the_http_connections(
    neighbour: Neighbour, http: RawHttp, admission: Admission
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(4):
            connection = await stack.enter_async_context(http.connect())
            await connection.send(post(b'{"id":"web-1"}'))
            assert (await connection.answer()).status == 200
        for _ in range(20):
            async with http.connect() as refused:
                assert (await refused.answer()).status == 503
                assert await refused.hung_up()
    while admission.connections_of.held_by("127.0.0.1"):
        await asyncio.sleep(0.01)
    assert (await http.post(b'{"id":"web-1"}')).status == 200
    assert admission.refused == {"max_connections_per_peer": 20}


@limited(max_bodies_bytes_per_peer=100 * KIB)
async def test_one_peer_gets_only_its_share_of_the_bodies(
    neighbour: Neighbour, http: RawHttp, admission: Admission
) -> None:
    async with http.connect() as slow:
        await slow.send(post(b"", content_length="90000") + b" " * 80_000)
        while admission.bodies_bytes < 60_000:
            await asyncio.sleep(0.01)
        async with http.connect() as other:
            await other.send(post(b"", content_length="90000") + b" " * 80_000)
            assert (await other.answer()).status == 429
    assert admission.refused == {"max_bodies_bytes_per_peer": 1}


# --- sizes ---


@limited(max_request_bytes=10 * KIB)
async def test_requests_too_large_are_refused_and_counted(
    neighbour: Neighbour, http: RawHttp, grpc_client: Client, admission: Admission
) -> None:
    codes = await asyncio.gather(*(code_of(grpc_client.get("x" * 11 * KIB)) for _ in range(10)))
    assert codes == [BUSY] * 10
    answers = await http_of(http, 10, b" " * 11 * KIB)
    assert {(a.status, a.json()["code"]) for a in answers} == {(413, "resource_exhausted")}
    assert admission.refused == {"max_request_bytes": 20}


@pytest.mark.long
@limited(max_request_bytes=1 * MIB)
async def test_decompression_bombs_are_refused(
    neighbour: Neighbour, http: RawHttp, grpc_client: Client, admission: Admission
) -> None:
    bomb = gzip.compress(bytes(200_000_000), 1)
    assert len(bomb) < MIB
    answer = await http.post(bomb, content_encoding="gzip")
    assert (answer.status, answer.json()["code"]) == (413, "resource_exhausted")
    body = b"\x0a\x80\x80\x80\x30" + bytes(3 * 16 * MIB)  # a well-formed request with an id of 100 MB
    assert await code_of(grpc_client.raw(body, grpc.Compression.Gzip)) is BUSY
    assert admission.refused == {"max_request_bytes": 2}


@limited(max_json_depth=20)
async def test_json_too_deep_is_refused_before_it_is_parsed(
    neighbour: Neighbour, http: RawHttp, admission: Admission
) -> None:
    for body in (b"[" * 21, b'{"read":' * 21 + b"1" + b"}" * 21, b"[" * 1_000_000):
        answer = await http.post(body)
        assert (answer.status, answer.json()["code"]) == (400, "invalid_argument")
        assert "nested deeper than 20 levels" in answer.json()["message"]
    answer = await http.post(envelope(b"[" * 21), f"/{WATCH}", **STREAM)
    assert b"nested deeper than 20 levels" in answer.body
    assert admission.refused == {"max_json_depth": 4}


@limited(max_header_bytes=4 * KIB)
async def test_headers_too_large_are_refused(
    neighbour: Neighbour, http: RawHttp, grpc_client: Client, admission: Admission
) -> None:
    for _ in range(5):
        async with http.connect() as connection:
            await connection.send(post(b'{"id":"web-1"}', x_large="a" * 5 * KIB))
            assert (await connection.answer()).status == 431
        large = grpc_client.get("web-1", metadata=(("x-large", "a" * 10 * KIB),))
        assert await code_of(large) is BUSY
    assert admission.refused == {"max_header_bytes": 10}
