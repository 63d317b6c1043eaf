"""Connections of a TLS listener count from the moment they are accepted, and may not take for ever to shake hands."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from serving.transport import arrival
from serving.transport.server import Server
from tests.support.certificates import Authority
from tests.support.sample_instances import eventually
from tests.wire.limited import limited
from tests.wire.raw_http import RawHttp, post

FEW = 3


@pytest.fixture
async def https(http_server: Server, tmp_path: Path) -> RawHttp:
    authority = Authority(tmp_path)
    own = authority.issue("server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.cert, own.key)
    port = await http_server.listen("127.0.0.1:0", lambda: context)
    return RawHttp(port, ssl.create_default_context(cafile=authority.cert))


@pytest.fixture
async def silent(https: RawHttp, http_server: Server) -> AsyncIterator[list[socket.socket]]:
    """Open as many connections as there may be, and send nothing; the server has accepted them."""
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", https.port), timeout=30)) for _ in range(FEW)]
    await eventually(lambda: http_server._core.accepted == 0)


@pytest.mark.parametrize(
    "limits", [mark.args[1][0] for mark in (limited(max_connections=FEW), limited(max_connections_per_peer=FEW))]
)
async def test_connections_that_do_not_shake_hands_take_places(
    https: RawHttp, silent: list[socket.socket], http_server: Server
) -> None:
    await eventually(lambda: http_server._core.accepted == FEW)
    async with https.connect() as one_more:
        assert (await one_more.answer()).status == 503
    silent[0].close()
    await eventually(lambda: http_server._core.accepted == FEW - 1)
    assert (await https.post(b'{"id":"web-1"}')).status == 200


@limited(slow_request_s=0.2)
async def test_connections_that_do_not_shake_hands_in_time_are_closed(
    silent: list[socket.socket], http_server: Server
) -> None:
    for one in silent:
        assert await asyncio.to_thread(one.recv, 1) == b""
    await eventually(lambda: http_server._core.accepted == 0)


@limited(max_connections=FEW)
async def test_a_crowd_of_connections_beyond_the_limits_is_closed_at_once(
    https: RawHttp, silent: list[socket.socket], http_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "_MAX_SURPLUS", 0)
    await eventually(lambda: http_server._core.accepted == FEW)
    with pytest.raises(OSError):  # noqa: PT011  a reset or an end, as the system has it
        await https.post(b'{"id":"web-1"}')
    assert http_server._core.admission.refused == {"max_connections": 1}


async def test_a_handshake_that_fails_gives_its_place_back(https: RawHttp, http_server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", https.port)
    writer.write(post(b"{}"))
    with suppress(ConnectionError):
        await reader.read()
    writer.close()
    await eventually(lambda: http_server._core.accepted == 0)
    assert (await https.post(b'{"id":"web-1"}')).status == 200


async def test_a_connection_that_shook_hands_is_counted_once(https: RawHttp, http_server: Server) -> None:
    async with https.connect() as connection:
        await connection.send(post(b'{"id":"web-1"}'))
        assert (await connection.answer()).status == 200
        assert http_server._core.accepted == 1
    await eventually(lambda: http_server._core.accepted == 0)


async def test_without_file_descriptors_the_listener_waits_and_goes_on(
    https: RawHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "_RETRY_S", 0.05)
    failing = iter([OSError(errno.EMFILE, "too many open files")])
    accept = socket.socket.accept

    def sometimes(sock: socket.socket) -> tuple[socket.socket, object]:
        if (error := next(failing, None)) is not None:
            raise error
        return accept(sock)

    monkeypatch.setattr(socket.socket, "accept", sometimes)
    assert (await https.post(b'{"id":"web-1"}')).status == 200


async def test_a_server_that_stops_breaks_handshakes_off(silent: list[socket.socket], http_server: Server) -> None:
    await eventually(lambda: http_server._core.accepted == FEW)
    await http_server.stop(0.0)
    for one in silent:
        assert await asyncio.to_thread(one.recv, 1) == b""
