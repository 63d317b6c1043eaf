"""An answer that comes before the end of its request says whether the connection goes on, and keeps its word.

Clients that pool connections (Go's, among others) send the next request as soon as they have sent one and were
answered. Closed then without notice, that request is lost, and a POST is not repeated.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from serving.limiting.limits import KIB
from serving.transport.server import Server
from tests.support.certificates import Authority
from tests.wire.limited import limited
from tests.wire.raw_http import RawConnection, RawHttp, post, request_head

LIMIT = 64 * KIB
small = limited(max_request_bytes=LIMIT)
ANOTHER = post(b'{"id":"web-1"}')
AT_ONCE = {"content_type": "text/plain"}  # refused with 415 by the head alone


@pytest.fixture(params=["plain", "tls"])
async def http(request: pytest.FixtureRequest, http_server: Server, tmp_path: Path) -> RawHttp:
    if request.param == "plain":
        return RawHttp(await http_server.listen("127.0.0.1:0"))
    authority = Authority(tmp_path)
    own = authority.issue("server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.cert, own.key)
    port = await http_server.listen("127.0.0.1:0", lambda: context)
    return RawHttp(port, ssl.create_default_context(cafile=authority.cert))


def chunk(size: int) -> bytes:
    return b"%x\r\n%s\r\n" % (size, b" " * size)


async def goes_on(connection: RawConnection) -> bool:
    """Whether the connection serves one more request; else it must be closed in good order, without an answer to it."""
    await connection.send(ANOTHER)
    try:
        answer = await connection.answer()
    except EOFError:
        return False
    assert answer.status == 200
    return True


@small
async def test_after_a_request_in_chunks_that_was_refused_half_way_no_more_are_served(http: RawHttp) -> None:
    """Its rest may be longer than what is read and dropped: no client may count on the connection."""
    async with http.connect() as connection:
        await connection.send(request_head("POST", "/x", {"transfer-encoding": "chunked"}) + chunk(KIB))
        answer = await connection.answer()
        assert (answer.status, answer.headers.get("connection")) == (404, "close")
        await connection.send(chunk(LIMIT) + chunk(LIMIT) + b"0\r\n\r\n")
        assert await connection.hung_up()


@small
async def test_a_connection_stays_usable_after_an_early_answer_without_close(http: RawHttp) -> None:
    """Like Go's client: the unread rest of the body, its end, and the next request arrive together."""
    async with http.connect() as connection:
        await connection.send(request_head("POST", "/x", {"transfer-encoding": "chunked"}) + chunk(KIB))
        answer = await connection.answer()
        await connection.send(chunk(LIMIT) + chunk(LIMIT) + chunk(1) + chunk(1) + b"0\r\n\r\n")
        assert await goes_on(connection) or answer.headers.get("connection") == "close"


@small
async def test_the_answer_to_a_refused_request_is_not_lost_though_the_rest_of_the_request_comes(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(request_head("POST", "/x", {"transfer-encoding": "chunked"}) + chunk(KIB))
        for _ in range(3):
            await connection.send(chunk(LIMIT // 2))
        await connection.send(b"0\r\n\r\n")
        answer = await connection.answer()
        assert answer.status == 404
        assert await goes_on(connection) == (answer.headers.get("connection") != "close")


@small
async def test_a_request_of_known_length_is_read_to_its_end_and_the_connection_goes_on(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(post(b"", content_length=str(2 * LIMIT), **AT_ONCE))
        answer = await connection.answer()
        assert (answer.status, answer.headers.get("connection")) == (415, None)
        await connection.send(b" " * (2 * LIMIT))
        assert await goes_on(connection)


@small
async def test_a_request_too_long_to_be_read_for_nothing_is_the_last(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(post(b"", content_length=str(2 * LIMIT + 1), **AT_ONCE))
        answer = await connection.answer()
        assert (answer.status, answer.headers.get("connection")) == (415, "close")


@small
async def test_a_body_that_waits_for_100_continue_and_got_an_answer_instead_is_not_waited_for(http: RawHttp) -> None:
    """The client may leave it out, and send its next request where we would go on to read that body."""
    async with http.connect() as connection:
        await connection.send(post(b"", content_length="100", expect="100-continue", **AT_ONCE))
        answer = await connection.answer()
        assert (answer.status, answer.headers.get("connection")) == (415, "close")
        assert not await goes_on(connection)


@small
async def test_a_request_that_came_whole_is_followed_by_the_next_however_it_was_framed(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(request_head("POST", "/x", {"transfer-encoding": "chunked"}) + chunk(KIB) + b"0\r\n\r\n")
        answer = await connection.answer()
        assert (answer.status, answer.headers.get("connection")) == (404, None)
        assert await goes_on(connection)
