"""How the second command reaches a running demo: one line of JSON each way over a loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from hqclient.client import HqApiError
from store.embedded import EtcdFailed
from tools.demo.children import ChildFailed
from tools.demo.events import Events
from tools.demo.locations import Refused
from tools.demo.orders import Orders

_PORT_FILE = "orders.port"


class NoDemo(Exception):
    """No demo runs there."""


class Desk:
    """Takes orders, from keys and from the second command; what goes wrong is said and harms nobody."""

    def __init__(self, orders: Orders, events: Events) -> None:
        self._orders, self._events = orders, events
        self._tasks: set[asyncio.Task[tuple[bool, str]]] = set()

    def take(self, words: Sequence[str]) -> asyncio.Task[tuple[bool, str]]:
        """Begin to obey; the task's result is whether it was done, and what was or why not."""
        task = asyncio.create_task(self._obey(words))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Stop obeying."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _obey(self, words: Sequence[str]) -> tuple[bool, str]:
        try:
            return True, await self._orders.obey(words)
        except (Refused, ChildFailed, EtcdFailed, HqApiError, OSError) as error:
            self._events.say(f"not done: {error}")
            return False, str(error)


@contextlib.asynccontextmanager
async def listening(desk: Desk, directory: Path) -> AsyncIterator[None]:
    """Take orders of the second command; the directory tells it where."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            try:
                words = [str(word) for word in json.loads(await reader.readline())]
            except (ValueError, TypeError):
                return  # a stranger on our port
            writer.write(json.dumps(await desk.take(words)).encode() + b"\n")
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    (directory / _PORT_FILE).write_text(f"{port}\n")
    try:
        yield
    finally:
        server.close()
        await desk.close()


async def send(directory: Path, words: Sequence[str]) -> tuple[bool, str]:
    """Whether the order was carried out, and what was done or why not. Raises NoDemo."""
    try:
        port = int((directory / _PORT_FILE).read_text())
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except (OSError, ValueError):
        raise NoDemo(f"no demo runs in {directory}: start it with `make demo`, or name its --data") from None
    with contextlib.closing(writer):
        writer.write(json.dumps(list(words)).encode() + b"\n")
        answer = await reader.readline()
    if not answer:
        raise NoDemo("the demo ended before it answered")
    done, text = json.loads(answer)
    return bool(done), str(text)
