"""HTTP/1.1 by hand: what a client library would refuse to send, and answers down to their bytes."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.wire.fake_table import GET


@dataclass(frozen=True, slots=True)
class RawAnswer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        body = gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body
        return json.loads(body)


class RawHttp:
    """A maker of connections to one server."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.port, self._tls = port, tls

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[RawConnection]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24, ssl=self._tls)
        try:
            yield RawConnection(reader, writer)
        finally:
            writer.close()

    async def post(self, body: bytes, path: str = f"/{GET}", **headers: str) -> RawAnswer:
        """One POST on a connection of its own; header names with underscores, JSON unless said otherwise."""
        async with self.connect() as connection:
            await connection.send(post(body, path, **headers))
            return await connection.answer()

    async def get(self, path: str, method: str = "GET", **headers: str) -> RawAnswer:
        async with self.connect() as connection:
            await connection.send(request_head(method, path, headers))
            return await connection.answer(bodyless=method == "HEAD")


class RawConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, bodyless: bool = False) -> RawAnswer:
        """The next answer, read to its end."""
        status, headers = await self.head()
        if bodyless or status == 304:
            return RawAnswer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return RawAnswer(status, headers, await self._chunks())
        return RawAnswer(status, headers, await self.reader.readexactly(int(headers["content-length"])))

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the next answer."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split(" ")[1]), {name.lower(): value for name, value in pairs}

    async def chunk(self) -> bytes:
        """The next chunk of a body; empty: the last one."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def _chunks(self) -> bytes:
        body = b""
        while chunk := await self.chunk():
            body += chunk
        return body

    async def hung_up(self) -> bool:
        """Waits until the server hangs up."""
        try:
            while await self.reader.read(65_536):
                pass
        except ConnectionError:
            pass
        return True


def post(body: bytes, path: str = f"/{GET}", **headers: str) -> bytes:
    """The bytes of a POST."""
    defaults = {"content_type": "application/json", "content_length": str(len(body))}
    return request_head("POST", path, defaults | headers) + body


def request_head(method: str, path: str, headers: dict[str, str]) -> bytes:
    """The head of a request; header names with underscores."""
    lines = [f"{method} {path} HTTP/1.1", "host: localhost"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def still_answers(http: RawHttp) -> bool:
    return (await http.post(b'{"id":"web-1"}')).status == 200
