"""Complete answers go to the socket in one piece, and only where nothing stands against it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from serving.http.asgi import write_complete

HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"2")]


class Socket(asyncio.Transport):
    """Remembers what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True


class Flow:
    """uvicorn's, as far as it is asked."""

    write_paused = False


def cycle(
    socket: Socket, answered: list[str], *, method: str = "POST", keep_alive: bool = True
) -> RequestResponseCycle:
    log = logging.getLogger(__name__)
    return RequestResponseCycle(
        scope={"method": method},  # type: ignore[typeddict-item]
        transport=socket,
        flow=Flow(),  # type: ignore[arg-type]
        logger=log,
        access_logger=log,
        access_log=False,
        default_headers=[(b"date", b"today")],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=lambda: answered.append("answered"),
    )


def test_head_and_body_are_one_write() -> None:
    socket, answered = Socket(), list[str]()
    made = cycle(socket, answered)
    assert write_complete(made.send, HEADERS, b"{}")
    (written,) = socket.writes
    head, _, body = written.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0].startswith(b"HTTP/1.1 200")
    assert lines[1:] == [b"date: today", b"content-type: application/json", b"content-length: 2"]
    assert body == b"{}"
    assert made.response_complete
    assert answered == ["answered"]
    assert not socket.closed


def test_a_connection_that_is_not_kept_is_closed_and_told_so() -> None:
    socket = Socket()
    assert write_complete(cycle(socket, [], keep_alive=False).send, HEADERS, b"{}")
    assert b"\r\nconnection: close\r\n\r\n{}" in socket.writes[0]
    assert socket.closed


def test_nothing_is_written_where_it_cannot_be_whole() -> None:
    async def send(_: Any) -> None:
        raise AssertionError

    socket, answered = Socket(), list[str]()
    head, started, gone, slow = (cycle(socket, answered, method=m) for m in ("HEAD", "POST", "POST", "POST"))
    started.response_started = True
    gone.disconnected = True
    slow.flow.write_paused = True
    for refused in (head.send, started.send, gone.send, slow.send, send):
        assert not write_complete(refused, HEADERS, b"{}")
    assert socket.writes == []
    assert answered == []
