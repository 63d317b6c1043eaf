"""Somebody who is a burden, in a process of its own: `python -m tests.bench.abuser KIND HOST:PORT TOKEN`.

It goes on until it is killed. Whatever it is told, it tries again at once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

import uvloop

from hqpb.v1 import service_pb2
from serving.transport.client import CallFailed, Channel
from tests.bench.stand import SERVICE

_PATH: Final = "/hq.v1.InstanceService/FindInstances"
_CHUNK: Final = b"%x\r\n%s\r\n" % (1 << 16, b" " * (1 << 16))
_PAUSE_S: Final = 0.5
WATCHES: Final = "watches"
_CHANNELS, _WATCHES = 8, 16  # and so many on each


def _head(token: str, framing: str) -> bytes:
    words = f"POST {_PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{words}authorization: Bearer {token}\r\n{framing}\r\n\r\n".encode()


async def idle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """Say nothing, until the server has enough of it."""
    await reader.read()


async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """A body that comes byte by byte."""
    writer.write(_head(token, "content-length: 100000"))
    while not writer.is_closing() and not reader.at_eof():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(_PAUSE_S)


async def oversize(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """A body without end, as fast as it goes."""
    writer.write(_head(token, "transfer-encoding: chunked"))
    while not writer.is_closing():
        writer.write(_CHUNK)
        await writer.drain()


async def watches(address: str, token: str) -> None:
    """Watches over gRPC, each left for the next one as soon as it says something."""
    request = service_pb2.WatchInstancesRequest(filter={"service_id": ["filler-00001"]}).SerializeToString()
    channel = Channel(address)

    async def again() -> None:
        while True:
            watch = channel.stream(f"/{SERVICE}/WatchInstances", request, (("authorization", f"Bearer {token}"),))
            try:
                async for _ in watch:
                    break
            except CallFailed:
                await asyncio.sleep(0)
            finally:
                watch.leave()

    await asyncio.gather(*(again() for _ in range(_WATCHES)))


Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Awaitable[None]]
KINDS: Final[Mapping[str, tuple[Act, int]]] = {
    "connections": (idle, 1_000),
    "slow": (slow, 300),
    "oversize": (oversize, 8),
}


async def abuse(kind: str, address: str, token: str) -> None:
    """All at once, for ever."""
    if kind == WATCHES:
        await asyncio.gather(*(watches(address, token) for _ in range(_CHANNELS)))
    act, count = KINDS[kind]
    host, _, port = address.rpartition(":")

    async def again() -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(host, int(port))
                try:
                    await act(reader, writer, token)
                finally:
                    writer.close()
            await asyncio.sleep(0.01)

    await asyncio.gather(*(again() for _ in range(count)))


if __name__ == "__main__":
    uvloop.run(abuse(*sys.argv[1:]))
