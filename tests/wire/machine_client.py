"""Calls over HTTP/2 by our own machine as a client, whose headers the library `hpack` writes with a table that moves.

The table fills, evicts, and is resized now and then; some fields are never indexed; blocks may come in small pieces.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple, cast

import hpack as library

from serving.encoding.envelopes import Envelopes, envelope
from serving.h2 import state
from serving.h2.frames import ErrorCode
from serving.h2.machine import Http2Machine
from serving.h2.outgoing import Http2Stream
from serving.h2.state import Http2Settings

_SIZES: Final = (0, 64, 100, 300, 1_000, 2_000, 4_096, 4_096, 4_096)  # of the table
_ROOM: Final = 1 << 24
_MOST_ANSWER: Final = 1 << 24
Pairs = list[tuple[str, str]]


class Reply(NamedTuple):
    """How a call ended. `ended`: "" well; "reset" or "lost" otherwise. `fields`: headers, then trailers."""

    fields: Pairs
    messages: list[bytes]
    ended: str = ""


class _Called:
    def __init__(self, done: asyncio.Future[Reply]) -> None:
        self.done = done
        self.fields: Pairs = []
        self.body = Envelopes(_MOST_ANSWER)
        self.messages: list[bytes] = []

    def end(self, how: str = "") -> None:
        if not self.done.done():
            self.done.set_result(Reply(self.fields, self.messages, how))


class MachineClient(asyncio.Protocol):
    """One connection.

    `is_lost`: it is no more; `why`: what the server, or our own machine, said; `is_dropped`: by us.

    Attributes:
        reads: keeps what comes, and opens windows for more.
    """

    def __init__(self, rng: Random, *, piece_bytes: int = 16_384) -> None:
        """`piece_bytes`: the most of a frame; header blocks beyond it are continued."""
        self._rng, self._encoder = rng, library.Encoder()
        self._machine = Http2Machine(Http2Settings(), is_client=True)
        self._machine.outgoing.max_frame = piece_bytes
        self._piece_bytes = piece_bytes
        self._transport: asyncio.Transport | None = None
        self.is_lost = self.is_dropped = False
        self.reads = True
        self.why = ""

    def call(
        self, path: str, authority: str, fields: Pairs, message: bytes
    ) -> tuple[Http2Stream, asyncio.Future[Reply]]:
        """Begin a call; a stream for `reset`, and what comes of it."""
        called = _Called(asyncio.get_running_loop().create_future())
        machine = self._machine
        if self.is_lost:
            called.end("lost")
            return Http2Stream(0, 0, 0), called.done
        stream = machine.open(self._block(path, authority, fields), end=False)
        stream.owner = called
        machine.outgoing.room = _ROOM
        machine.outgoing.data(stream, envelope(0, message), end=True)
        self._flush()
        return stream, called.done

    def reset(self, stream: Http2Stream) -> None:
        """Leave a call alone."""
        if stream.id in self._machine.streams:
            self._machine.reset(stream, ErrorCode.CANCEL)
            self._flush()
        if stream.owner is not None:
            stream.owner.end("reset")

    def drop(self) -> None:
        """Hang up without a word."""
        self.is_dropped = True
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _block(self, path: str, authority: str, fields: Pairs) -> bytes:
        rng, encoder = self._rng, self._encoder
        if rng.random() < 0.1:
            for _ in range(rng.randrange(1, 3)):
                size = rng.choice(_SIZES)
                if size != encoder.header_table_size:  # hpack 4.2 forgets to say a change if the same one follows it
                    encoder.header_table_size = size
        pseudo = [(":method", "POST"), (":scheme", "http"), (":path", f"/{path}"), (":authority", authority)]
        every = [*pseudo, ("te", "trailers"), ("content-type", "application/grpc"), *fields]
        kinds: Sequence[Any] = (library.HeaderTuple, library.NeverIndexedHeaderTuple)[: 1 + (rng.random() < 0.2)]
        marked = [rng.choice(kinds)(name, value) for name, value in every]
        return bytes(encoder.encode(marked, huffman=rng.random() < 0.5))

    def _flush(self) -> None:
        machine = self._machine
        machine.outgoing.room = _ROOM
        machine.pump()
        if machine.outgoing.frames and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(machine.outgoing.take()))

    # --- what comes ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._flush()

    def data_received(self, data: bytes) -> None:
        machine = self._machine
        machine.receive(data)
        events = machine.events()
        while machine.is_behind:
            events += machine.events()
        machine.outgoing.max_frame = self._piece_bytes  # whatever they allow
        for kind, stream, what, end in events:
            if kind in (state.FAILED, state.GOAWAY):
                self.why += f"{what} "
            if stream is not None and stream.owner is not None:
                self._take(stream, kind, what, end=end)
        self._flush()

    def _take(self, stream: Http2Stream, kind: int, what: Any, *, end: bool) -> None:
        called: _Called = stream.owner
        if kind == state.HEADERS:
            called.fields += _text(what.fields)
        elif kind == state.TRAILERS:
            called.fields += _text(what)
        elif kind == state.DATA and self.reads:
            called.messages += [message for _, message in called.body.take(what, end=False)]
            self._machine.acknowledge_bytes(stream, len(what))
        if kind == state.RESET or end:
            called.end("reset" if kind == state.RESET else "")

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.why += repr(exc)
        for stream in [*self._machine.streams.values()]:
            if stream.owner is not None:
                stream.owner.end("lost")


def _text(fields: Sequence[tuple[bytes, bytes]]) -> Pairs:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]


async def connected(
    port: int, rng: Random, tls: ssl.SSLContext | None = None, *, piece_bytes: int = 16_384
) -> MachineClient:
    """A new connection to this machine; with TLS the context must offer h2."""
    loop = asyncio.get_running_loop()
    host = "localhost" if tls is not None else None
    _, client = await loop.create_connection(
        lambda: MachineClient(rng, piece_bytes=piece_bytes), "127.0.0.1", port, ssl=tls, server_hostname=host
    )
    return client
