"""Limits of the HTTP transport: each is refused cleanly, and what was refused is counted."""

from __future__ import annotations

import asyncio
import socket

import pytest

from serving.context import ServerContext
from serving.limiting.admission import Admission
from serving.limiting.limits import KIB
from serving.transport.server import Server
from tests.support.sample_instances import eventually
from tests.wire.fake_table import WATCH, FakeRegistry
from tests.wire.limited import limited
from tests.wire.raw_http import RawHttp, post
from tests.wire.test_http_stream import envelope


@limited(max_calls=2)
async def test_a_call_too_many_is_told_to_come_again(
    http: RawHttp, registry: FakeRegistry, admission: Admission
) -> None:
    async with http.connect() as first, http.connect() as second:
        for connection in (first, second):
            registry.started.clear()
            await connection.send(post(b'{"id":"wait"}'))
            await registry.started.wait()
        answer = await http.post(b'{"id":"web-1"}')
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        assert answer.json()["code"] == "resource_exhausted"
        registry.release.set()
        assert [(await c.answer()).status for c in (first, second)] == [200, 200]
    assert (await http.post(b'{"id":"web-1"}')).status == 200
    assert admission.refused == {"max_calls": 1}


@limited(max_calls_per_peer_s=0.02)
async def test_a_peer_over_its_rate_is_told_when_to_come_again(http: RawHttp, admission: Admission) -> None:
    answers = [await http.post(b'{"id":"web-1"}') for _ in range(2)]
    assert [a.status for a in answers] == [200, 429]
    assert 40 <= int(answers[1].headers["retry-after"]) <= 50
    assert admission.refused == {"max_calls_per_peer_s": 1}


@limited(max_streams=1)
async def test_a_stream_too_many_ends_at_once(http: RawHttp, registry: FakeRegistry, admission: Admission) -> None:
    request = post(envelope(b'{"resumeToken":"quiet"}'), f"/{WATCH}", content_type="application/connect+json")
    async with http.connect() as first:
        await first.send(request)
        await registry.started.wait()
        async with http.connect() as second:
            await second.send(request)
            answer = await second.answer()
    assert answer.status == 200
    assert b'"code":"resource_exhausted"' in answer.body
    await asyncio.wait_for(registry.ended.wait(), 30)
    await eventually(lambda: admission.streams == 0)


@limited(max_connections=2)
async def test_a_connection_too_many_is_told_so_and_closed(http: RawHttp) -> None:
    async with http.connect() as first, http.connect() as second:
        for connection in (first, second):
            await connection.send(post(b'{"id":"web-1"}'))
            assert (await connection.answer()).status == 200
        async with http.connect() as third:
            assert (await third.answer()).status == 503
            assert await third.hung_up()
        await first.send(post(b'{"id":"web-1"}'))
        assert (await first.answer()).status == 200


@limited(max_response_bytes=10_000)
async def test_an_answer_too_large_is_an_error_and_no_successful_call(
    http: RawHttp, admission: Admission, shared: ServerContext
) -> None:
    answer = await http.post(b'{"id":"big:10001"}')
    assert (answer.status, answer.json()["code"]) == (413, "resource_exhausted")
    assert admission.refused == {"max_response_bytes": 1}
    calls = {code: count for (_, _, code), count in shared.traffic.calls().items() if count}
    assert calls == {"RESOURCE_EXHAUSTED": 1}


@limited(max_bodies_bytes=100 * KIB, slow_request_s=5)
async def test_bodies_under_way_are_bounded_all_together(http: RawHttp, admission: Admission) -> None:
    async with http.connect() as slow:
        await slow.send(post(b"", content_length="90000") + b" " * 80_000)
        while admission.bodies_bytes < 60_000:
            await asyncio.sleep(0.01)
        async with http.connect() as other:
            await other.send(post(b"", content_length="90000") + b" " * 80_000)
            assert (await other.answer()).status == 429
        assert (await http.post(b'{"id":"web-1"}')).status == 200


@limited(keep_alive_s=0.1)
@pytest.mark.long
async def test_an_idle_connection_is_closed(http: RawHttp) -> None:
    async with http.connect() as unused, http.connect() as used:
        await used.send(post(b'{"id":"web-1"}'))
        assert (await used.answer()).status == 200
        assert await asyncio.wait_for(used.hung_up(), 30)
        assert await asyncio.wait_for(unused.hung_up(), 30)


@pytest.mark.long
@limited(max_connection_age_s=2.0)
async def test_an_old_connection_is_ended_with_its_next_answer(http: RawHttp) -> None:
    async with asyncio.timeout(30), http.connect() as connection:
        await connection.send(post(b'{"id":"web-1"}'))
        answer = await connection.answer()
        assert "connection" not in answer.headers
        while "connection" not in answer.headers:
            await asyncio.sleep(0.1)
            await connection.send(post(b'{"id":"web-1"}'))
            answer = await connection.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await connection.hung_up()


@limited(max_stream_age_s=0.1)
async def test_an_old_stream_is_ended_to_be_resumed_elsewhere(http: RawHttp) -> None:
    body = envelope(b'{"resumeToken":"quiet"}')
    answer = await http.post(body, f"/{WATCH}", content_type="application/connect+json")
    assert answer.status == 200
    assert b'"code":"unavailable"' in answer.body
    assert b"reconnect to any replica" in answer.body


def _deaf(port: int) -> socket.socket:
    """A connection with little room for answers."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.connect(("127.0.0.1", port))
    return connection


@limited(stalled_write_s=0.3)
async def test_a_reader_that_does_not_read_is_cut_off(
    http_port: int, registry: FakeRegistry, admission: Admission
) -> None:
    with _deaf(http_port) as client:
        body = envelope(b'{"resumeToken":"endless"}')
        client.sendall(post(body, f"/{WATCH}", content_type="application/connect+json"))
        await asyncio.wait_for(registry.ended.wait(), 30)
    assert admission.refused == {"stalled_write_s": 1}


@limited(stalled_write_s=0.3, keep_alive_s=0.1)
async def test_a_large_answer_that_nobody_takes_is_dropped(http_port: int, http_server: Server) -> None:
    with _deaf(http_port) as client:
        client.sendall(post(b'{"id":"big:10000000"}'))
        await asyncio.sleep(0.1)
        while http_server._core.connections:
            await asyncio.sleep(0.05)


async def test_a_slow_reader_holds_the_stream_back(http: RawHttp, registry: FakeRegistry) -> None:
    body = envelope(b'{"resumeToken":"endless"}')
    async with http.connect() as connection:
        await connection.send(post(body, f"/{WATCH}", content_type="application/connect+json"))
        await eventually(lambda: registry.sent)
        sent = -1
        while registry.sent != sent:  # until the buffers are full
            sent = registry.sent
            await asyncio.sleep(0.3)
    assert 0 < sent < 2_000, "messages of 64 kB pile up somewhere"
    await asyncio.wait_for(registry.ended.wait(), 30)
