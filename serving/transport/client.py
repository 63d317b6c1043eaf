"""A gRPC client for requests and answers that stay encoded: one connection is kept, and made anew when it must be.

    channel = Channel("hq-1:7071", None)
    answer = await channel.unary("/hq.v1.InstanceService/GetInstance", request, 5.0)
    async for message in channel.stream("/hq.v1.InstanceService/WatchInstances", request): ...

It repeats nothing: a call that failed says whether it may have been carried out.
"""

from __future__ import annotations

import asyncio
import random
import re
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from serving.h2 import hpack
from serving.transport.client_call import (
    DEADLINE_EXCEEDED,
    INTERNAL,
    UNAVAILABLE,
    CallFailed,
    Options,
    StreamingCall,
    UnaryCall,
)
from serving.transport.client_connection import ClientConnection

__all__ = ["CallFailed", "Channel", "Messages", "Metadata", "Options"]

Metadata = Sequence[tuple[str, str | bytes]]
"""Names in lower case; values in bytes where the name ends in -bin, else printable ASCII."""

_NAME: Final = re.compile(r"[0-9a-z_.-]+")
_VALUE: Final = re.compile(r"[ -~]*")
_GROWTH, _JITTER = 1.6, 0.2  # of the wait between attempts to connect
_KEPT: Final = 256


_DEFAULTS: Final = Options()


