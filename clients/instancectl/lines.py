"""Talk over a local socket: one JSON value a line, each way."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MAX_LINE_BYTES = 1 << 20

Talk = Callable[["Line"], Awaitable[None]]


class Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> Any:
        """The next value; None: the other side ended, or does not speak like us."""
        try:
            text = await self._reader.readline()
            return json.loads(text) if text else None
        except (OSError, ValueError):
            return None

    def send(self, value: Any) -> None:
        self._writer.write(json.dumps(value).encode() + b"\n")

    async def drained(self) -> None:
        """Raises OSError: the other side is gone."""
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


async def serve(path: Path, talk: Talk) -> asyncio.Server:
    """Listen at `path`, for the same user only. Each connection is closed when `talk` returns. Raises OSError."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        try:
            await talk(line)
        except OSError:
            pass  # the other side went away
        finally:
            await line.close()

    path.unlink(missing_ok=True)
    with _reachable(path) as short:
        server = await asyncio.start_unix_server(connected, short, limit=MAX_LINE_BYTES)
    path.chmod(0o600)
    return server


async def connect(path: Path) -> Line:
    """Raises OSError."""
    with _reachable(path) as short:
        return Line(*await asyncio.open_unix_connection(short, limit=MAX_LINE_BYTES))


@contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """A name for `path` that is short enough for a socket (108 bytes), however deep it lies."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
