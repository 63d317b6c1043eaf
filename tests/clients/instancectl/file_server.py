"""An HTTP server of files, in this process, that counts what it is asked."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from types import TracebackType


class FileServer:
    """Serves `content` by path, those in `silent` never. `asked` lists every path asked for."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.hangs = False
        self.silent: set[str] = set()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Future[None]] = set()

    def add(self, path: str, content: bytes) -> tuple[str, str]:
        """Serve something more; its address and checksum."""
        self.content[path] = content
        return f"{self.url}{path}", f"sha256:{hashlib.sha256(content).hexdigest()}"

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.ensure_future(self._answer(reader, writer)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split()[1].decode()
            self.asked.append(path)
            while self.hangs or path in self.silent:
                await asyncio.sleep(0.05)
            body = self.content.get(path)
            status = "200 OK" if body is not None else "404 Not Found"
            body = body or b""
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode())
            writer.write(body)
            await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def __aenter__(self) -> FileServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self.hangs = False
        self.silent.clear()
        self._server.close()
        await asyncio.gather(*self._serving)
