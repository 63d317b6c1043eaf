"""An HTTP/2 server by hand, which does to its clients what a test wants done to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from serving.h2 import frames, hpack
from serving.h2.frames import END_HEADERS, END_STREAM, frame
from serving.transport.client import Channel
from serving.transport.client_call import CallFailed, Options

OK_HEAD = [(":status", "200"), ("content-type", "application/grpc")]
OK = [("grpc-status", "0")]
PATH = "/t.T/Get"
_DEFAULTS = Options()


class RawPeer:
    """The server's side of one connection.

    Attributes:
        seen: all frames that came: kind, flags, stream, payload.
        answers_pings: as every server does.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.seen: list[tuple[int, int, int, bytes]] = []
        self.answers_pings = True

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()

    def greet(self, settings: dict[int, int] | None = None) -> None:
        """The first frame of every server."""
        self.write(frames.settings(settings or {}))

    async def next(self) -> tuple[int, int, int, bytes]:
        """The next frame. Raises IncompleteReadError: there are no more."""
        if not self.seen:
            await self._reader.readexactly(len(frames.PREFACE))
        high, low, kind, flags, stream_id = frames.FRAME.unpack(await self._reader.readexactly(9))
        self.seen.append((kind, flags, stream_id, await self._reader.readexactly(high << 8 | low)))
        if kind == frames.PING and not flags & frames.ACK and self.answers_pings:
            self.write(frame(frames.PING, frames.ACK, 0, self.seen[-1][3]))
        return self.seen[-1]

    async def until(self, kind: int, flags: int = 0) -> tuple[int, bytes]:
        """The stream and the payload of the next frame of this kind, with these flags."""
        while True:
            found = await self.next()
            if found[0] == kind and found[1] & flags == flags:
                return found[2], found[3]

    async def request(self) -> int:
        """The stream of the next request, which is complete."""
        return (await self.until(frames.DATA, END_STREAM))[0]

    async def rest(self) -> None:
        """Read on until the client hangs up."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await self.next()

    def headers(self, stream: int, fields: list[tuple[str, str]], flags: int = 0) -> None:
        block = hpack.encode([(name.encode(), value.encode()) for name, value in fields])
        parts = [block[start : start + 16_384] for start in range(0, len(block) or 1, 16_384)]
        for number, part in enumerate(parts, 1):
            kind = frames.HEADERS if number == 1 else frames.CONTINUATION
            own = flags if number == 1 else 0
            self.write(frame(kind, own | (END_HEADERS if number == len(parts) else 0), stream, part))

    def data(self, stream: int, data: bytes, flags: int = 0) -> None:
        self.write(frame(frames.DATA, flags, stream, data))

    def message(self, stream: int, payload: bytes) -> None:
        self.data(stream, b"\0" + len(payload).to_bytes(4, "big") + payload)

    def answer(self, stream: int, payload: bytes) -> None:
        """All that a good server says."""
        self.headers(stream, OK_HEAD)
        self.message(stream, payload)
        self.headers(stream, OK, END_STREAM)


Script = Callable[[RawPeer], Awaitable[None]]


@asynccontextmanager
async def raw_server(*scripts: Script) -> AsyncIterator[str]:
    """The address of a server that follows the first script on its first connection, and so on; the last repeats.

    What a script asserts in vain fails the test.
    """
    tasks: set[asyncio.Task[None]] = set()
    left, failures = list(scripts), list[AssertionError]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = left.pop(0) if len(left) > 1 else left[0]
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await script(RawPeer(reader, writer))
        except AssertionError as error:
            failures.append(error)
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in [*tasks]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert not failures, failures


async def failure(address: str, options: Options = _DEFAULTS, timeout_s: float = 5.0) -> CallFailed:
    """How a call ends there."""
    channel = Channel(address, None, options)
    try:
        async with asyncio.timeout(20):
            with pytest.raises(CallFailed) as raised:
                await channel.unary(PATH, b"?", timeout_s)
    finally:
        await channel.close()
    assert not channel._connections
    return raised.value
