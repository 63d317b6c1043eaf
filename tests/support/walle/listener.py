"""A server that answers as a test says, and keeps all that it was sent."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Listener:
    """Attributes:
    address: HOST:PORT.
    heard: the head of each request, in the order of connections.
    written: how many bytes of an endless answer could be sent.
    """

    address: str = ""
    heard: list[str] = field(default_factory=list)
    connections: int = 0
    written: int = 0


def answer(status: int = 200, body: bytes = b"{}", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def listening(
    reply: bytes = answer(), endless: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Listener]:
    """`endless`: sent again and again behind the reply, until the caller hangs up."""
    made = Listener()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError):
            made.heard.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(reply)
            while endless:
                writer.write(endless)
                await writer.drain()
                made.written += len(endless)
            await writer.drain()
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()[:2]
    made.address = f"{host}:{port}"
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()
