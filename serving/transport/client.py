"""A gRPC client for requests and answers that stay encoded: one connection is kept, and replaced when it must be.

    channel = Channel("hq-1:7071", None)
    answer = await channel.unary("/hq.v1.InstanceService/GetInstance", request, 5.0)
    async for message in channel.stream("/hq.v1.InstanceService/WatchInstances", request): ...

It repeats nothing: a call that failed says whether it may have been carried out.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, cast

from google.rpc import code_pb2 as codes  # type: ignore[import-untyped,unused-ignore]

from serving.h2 import hpack
from serving.transport.client_call import CallFailed, ClientCall, Options, unsent
from serving.transport.client_connection import ClientConnection

__all__ = ["CallFailed", "Channel", "ClientCall", "Metadata", "Options"]

Metadata = Sequence[tuple[str, str | bytes]]
"""Names in lower case; values in bytes where the name ends in -bin, else printable ASCII."""

_NAME: Final = re.compile(r"[0-9a-z_.-]+")
_VALUE: Final = re.compile(r"[ -~]*")
_GROWTH, _JITTER = 1.6, 0.2  # of the wait between attempts to connect
_DRAIN_S: Final = 30.0  # for calls on a connection whose credentials are old
_DEFAULTS: Final = Options()


class Channel:
    """Calls to one server, in one event loop. They raise CallFailed; a cancelled one is cancelled at the server."""

    def __init__(
        self,
        address: str,
        tls: Callable[[], ssl.SSLContext] | None = None,
        options: Options = _DEFAULTS,
        version: Callable[[], int] = int,
    ) -> None:
        """`address`: host:port or unix:PATH. `tls`: asked for a context of its own at each attempt to connect.

        `version`: another number when there are new credentials: then the next call makes a connection with them.
        """
        self.address, self._tls, self._options, self._version = address, tls, options, version
        self._made_with = version()
        self._is_unix = address.startswith("unix:")
        self._current: ClientConnection | None = None
        self._connections: dict[ClientConnection, asyncio.Task[None]] = {}  # and what makes each of them
        self._failures, self._retry_at, self._failure = 0, 0.0, ""
        self._is_closed = False

    async def unary(self, path: str, request: bytes, timeout_s: float | None, metadata: Metadata = ()) -> bytes:
        """The one answer, within so many seconds, connecting included."""
        call = self.stream(path, request, metadata, timeout_s)
        try:
            return await call.only()
        finally:
            call.leave()

    def stream(self, path: str, request: bytes, metadata: Metadata = (), timeout_s: float | None = None) -> ClientCall:
        """All answers, as they come; an error at once comes with the first of them. `leave` it before its end."""
        deadline = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        call = ClientCall(b"", request, deadline, self._options.max_answer_bytes)
        try:
            common = _common(path, "localhost" if self._is_unix else self.address, self._tls is not None)
            call.block = b"".join([common, *[_encode_header(name, value) for name, value in metadata]])
            self._connection().start(call)
        except CallFailed as error:
            call.end(error)
        return call

    async def close(self, grace_s: float = 0.0) -> None:
        """Start no more calls, give those under way so many seconds, then end them."""
        self._is_closed = True
        ends = [connection.lost for connection in self._connections]
        try:
            for connection in [*self._connections]:
                connection.retire()
            if ends and grace_s > 0:
                await asyncio.wait(ends, timeout=grace_s)
        finally:
            for connection in [*self._connections]:
                connection.abort("closed by the client")
        if ends:
            await asyncio.wait(ends)

    def _connection(self) -> ClientConnection:
        """The connection that takes calls, which wait in it while it is being made."""
        loop = asyncio.get_running_loop()
        if self._version() != self._made_with:
            self._made_with = self._version()
            for connection in [*self._connections]:
                connection.retire()
                loop.call_later(_DRAIN_S, connection.abort, "its credentials are old")
            self._failures, self._retry_at = 0, 0.0
        if self._current is not None:
            return self._current
        if self._is_closed:
            raise unsent(f"the connection to {self.address} is closed")
        if loop.time() < self._retry_at:
            raise unsent(self._failure)
        connection = self._current = ClientConnection(self.address, self._options, self._retire_connection)
        self._connections[connection] = loop.create_task(self._dial(connection), name=f"connect {self.address}")
        connection.lost.add_done_callback(lambda _: self._connections.pop(connection).cancel())
        return connection

    async def _dial(self, connection: ClientConnection) -> None:
        loop, context, name = asyncio.get_running_loop(), None, None
        protocol = cast("asyncio.Protocol", connection)
        host, _, port = self.address.rpartition(":")
        try:
            if self._tls is not None:
                context, name = self._tls(), "localhost" if self._is_unix else host.strip("[]")
                context.set_alpn_protocols(["h2"])
            if self._is_unix:
                path = self.address.removeprefix("unix:")
                await loop.create_unix_connection(lambda: protocol, path, ssl=context, server_hostname=name)
            else:
                where = host.strip("[]"), int(port)
                await loop.create_connection(lambda: protocol, *where, ssl=context, server_hostname=name)
        except (OSError, ValueError) as error:
            connection.abort(_reason(error))

    def _retire_connection(self, connection: ClientConnection, reason: str) -> None:
        if self._current is not connection:
            return
        self._current = None
        if connection.has_answered:
            self._failures, self._retry_at = 0, 0.0
            return
        # As bad as no connection: a server that hangs up without an answer is not asked again in a hurry.
        self._failure = reason or f"{self.address} closed the connection at once"
        options = self._options
        backoff_s = min(options.max_backoff_s, options.first_backoff_s * _GROWTH ** min(self._failures, 30))
        self._failures += 1
        self._retry_at = asyncio.get_running_loop().time() + backoff_s * random.uniform(1 - _JITTER, 1 + _JITTER)


@lru_cache(4_096)
def _common(path: str, authority: str, is_secure: bool) -> bytes:
    """The headers that all calls of a method to one server have."""
    fields = {
        ":method": "POST",
        ":scheme": "https" if is_secure else "http",
        ":path": path,
        ":authority": authority,
        "te": "trailers",
        "content-type": "application/grpc",
        "user-agent": "hq",
        "grpc-accept-encoding": "identity",
    }
    return hpack.encode([(name.encode(), value.encode()) for name, value in fields.items()])


@lru_cache(256)
def _encode_header(name: str, value: str | bytes) -> bytes:
    """Encode headers once; they go to several servers, and most of them with many calls. Raises CallFailed."""
    text = b64encode(value).rstrip(b"=").decode() if isinstance(value, bytes) else value.strip(" ")
    if not _NAME.fullmatch(name) or name.endswith("-bin") != isinstance(value, bytes) or not _VALUE.fullmatch(text):
        raise unsent(f"the metadata {name[:100]!r} cannot be sent", codes.INTERNAL)
    return hpack.encode([(name.encode(), text.encode())])


def _reason(error: Exception) -> str:
    """Why connecting failed, in the system's words for errno; errors of TLS and name look-ups have their own words."""
    if isinstance(error, ssl.SSLError | socket.gaierror):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
