"""One stream of an HTTP/2 connection as an exchange."""

from __future__ import annotations

from typing import Protocol

from serving.h2 import hpack
from serving.h2.frames import ErrorCode
from serving.h2.machine import Http2Machine
from serving.h2.outgoing import Http2Stream
from serving.head import Head
from serving.limiting.peers import Peer
from serving.transport.exchange import AnswerHead, Exchange, Fields, with_extra


class Side(Protocol):
    """The connection, as its exchanges know it."""

    machine: Http2Machine
    peer: Peer

    def over(self, exchange: Exchange) -> None: ...
    def flush_soon(self) -> None: ...


class H2Exchange(Exchange):
    is_h2 = True

    def __init__(self, side: Side, stream: Http2Stream, head: Head) -> None:
        self.head, self.peer, self._side, self._stream = head, side.peer, side, stream

    def answer(self, head: AnswerHead, body: bytes, trailers: bytes = b"", lead: bytes = b"") -> None:
        if self.is_over:
            return
        self.is_over = self.sent_any = True
        if self.extra:
            head = with_extra(head, self.extra)
        side, stream = self._side, self._stream
        out = side.machine.outgoing
        if trailers:
            out.answer(stream, head.block, body, trailers, lead)
        else:
            is_bare = not body or self.head.method == b"HEAD"
            block = head.block if not body else head.block + hpack.encode([(b"content-length", b"%d" % len(body))])
            out.headers(stream, block, end=is_bare)
            if not is_bare:
                out.data(stream, body, end=True)
        side.over(self)

    def begin(self, head: AnswerHead) -> None:
        if not self.is_over:
            self.sent_any = True
            self._side.machine.outgoing.headers(self._stream, with_extra(head, self.extra).block, end=False)
            self._side.flush_soon()

    def send(self, chunk: bytes) -> None:
        if not self.is_over:
            self._side.machine.outgoing.data(self._stream, chunk)
            self._side.flush_soon()

    def finish(self, trailers: Fields | None = None) -> None:
        if not self.is_over:
            self.is_over = True
            out = self._side.machine.outgoing
            if trailers is None:
                out.data(self._stream, b"", end=True)
            else:
                out.trailers(self._stream, hpack.encode(trailers))
            self._side.over(self)

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._side.machine.reset(self._stream, ErrorCode.INTERNAL_ERROR)
            self._side.over(self)

    def acknowledge_bytes(self, size: int) -> None:
        machine = self._side.machine
        machine.acknowledge_bytes(self._stream, size)
        if machine.outgoing.frames:
            self._side.flush_soon()

    @property
    def is_waiting(self) -> bool:
        return self._stream.queued > 0

    @property
    def most_trailer_bytes(self) -> int:
        return self._side.machine.outgoing.most_header_bytes
