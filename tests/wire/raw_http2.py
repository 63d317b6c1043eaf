"""HTTP/2 by hand, as far as a test needs it: a client whose window is shut, so that it takes no byte of any answer."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_DATA, _HEADERS, _SETTINGS, _PING = 0, 1, 4, 6
_ACK = 1


class ShutWindow:
    """One connection that sends gRPC requests and takes no answer."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer, self._next_id = writer, 1

    async def call(self, path: str, message: bytes) -> None:
        """Send one request, whole."""
        headers = {":method": "POST", ":scheme": "http", ":path": f"/{path}", ":authority": "x"}
        headers |= {"te": "trailers", "content-type": "application/grpc"}
        block = b"".join(_literal(name.encode(), value.encode()) for name, value in headers.items())
        body = struct.pack(">BI", 0, len(message)) + message
        self._writer.write(_frame(_HEADERS, 4, self._next_id, block) + _frame(_DATA, 1, self._next_id, body))
        self._next_id += 2
        await self._writer.drain()


@asynccontextmanager
async def shut_window(port: int) -> AsyncIterator[ShutWindow]:
    """A connection; what the server asks of it beside is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    window_of_nothing = struct.pack(">HI", 4, 0)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, window_of_nothing))
    answering = asyncio.create_task(_answer(reader, writer))
    try:
        yield ShutWindow(writer)
    finally:
        answering.cancel()
        with suppress(asyncio.CancelledError):
            await answering
        writer.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        head = await reader.readexactly(9)
        payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
        kind, flags = head[3], head[4]
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            writer.write(_frame(kind, _ACK, 0, payload if kind == _PING else b""))


def _frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream_id) + payload


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value
