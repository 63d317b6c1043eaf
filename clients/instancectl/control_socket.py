"""The local socket at which a supervisor is asked: one JSON value a line each way."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MAX_LINE_BYTES = 1 << 20
Talk = Callable[["ControlConnection"], Awaitable[None]]
_AGAIN_S = 0.2


class ControlConnection:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> Any:
        """The next value; None: the other side closed the connection, or does not speak this protocol."""
        try:
            text = await self._reader.readline()
            return json.loads(text) if text else None
        except (OSError, ValueError):
            return None

    def send(self, value: Any) -> None:
        self._writer.write(json.dumps(value).encode() + b"\n")

    async def drain(self) -> None:
        """Raises OSError: the other side is gone."""
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


async def serve(path: Path, talk: Talk) -> asyncio.Server:
    """Listen at `path`, for the same user only. Each connection is closed when `talk` returns. Raises OSError."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = ControlConnection(reader, writer)
        try:
            await talk(line)
        except OSError:
            pass  # the other side is gone
        finally:
            await line.close()

    path.unlink(missing_ok=True)
    with _reachable(path) as short:
        server = await asyncio.start_unix_server(on_connection, short, limit=MAX_LINE_BYTES)
    path.chmod(0o600)
    return server


async def connect(path: Path) -> ControlConnection:
    """Raises OSError."""
    with _reachable(path) as short:
        return ControlConnection(*await asyncio.open_unix_connection(short, limit=MAX_LINE_BYTES))


@contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """A name for `path` that is short enough for a socket (108 bytes), however deep the directory is."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


class ControlServer:
    """Answers questions on one connection after the other."""

    def __init__(self, answers: dict[str, Callable[[], Any]]) -> None:
        self._answers = answers

    async def talk(self, line: ControlConnection) -> None:
        while (question := await line.receive()) is not None:
            answer = self._answers.get(question.get("kind", "") if isinstance(question, dict) else "")
            line.send(answer() if answer else {"error": "known requests: " + ", ".join(sorted(self._answers))})
            await line.drain()


async def ask(socket: Path, kind: str) -> Any:
    """One question to a supervisor; None: it ended instead of answering. Raises OSError."""
    line = await connect(socket)
    try:
        line.send({"kind": kind})
        await line.drain()
        return await line.receive()
    finally:
        await line.close()


async def ask_until(asking: Callable[[], Awaitable[Any]], is_good: Callable[[Any], bool], wait_s: float) -> Any:
    """Ask until the answer is good or the time is up; return the last answer. None: nobody answered."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + wait_s
    while True:
        try:
            answer = await asking()
        except OSError:
            answer = None
        if loop.time() >= ends or (answer is not None and is_good(answer)):
            return answer
        await asyncio.sleep(_AGAIN_S)
