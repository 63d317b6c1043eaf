"""One call of a client: what the frames of its answer mean, by gRPC's rules. No I/O, no clock."""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote_to_bytes

from google.rpc import code_pb2 as codes  # type: ignore[import-untyped,unused-ignore]

from serving.encoding.envelopes import PREFIX
from serving.h2.frames import ErrorCode
from serving.h2.outgoing import Http2Stream
from serving.head import Head

Trailers = Sequence[tuple[bytes, bytes]]

# https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md: of answers that are not gRPC's.
_OF_HTTP: Final[Mapping[int, int]] = {
    400: codes.INTERNAL,
    401: codes.UNAUTHENTICATED,
    403: codes.PERMISSION_DENIED,
    404: codes.UNIMPLEMENTED,
    **dict.fromkeys((429, 502, 503, 504), codes.UNAVAILABLE),
}
# https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#errors; all others are codes.INTERNAL
_OF_RESET: Final[Mapping[int, int]] = {
    ErrorCode.REFUSED_STREAM: codes.UNAVAILABLE,
    ErrorCode.CANCEL: codes.CANCELLED,
    ErrorCode.ENHANCE_YOUR_CALM: codes.RESOURCE_EXHAUSTED,
    ErrorCode.INADEQUATE_SECURITY: codes.PERMISSION_DENIED,
}


class Options(NamedTuple):
    """The limits that a client sets its peers."""

    max_answer_bytes: int = 64 * 1024 * 1024  # of one message
    max_header_bytes: int = 32 * 1024
    window_bytes: int = 256 * 1024  # of the messages that lie unread in one stream
    connection_window_bytes: int = 4 * 1024 * 1024
    connect_timeout_s: float = 5.0
    first_backoff_s: float = 0.1  # between attempts to connect, while they fail
    max_backoff_s: float = 1.0
    ping_after_s: float = 10.0  # of silence while calls are under way
    ping_timeout_s: float = 10.0


