"""One request of an HTTP/1.1 connection as an exchange."""

from __future__ import annotations

from typing import Final, Protocol

from serving.h1.machine import Begun
from serving.transport.connection import Core
from serving.transport.exchange import AnswerHead, Exchange, Fields, Peer, with_extra

_NO_BODY: Final = (204, 304)


class Side(Protocol):
    """The connection, as its exchanges know it.

    Attributes:
        max_unwanted_bytes: so much of a request is read, and dropped, after it was answered.
        has_whole_requests: no request has begun whose end has not arrived.
    """

    core: Core
    peer: Peer
    is_paused: bool
    max_unwanted_bytes: int

    @property
    def has_whole_requests(self) -> bool: ...
    def put(self, parts: list[bytes]) -> None: ...
    def over(self, exchange: H1Exchange) -> None: ...
    def abort(self) -> None: ...


class H1Exchange(Exchange):
    """One request; its answer has a length, or comes in chunks."""

    _is_chunked = is_received = is_continued = False
    ends_connection = False  # at once, without the rest of the request

    def __init__(self, side: Side, begun: Begun) -> None:
        self.head, self.peer, self._side, self._begun = begun.head, side.peer, side, begun
        self.keeps_alive = begun.keep_alive

    def answer(self, head: AnswerHead, body: bytes, trailers: Fields | bytes | None = None, lead: bytes = b"") -> None:
        if self.is_over:
            return
        self.is_over = self.sent_any = True
        side = self._side
        length = b"" if head.status in _NO_BODY else b"content-length: %d\r\n" % (len(lead) + len(body))
        if self.head.method == b"HEAD":
            lead = body = b""
        side.put([with_extra(head, self.extra).lines, side.core.date_line, length, self._ending(), lead, body])
        side.over(self)

    def begin(self, head: AnswerHead) -> None:
        if self.is_over:
            return
        self.sent_any = True
        self._is_chunked = not self._begun.is_old
        self.ends_connection = self._begun.is_old  # nothing else tells where the answer ends
        self.keeps_alive = self.keeps_alive and self._is_chunked
        chunked = b"transfer-encoding: chunked\r\n" if self._is_chunked else b""
        self._side.put([with_extra(head, self.extra).lines, self._side.core.date_line, chunked, self._ending()])

    def send(self, chunk: bytes) -> None:
        if self.is_over or not chunk:
            return
        self._side.put([b"%x\r\n" % len(chunk), chunk, b"\r\n"] if self._is_chunked else [chunk])

    def finish(self, trailers: Fields | None = None) -> None:
        if not self.is_over:
            self.is_over = True
            if self._is_chunked:
                self._side.put([b"0\r\n\r\n"])
            self._side.over(self)

    def abort(self) -> None:
        self.is_over = True
        self._side.abort()

    @property
    def is_waiting(self) -> bool:
        return self._side.is_paused

    def _ending(self) -> bytes:
        # Whoever is answered before the end of its request may send another one behind it, unless told otherwise.
        self.keeps_alive = self.keeps_alive and (self.is_received or self._rest_will_be_read())
        return b"\r\n" if self.keeps_alive else b"connection: close\r\n\r\n"

    def _rest_will_be_read(self) -> bool:
        """The rest of the request is here already, or it will come and is not too long to be read for nothing."""
        if self._side.has_whole_requests:
            return True
        named = self.head.named
        size = int(named.get(b"content-length", b"0"))
        is_held_back = size > 0 and self._begun.expects_continue and not self.is_continued
        return not is_held_back and b"transfer-encoding" not in named and size <= self._side.max_unwanted_bytes
