"""Requests that are sent before the one ahead of them is answered."""

from __future__ import annotations

import asyncio

import pytest

from serving.h1.machine import HEAD
from serving.limiting.admission import Admission
from serving.transport.h1_side import H1Side
from serving.transport.server import Server
from tests.wire.fake_table import FakeRegistry
from tests.wire.limited import limited
from tests.wire.raw_http import RawConnection, RawHttp, post, still_answers

SMALL = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n"


def waiting(server: Server) -> int:
    """How many requests wait on the only connection."""
    heads = [
        [kind for kind, _, _ in one._events].count(HEAD) for one in server._core.connections if isinstance(one, H1Side)
    ]
    return max(heads, default=0)


async def test_nothing_more_is_read_while_requests_wait(
    http: RawHttp, http_server: Server, registry: FakeRegistry
) -> None:
    most = 0

    async def answers(connection: RawConnection) -> None:
        for _ in range(61):
            assert (await connection.answer()).status == 200

    async with http.connect() as connection, asyncio.timeout(30):
        await connection.send(post(b'{"id":"wait"}') + SMALL * 30)
        await registry.started.wait()
        await connection.send(SMALL * 30)
        registry.release.set()
        reading = asyncio.create_task(answers(connection))
        while not reading.done():
            most = max(most, waiting(http_server))
            await asyncio.sleep(0)
        await reading
    assert most == 30


async def test_hundreds_of_requests_at_once_are_too_many_for_one_connection(
    http: RawHttp, admission: Admission
) -> None:
    async with http.connect() as connection:
        await connection.send(post(b'{"id":"wait"}') + SMALL * 1_000)
        async with asyncio.timeout(30):
            assert await connection.hung_up()
    assert admission.refused["malformed_http"] == 1
    assert await still_answers(http)


@limited(slow_request_s=5.0)
@pytest.mark.long
async def test_a_request_that_waits_for_the_one_ahead_is_not_slow_and_does_not_get_its_answer(
    http: RawHttp, registry: FakeRegistry, admission: Admission
) -> None:
    async with http.connect() as connection:
        await connection.send(post(b'{"id":"wait"}') + post(b'{"id":"web-2"}')[:-3])
        await registry.started.wait()
        await asyncio.sleep(6.0)  # longer than a request may take
        registry.release.set()
        assert (await connection.answer()).json() == {"instance": {"meta": {"id": "wait"}}}
        await connection.send(b'2"}')
        assert (await connection.answer()).json() == {"instance": {"meta": {"id": "web-2"}}}
    assert admission.refused["slow_request_s"] == 0