class Channel:
    """Calls to one server. Its calls raise CallFailed; those that are cancelled are cancelled at the server, too.

    Must be used inside one event loop.
    """

    def __init__(
        self, address: str, tls: Callable[[], ssl.SSLContext] | None = None, options: Options = _DEFAULTS
    ) -> None:
        """`address`: host:port or unix:PATH. `tls`: asked for a context of its own at each attempt to connect."""
        self.address, self._tls, self._options = address, tls, options
        is_unix = address.startswith("unix:")
        self._host = "localhost" if is_unix else address.rpartition(":")[0].strip("[]")
        self._authority = "localhost" if is_unix else address
        self._current: ClientConnection | None = None
        self._connections: set[ClientConnection] = set()
        self._attempt: asyncio.Task[ClientConnection] | None = None
        self._failures, self._retry_at, self._failure = 0, 0.0, ""
        self._paths: dict[str, bytes] = {}
        self._is_closed = False
        self._connecting, self._all_connected = 0, asyncio.Event()  # calls that wait for a connection

    # --- calls ---

    async def unary(self, path: str, request: bytes, timeout_s: float | None, metadata: Metadata = ()) -> bytes:
        """The one answer, within so many seconds, connecting included."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        block = self._block(path, metadata)
        connection = self._current or await self._connected(deadline)
        answer: asyncio.Future[bytes] = loop.create_future()
        call = UnaryCall(answer, block, request, deadline, self._options.max_answer_bytes)
        connection.start(call)
        try:
            return await answer
        except asyncio.CancelledError:
            connection.leave(call)
            if not answer.cancelled():
                answer.exception()  # it came together with the cancellation, and is nobody's now
            raise

    def stream(self, path: str, request: bytes, metadata: Metadata = (), timeout_s: float | None = None) -> Messages:
        """All answers, as they come. The call begins when the first one is asked for; `leave` it before its end."""
        return Messages(self, path, request, metadata, timeout_s)

    async def begin(
        self, path: str, request: bytes, metadata: Metadata, timeout_s: float | None
    ) -> tuple[ClientConnection, StreamingCall]:
        """Start a call with any number of answers; for `Messages`."""
        deadline = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        block = self._block(path, metadata)
        connection = self._current or await self._connected(deadline)
        call = StreamingCall(block, request, deadline, self._options.max_answer_bytes)
        connection.start(call)
        return connection, call

    async def close(self, grace_s: float = 0.0) -> None:
        """Start no more calls, give those under way so many seconds, then end them."""
        self._is_closed = True
        try:
            if grace_s > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(grace_s):
                        await self._finish()
        finally:
            attempt, ends = self._attempt, [connection.lost for connection in self._connections]
            if attempt is not None:
                attempt.cancel()
            for connection in [*self._connections]:
                connection.abort("closed by the client")
        await asyncio.gather(*ends, *([attempt] if attempt is not None else ()), return_exceptions=True)

    async def _finish(self) -> None:
        if self._connecting:
            self._all_connected.clear()
            await self._all_connected.wait()
        for connection in [*self._connections]:
            connection.retire()
        if ends := [connection.lost for connection in self._connections]:
            await asyncio.wait(ends)

    # --- connecting ---

    async def _connected(self, deadline: float | None) -> ClientConnection:
        loop = asyncio.get_running_loop()
        if self._is_closed:
            raise _unsent(f"the connection to {self.address} is closed")
        if self._attempt is None:
            if loop.time() < self._retry_at:
                raise _unsent(self._failure)
            self._attempt = loop.create_task(self._connect(), name=f"connect {self.address}")
            self._attempt.add_done_callback(self._attempted)
        self._connecting += 1
        try:
            async with asyncio.timeout_at(deadline):
                # Shielded: others wait for the same connection.
                connection = await asyncio.shield(self._attempt)
        except TimeoutError:
            text = f"{self.address} did not accept the connection in time"
            raise CallFailed(DEADLINE_EXCEEDED, text, is_unprocessed=True) from None
        except CallFailed as error:  # a new one for each that waits
            raise _unsent(error.message) from None
        finally:
            self._connecting -= 1
            if not self._connecting:
                self._all_connected.set()
        if not connection.is_usable:
            raise _unsent(f"{self.address} accepts no calls")
        return connection

    async def _connect(self) -> ClientConnection:
        connection = ClientConnection(self.address, self._options, self._retired)
        self._connections.add(connection)
        connection.lost.add_done_callback(lambda _: self._connections.discard(connection))
        try:
            async with asyncio.timeout(self._options.connect_timeout_s):
                await self._dial(connection)
                reason = await connection.ready
        except TimeoutError:
            reason = "no response in time"
        except (OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
        except asyncio.CancelledError:  # only `close` does
            reason = "closed by the client"
        if reason:
            connection.abort(reason)
            self._failed(f"cannot connect to {self.address}: {reason}")
            raise _unsent(self._failure)
        self._current = connection
        return connection

    async def _dial(self, connection: ClientConnection) -> None:
        loop, context, name = asyncio.get_running_loop(), None, None
        if self._tls is not None:
            context, name = self._tls(), self._host
            context.set_alpn_protocols(["h2"])
        if self.address.startswith("unix:"):
            path = self.address.removeprefix("unix:")
            await loop.create_unix_connection(lambda: connection, path, ssl=context, server_hostname=name)
        else:
            port = int(self.address.rpartition(":")[2])
            await loop.create_connection(lambda: connection, self._host, port, ssl=context, server_hostname=name)

    def _attempted(self, attempt: asyncio.Task[ClientConnection]) -> None:
        self._attempt = None
        if not attempt.cancelled():
            attempt.exception()  # nobody may be left to hear of it

    def _retired(self, connection: ClientConnection) -> None:
        if self._current is connection:
            self._current = None
            if connection.has_answered:
                self._failures, self._retry_at = 0, 0.0
            else:  # as good as none: whoever hangs up on everybody is not asked in a hurry
                self._failed(f"{self.address} closed the connection at once")

    def _failed(self, text: str) -> None:
        options = self._options
        backoff_s = min(options.max_backoff_s, options.first_backoff_s * _GROWTH ** min(self._failures, 30))
        self._failures += 1
        self._failure = text
        jitter = 1.0 + _JITTER * (2.0 * random.random() - 1.0)
        self._retry_at = asyncio.get_running_loop().time() + backoff_s * jitter

    # --- headers ---

    def _block(self, path: str, metadata: Metadata) -> bytes:
        block = self._paths.get(path)
        if block is None:
            if len(self._paths) >= _KEPT:
                self._paths.clear()
            fields = [
                (":method", "POST"),
                (":scheme", "http" if self._tls is None else "https"),
                (":path", path),
                (":authority", self._authority),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", "hq"),
                ("grpc-accept-encoding", "identity"),
            ]
            block = self._paths[path] = hpack.encode([(name.encode(), value.encode()) for name, value in fields])
        if not metadata:
            return block
        return block + b"".join([_encoded(name, value) for name, value in metadata])


class Messages(AsyncIterator[bytes]):
    """The answers of one call, for one reader."""

    def __init__(
        self, channel: Channel, path: str, request: bytes, metadata: Metadata, timeout_s: float | None
    ) -> None:
        self._channel, self._asked = channel, (path, request, metadata, timeout_s)
        self._begun: tuple[ClientConnection, StreamingCall] | None = None
        self._is_left = False

    async def __anext__(self) -> bytes:
        if self._begun is None:
            if self._is_left:
                raise _unsent("the call was abandoned before it began")
            self._begun = await self._channel.begin(*self._asked)
        connection, call = self._begun
        if self._is_left:
            self.leave()
        message = await call.next()
        connection.consumed(call, call.free(0))
        return message

    def leave(self) -> None:
        """Want no more: the call is cancelled at the server, and a reader who waits is told so."""
        self._is_left = True
        if self._begun is not None:
            connection, call = self._begun
            connection.leave(call)


def _unsent(text: str) -> CallFailed:
    return CallFailed(UNAVAILABLE, text, is_unprocessed=True)


@lru_cache(_KEPT)
def _encoded(name: str, value: str | bytes) -> bytes:
    """As it is sent: the same goes to several servers, and much of it with many calls. Raises CallFailed."""
    text = b64encode(value).rstrip(b"=").decode() if isinstance(value, bytes) else value.strip(" ")
    if not _NAME.fullmatch(name) or name.endswith("-bin") != isinstance(value, bytes) or not _VALUE.fullmatch(text):
        raise CallFailed(INTERNAL, f"the metadata {name[:100]!r} cannot be sent", is_unprocessed=True)
    return hpack.encode([(name.encode(), text.encode())])
