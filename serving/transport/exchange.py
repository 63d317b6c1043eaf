"""One request and the way to answer it, whichever HTTP it came over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property, lru_cache
from http import HTTPStatus
from typing import Final

from serving.calls.methods import Push, never_pushed
from serving.h2 import hpack
from serving.head import Head
from serving.limiting.peers import Peer

Fields = Sequence[tuple[bytes, bytes]]

_PHRASES: Final = {status.value: status.phrase.encode() for status in HTTPStatus}


class AnswerHead:
    """Status and headers of an answer, encoded once for each HTTP: those that repeat are made when a server starts."""

    def __init__(self, status: int, fields: Fields) -> None:
        self.status, self.fields = status, fields
        self.block = hpack.encode([(b":status", b"%d" % status), *fields])  # for HTTP/2

    @cached_property
    def lines(self) -> bytes:
        """Header lines of HTTP/1.1, without the empty line after them."""
        first = b"HTTP/1.1 %d %s\r\n" % (self.status, _PHRASES.get(self.status, b""))
        return first + b"".join([name + b": " + value + b"\r\n" for name, value in self.fields])


@lru_cache(64)
def ok_head(media: bytes) -> AnswerHead:
    """The head of nearly all answers."""
    return AnswerHead(200, [(b"content-type", media)])


def with_extra(head: AnswerHead, extra: Fields) -> AnswerHead:
    return AnswerHead(head.status, [*head.fields, *extra]) if extra else head


class Handler:
    """Serves one exchange. This one ignores all that happens to it. None of its methods raises."""

    def data(self, chunk: bytes, *, end: bool) -> None:
        """Take more of the body; each chunk is given back by `Exchange.acknowledge_bytes`."""

    def on_request_timeout(self) -> None:
        """The request has not arrived in time."""

    def on_peer_gone(self) -> None:
        """The client no longer waits for the answer."""

    def pusher(self) -> Push:
        """Sends one more answer of a stream, in protobuf, while it waits for its next."""
        return never_pushed

    def expire(self) -> None:
        """The server ends, or the connection is too old: end with an error that says so."""


NO_HANDLER: Final = Handler()


class Exchange:
    """A request that has begun. What is said to one whose peer has left goes nowhere."""

    is_h2 = False  # it came over HTTP/2, so that trailers can be sent
    sent_any = False  # the answer has begun
    is_over = False  # the answer is complete, or nobody waits for it
    handler: Handler = NO_HANDLER
    extra: Fields = ()  # headers of every answer, whoever gives it
    _drained: asyncio.Future[None] | None = None

    def __init__(self, head: Head, peer: Peer) -> None:
        self.head, self.peer = head, peer

    def answer(self, head: AnswerHead, body: bytes, trailers: bytes = b"", lead: bytes = b"") -> None:
        """Send all of the answer. Over HTTP/2 `lead` comes before the body, and `trailers`, a block, behind it."""

    def begin(self, head: AnswerHead) -> None:
        """Send the head of an answer whose body comes in pieces."""

    def send(self, chunk: bytes) -> None:
        """Send a piece of the body; `wait_until_drained` says when the next one may come."""

    def finish(self, trailers: Fields | None = None) -> None:
        """End the body."""

    def abort(self) -> None:
        """Break the answer off: it cannot be ended well any more."""

    def acknowledge_bytes(self, size: int) -> None:
        """Release so many bytes of the body."""

    @property
    def is_waiting(self) -> bool:
        """Whether part of the answer has not left yet."""
        raise NotImplementedError

    @property
    def most_trailer_bytes(self) -> int:
        """The peer's limit on the size of a header list; 0: it set none."""
        return 0

    async def wait_until_drained(self) -> None:
        """Return when what was sent has left, so that one message of a stream waits at a time."""
        while self.is_waiting and not self.is_over:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained

    def receive(self, chunk: bytes, *, end: bool) -> None:
        """Hand more of the body to the handler, or drop it if there is none: the request was refused."""
        if self.handler is not NO_HANDLER:
            self.handler.data(chunk, end=end)
        else:
            self.acknowledge_bytes(len(chunk))

    def wake(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def leave(self) -> None:
        """End the exchange: the client no longer waits for the answer."""
        handler, self.handler = self.handler, NO_HANDLER
        if not self.is_over:
            self.is_over = True
            handler.on_peer_gone()
        self.wake()