class CallFailed(Exception):
    """A call has no answer; `message` says why, as the peer put it or as we do; `code` is gRPC's number.

    `is_unprocessed`: the peer surely did nothing for it, so that it may be sent again, or elsewhere.
    """

    def __init__(self, code: int, message: str, trailers: Trailers = (), *, is_unprocessed: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.trailers, self.is_unprocessed = code, message, trailers, is_unprocessed

    def binary(self, name: str) -> bytes:
        """The value of a trailer whose name ends in -bin; empty: it is not there, or not base64."""
        value = next((value for found, value in self.trailers if found == name.encode()), b"")
        try:
            return base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
        except binascii.Error:
            return b""


class Carrier(Protocol):
    """The connection, as its calls know it."""

    def leave(self, call: ClientCall) -> None: ...
    def acknowledge_bytes(self, call: ClientCall, size: int) -> None: ...


class ClientCall:
    """One request, and the messages that answer it, for one reader. While some wait, the window lets no more come."""

    def __init__(self, block: bytes, request: bytes, deadline: float | None, max_bytes: int) -> None:
        self.block = block  # the headers, but for the deadline; dropped once sent, as the body is
        self.body = PREFIX.pack(0, len(request)) + request
        self.connection: Carrier | None = None
        self.stream: Http2Stream | None = None  # None: it waits until the peer takes one more
        self.deadline = deadline  # on the loop's clock; None: it has none
        self.timer: asyncio.TimerHandle | None = None  # of the deadline
        self.is_over = False  # it has ended, or nobody waits for it any more
        self._held, self._max_bytes = bytearray(), max_bytes  # of a message that is not complete
        self._queue: deque[bytes] = deque()
        self._owed = 0  # bytes that came, and were not given back
        self._error: BaseException | None = None
        self.waiter: asyncio.Future[None] | None = None  # done when something has come, or it has ended

    def head(self, head: Head, *, end: bool) -> None:
        """Take the headers of the answer; if they end it, they are its trailers, too."""
        kind = head.named.get(b"content-type", b"")
        is_grpc = kind == b"application/grpc" or kind.startswith((b"application/grpc+", b"application/grpc;"))
        if is_grpc and end and b"grpc-status" in head.named:
            self.trailers(head.fields)
        elif not is_grpc or head.status != 200 or end:
            kind = head.named.get(b"content-type", b"of no type")[:100]
            words = f"the response is not gRPC: HTTP status {head.status}, {kind.decode('latin-1')}"
            self.end(CallFailed(_OF_HTTP.get(head.status, codes.UNKNOWN), words, head.fields))

    def data(self, chunk: bytes, *, end: bool) -> int:
        """Take more of its messages; return the bytes to give back, as `free` does."""
        size = len(chunk) - PREFIX.size
        if not self._held and 0 <= size <= self._max_bytes and PREFIX.unpack_from(chunk) == (0, size):
            self._message(chunk[PREFIX.size :])  # almost always
        else:
            self._take(chunk)
        if end:
            self.trailers(())
        return self.free(len(chunk))

    def trailers(self, fields: Trailers) -> None:
        """End the answer by its trailers, which hold the status."""
        named = dict(fields)
        status = named.get(b"grpc-status")
        if status == b"0" and self._held:
            self.end(CallFailed(codes.INTERNAL, "the response ends in the middle of a message"))
        elif status == b"0":
            self.end(StopAsyncIteration())
        elif status is None:
            self.end(CallFailed(codes.UNKNOWN, "the response ended without a status", fields))
        else:
            code = int(status) if status.isdigit() and len(status) < 3 else codes.UNKNOWN
            text = unquote_to_bytes(named.get(b"grpc-message", b"")).decode("utf-8", "replace")
            self.end(CallFailed(code if code <= codes.UNAUTHENTICATED else codes.UNKNOWN, text, fields))

    def reset(self, code: int, *, is_late: bool) -> None:
        """End the call: the peer, or a fault of it, has ended the stream before its time."""
        name = ErrorCode(code).name if code in ErrorCode.__members__.values() else str(code)
        status = _OF_RESET.get(code, codes.INTERNAL)
        if is_late and code == ErrorCode.CANCEL:
            status = codes.DEADLINE_EXCEEDED
        is_refused = code == ErrorCode.REFUSED_STREAM
        self.end(CallFailed(status, f"the stream was reset: {name}", is_unprocessed=is_refused))

    def end(self, error: CallFailed | StopAsyncIteration) -> None:
        """End the call like this, unless it has ended already."""
        if self.is_over:
            return
        self.is_over, self._error = True, error
        self.block = self.body = b""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self._wake()

    def free(self, size: int) -> int:
        """Release so many bytes: the peer may send as many more."""
        self._owed += size
        if self._queue:
            return 0
        freed, self._owed = self._owed, 0
        return freed

    def __aiter__(self) -> ClientCall:
        return self

    async def __anext__(self) -> bytes:
        """The next message, in order. Raises CallFailed."""
        while not self._queue:
            if self._error is not None:
                raise self._error.with_traceback(None)
            await self._wait_for_change()
        message = self._queue.popleft()
        if self.connection is not None:
            self.connection.acknowledge_bytes(self, self.free(0))
        return message

    def leave(self) -> None:
        """Cancel the call at the server; a waiting reader gets the error."""
        if self.connection is not None:
            self.connection.leave(self)

    async def only(self) -> bytes:
        """The one message of an answer that has ended. Raises CallFailed."""
        while not self.is_over and len(self._queue) < 2:
            await self._wait_for_change()
        if isinstance(self._error, CallFailed):
            raise self._error
        if not self._queue:
            raise CallFailed(codes.INTERNAL, "the call ended with OK, but without a response")
        if len(self._queue) > 1:
            raise CallFailed(codes.INTERNAL, "more than one response to a unary call")
        return self._queue[0]

    def _wait_for_change(self) -> asyncio.Future[None]:
        self.waiter = asyncio.get_running_loop().create_future()
        return self.waiter

    def _message(self, message: bytes) -> None:
        self._queue.append(message)
        self._wake()

    def _wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def _take(self, chunk: bytes) -> None:
        held, at = self._held, 0
        held += chunk
        while len(held) - at >= PREFIX.size and not self.is_over:
            flags, size = PREFIX.unpack_from(held, at)
            start, at_next = at + PREFIX.size, at + PREFIX.size + size
            if flags:
                text = "a message is malformed, or compressed without having been asked for"
                self.end(CallFailed(codes.INTERNAL, text))
            elif size > self._max_bytes:
                text = f"a message of {size} bytes is over the limit of {self._max_bytes}"
                self.end(CallFailed(codes.RESOURCE_EXHAUSTED, text))
            elif at_next > len(held):
                break
            else:
                self._message(bytes(memoryview(held)[start:at_next]))
                at = at_next
        del held[: len(held) if self.is_over else at]


def unsent(text: str, code: int = codes.UNAVAILABLE) -> CallFailed:
    """The error of a call that was not begun."""
    return CallFailed(code, text, is_unprocessed=True)


def timeout_text(left_s: float) -> bytes:
    """The timeout in the format of grpc-timeout: at most eight digits, rounded up."""
    for unit, per_s in ((b"u", 1e6), (b"m", 1e3), (b"S", 1.0)):
        number = math.ceil(max(left_s, 0.0) * per_s)
        if number < 100_000_000:
            return b"%d" % max(number, 1) + unit
    return b"99999999S"
