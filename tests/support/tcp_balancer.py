"""A balancer of connections, as it stands before two gateways: each in turn, the next one where nobody listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import cycle


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def tcp_balancer(addresses: Sequence[str]) -> AsyncIterator[str]:
    """Yield the address, host:port, at which it listens until the end of the block."""
    turns = cycle(addresses)
    serving = set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            for host, _, port in (next(turns).rpartition(":") for _ in addresses):
                with suppress(OSError):
                    below, above = await asyncio.open_connection(host, int(port))
                    await asyncio.gather(_copy(reader, above), _copy(below, writer))
                    break
        finally:
            writer.close()
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
