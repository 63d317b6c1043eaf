"""What is no HTTP, or is ambiguous, endless or broken off: refused, and the server goes on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from serving.limiting.admission import Admission
from serving.limiting.limits import KIB, Limits
from tests.support.sample_instances import eventually
from tests.wire.fake_table import GET
from tests.wire.limited import limited
from tests.wire.raw_http import RawHttp, post, still_answers

MAX_BODY = 64 * KIB
LIMITS = replace(Limits(), max_request_bytes=MAX_BODY, max_header_bytes=8 * KIB)


@pytest.fixture
def limits() -> Limits:
    return LIMITS


SMUGGLED = {
    "content-length and transfer-encoding": b"content-length: 4\r\ntransfer-encoding: chunked\r\n",
    "transfer-encoding and content-length": b"transfer-encoding: chunked\r\ncontent-length: 4\r\n",
    "two lengths": b"content-length: 4\r\ncontent-length: 5\r\n",
    "a signed length": b"content-length: +4\r\n",
    "a length in words": b"content-length: four\r\n",
    "a huge length": b"content-length: 99999999999999999999999\r\n",
    "a space before the colon": b"content-length : 4\r\n",
    "a disguised encoding": b"transfer-encoding: xchunked\r\n",
    "a bare line feed": b"content-length: 4\nx: y\r\n",
    "a folded header": b"x: y\r\n z\r\ncontent-length: 4\r\n",
    "a zero byte": b"x: a\0b\r\ncontent-length: 4\r\n",
}


@pytest.mark.parametrize("name", SMUGGLED)
async def test_ambiguous_framing_is_refused_and_the_connection_closed(http: RawHttp, name: str) -> None:
    head = f"POST /{GET} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n".encode()
    async with http.connect() as connection:
        await connection.send(head + SMUGGLED[name] + b"\r\n{}\r\n0\r\n\r\nGET /livez HTTP/1.1\r\n\r\n")
        answer = await connection.answer()
        assert (answer.status, answer.json()["code"]) == (400, "invalid_argument")
        assert await connection.hung_up()
    assert await still_answers(http)


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00", b"\0" * 100, b"GET\r\n\r\n"])
async def test_what_is_not_http_is_refused(http: RawHttp, garbage: bytes) -> None:
    async with http.connect() as connection:
        await connection.send(garbage)
        assert (await connection.answer()).status == 400
    assert await still_answers(http)


async def test_an_offer_to_upgrade_is_ignored(http: RawHttp) -> None:
    for protocol in ("h2c", "websocket"):
        answer = await http.get("/livez", connection="upgrade", upgrade=protocol)
        assert answer.status == 200


async def test_an_offer_to_upgrade_with_a_body_is_refused(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"web-1"}', connection="upgrade", upgrade="h2c")
    assert answer.status == 400
    assert "send no Upgrade" in answer.json()["message"]
    assert await still_answers(http)


@pytest.mark.parametrize("lines", [[b"x: " + b"a" * 9_000], [b"x%d: a" % n for n in range(1_500)]])
async def test_headers_too_large_are_refused(http: RawHttp, lines: list[bytes]) -> None:
    async with http.connect() as connection:
        await connection.send(b"GET /livez HTTP/1.1\r\n" + b"\r\n".join(lines) + b"\r\n\r\n")
        assert (await connection.answer()).status == 431
        assert await connection.hung_up()


async def test_headers_without_end_are_refused(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(b"GET /livez HTTP/1.1\r\n")
        for _ in range(10):
            await connection.send(b"x: " + b"a" * 997 + b"\r\n")
        assert (await connection.answer()).status == 431


async def test_a_large_body_behind_small_headers_is_no_large_header(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"' + b"a" * 30_000 + b'"}')
    assert answer.status == 200


@limited(slow_request_s=0.3)
@pytest.mark.parametrize("part", [b"POST /", post(b'{"id":"web-1"}')[:-3]])
async def test_a_request_that_does_not_arrive_is_given_up(http: RawHttp, admission: Admission, part: bytes) -> None:
    async with http.connect() as connection:
        await connection.send(part)
        answer = await connection.answer()
        assert (answer.status, answer.json()["code"]) == (408, "deadline_exceeded")
        assert await connection.hung_up()
    assert admission.refused["slow_request_s"] == 1
    assert await still_answers(http)


@limited(slow_request_s=0.3)
async def test_a_request_that_drips_is_given_up(http: RawHttp) -> None:
    async with http.connect() as connection:

        async def drip() -> None:
            for byte in post(b'{"id":"web-1"}'):
                await connection.send(bytes([byte]))
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        assert (await connection.answer()).status == 408
        dripping.cancel()


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_forgotten(http: RawHttp, admission: Admission) -> None:
    async with http.connect() as connection:
        await connection.send(post(b"", content_length="1000") + b"x" * 10)
    assert await still_answers(http)
    await eventually(lambda: (admission.bodies_bytes, admission.calls) == (0, 0))


@pytest.mark.long
async def test_a_body_without_end_is_read_no_further_than_its_refusal_and_a_little(http: RawHttp) -> None:
    head = f"POST /{GET} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    sent_bytes = 0
    async with http.connect() as connection:
        await connection.send(head.encode())
        try:
            while sent_bytes < (1 << 30):
                await connection.send(chunk)
                sent_bytes += len(chunk)
        except ConnectionError:
            pass
    assert sent_bytes < 32 << 20  # what the system's own buffers take, on both sides
    assert await still_answers(http)


async def test_a_client_refused_early_may_finish_its_body_and_continue(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(
            f"POST /nowhere/Nothing HTTP/1.1\r\nhost: x\r\ncontent-length: {MAX_BODY}\r\n\r\n".encode()
        )
        assert (await connection.answer()).status == 404
        await connection.send(b"x" * MAX_BODY)
        await connection.send(post(b"{}"))
        assert (await connection.answer()).status in (200, 400, 404)
