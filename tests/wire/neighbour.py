"""A well-behaved client beside an abuser: it has another address, and each of its calls must succeed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from grpc import aio

from tests.wire.grpc_client import Client
from tests.wire.raw_http import RawConnection, post

ADDRESS = "127.0.0.2"  # also this machine
_PAUSE_S = 0.005
_ENOUGH = 20
_PATIENCE_S = 30.0


class Neighbour:
    """Counts its calls; the first failure ends it."""

    def __init__(self, grpc_port: int, http_port: int) -> None:
        self._grpc_port, self._http_port = grpc_port, http_port
        self.calls = {"grpc": 0, "http": 0}

    async def over_grpc(self) -> None:
        async with _relay(self._grpc_port) as port, aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            client = Client(channel)
            while True:
                assert (await client.get("web-1", timeout=_PATIENCE_S)).instance.meta.id == "web-1"
                self.calls["grpc"] += 1
                await asyncio.sleep(_PAUSE_S)

    async def over_http(self) -> None:
        while True:
            connected = await asyncio.open_connection("127.0.0.1", self._http_port, local_addr=(ADDRESS, 0))
            connection = RawConnection(*connected)
            try:
                await self._until_told_to_close(connection)
            finally:
                connection.writer.close()

    async def _until_told_to_close(self, connection: RawConnection) -> None:
        is_open = True
        while is_open:
            await connection.send(post(b'{"id":"web-1"}'))
            answer = await connection.answer()
            assert answer.status == 200
            self.calls["http"] += 1
            is_open = answer.headers.get("connection") != "close"
            await asyncio.sleep(_PAUSE_S)


@asynccontextmanager
async def beside(grpc_port: int, http_port: int) -> AsyncIterator[Neighbour]:
    """A neighbour that calls from before the abuse until some time after it."""
    neighbour = Neighbour(grpc_port, http_port)
    await _own_address()
    running = [asyncio.create_task(neighbour.over_grpc()), asyncio.create_task(neighbour.over_http())]
    try:
        await _more_calls(neighbour, running)
        yield neighbour
        await _more_calls(neighbour, running)
    finally:
        for task in running:
            task.cancel()
        done = await asyncio.gather(*running, return_exceptions=True)
    failed = [error for error in done if not isinstance(error, asyncio.CancelledError)]
    assert not failed, f"a call of a well-behaved client failed: {failed}"


async def _more_calls(neighbour: Neighbour, running: list[asyncio.Task[None]]) -> None:
    goal = {transport: calls + _ENOUGH for transport, calls in neighbour.calls.items()}
    async with asyncio.timeout(_PATIENCE_S):
        while any(neighbour.calls[t] < calls for t, calls in goal.items()) and not any(t.done() for t in running):
            await asyncio.sleep(0.01)


@asynccontextmanager
async def _relay(to_port: int) -> AsyncIterator[int]:
    """Gives gRPC, which cannot be told an address to call from, the neighbour's address."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", to_port, local_addr=(ADDRESS, 0))
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def _own_address() -> None:
    try:
        server = await asyncio.start_server(lambda *_: None, ADDRESS, 0)
    except OSError:
        pytest.skip(f"this machine has no {ADDRESS}")
    server.close()
