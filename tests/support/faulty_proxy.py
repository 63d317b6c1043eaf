"""A TCP proxy that fails on demand: networks that break, hang, lose one direction, or are slow.

async with Proxy(etcd.endpoint) as proxy:
    store = EtcdStore(EtcdConfig((proxy.endpoint,)))
    proxy.stall()       # half-open: connections stand, nothing passes
    proxy.heal()        # and what was held back goes on
"""

from __future__ import annotations

import asyncio
import socket
import struct
from types import TracebackType
from typing import Self

_CHUNK_BYTES = 1 << 16
_ABORT = struct.pack("ii", 1, 0)  # close with RST


class Direction:
    """One way through the proxy, for all connections.

    Attributes:
        delay_s: each piece of data is held so long; the order is kept.
        passed_bytes: how much has gone through.
        left_bytes: after so many the connection is reset, in the middle of what it was carrying; None: never.
    """

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.passed_bytes = 0
        self.left_bytes: int | None = None
        self._open = asyncio.Event()
        self._open.set()

    def stall(self) -> None:
        self._open.clear()

    def heal(self) -> None:
        self._open.set()
        self.delay_s = 0.0

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry data until the sender ends."""
        while data := await reader.read(_CHUNK_BYTES):
            await self.passed(data, writer)
        await self._open.wait()
        _check(writer)
        writer.write_eof()

    async def passed(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        """Carry one piece. Raises ConnectionResetError where the rest is cut off."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        await self._open.wait()
        _check(writer)
        cut_off = self.left_bytes is not None and len(data) >= self.left_bytes
        writer.write(data[: self.left_bytes] if cut_off else data)
        await writer.drain()
        self.passed_bytes += len(data)
        if cut_off:
            self.left_bytes = None
            raise ConnectionResetError
        if self.left_bytes is not None:
            self.left_bytes -= len(data)


class Proxy:
    """Listens on a port of its own, at `host`, and forwards to `target`, given as host:port.

    Attributes:
        requests, answers: from clients to the target, and back; each can be stalled and delayed.
        connections: how many were ever accepted.
    """

    def __init__(self, target: str, host: str = "127.0.0.1") -> None:
        self._listens_at = host
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._refuses = False
        self.requests, self.answers = Direction(), Direction()
        self.connections = 0

    @property
    def endpoint(self) -> str:
        assert self._server is not None, "use the proxy as a context manager"
        return f"{self._listens_at}:{self._server.sockets[0].getsockname()[1]}"

    def aim(self, target: str) -> None:
        """Forward to another target from now on: what was started anew may have another port."""
        self.reset()
        self._host, _, port = target.rpartition(":")
        self._port = int(port)

    def cut(self) -> None:
        """Reset every connection, and every new one at once, until `heal`."""
        self._refuses = True
        self.reset()

    def reset(self) -> None:
        """Reset every connection; new ones are served."""
        for writer in self._writers:
            abort(writer)

    def stall(self) -> None:
        """Let nothing pass, in connections that stand and in new ones: half-open, as behind a dead firewall."""
        self.requests.stall()
        self.answers.stall()

    def truncate(self, after_bytes: int) -> None:
        """Let so many more bytes of answers pass, then reset the connection that carries the next one. Once."""
        self.answers.left_bytes = after_bytes

    def delay(self, seconds: float) -> None:
        """Hold everything so long, in each direction."""
        self.requests.delay_s = self.answers.delay_s = seconds

    def heal(self) -> None:
        """Work again. What was stalled and not reset meanwhile goes on, late."""
        self._refuses = False
        self.requests.heal()
        self.answers.heal()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self._listens_at, 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.reset()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            abort(writer)
            return
        self._writers.add(writer)
        upstream: asyncio.StreamWriter | None = None
        try:
            answers, upstream = await asyncio.open_connection(self._host, self._port)
            self._writers.add(upstream)
            await self._carry(reader, upstream, answers, writer)
        except* OSError:
            pass  # one side is gone: so is the other
        finally:
            for end in filter(None, (writer, upstream)):
                self._writers.discard(end)
                abort(end)

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """One connection, both ways, until both ends have said all; an ExceptionGroup of OSErrors if one breaks."""
        async with asyncio.TaskGroup() as pumps:
            pumps.create_task(self.requests.pump(reader, upstream))
            pumps.create_task(self.answers.pump(answers, writer))


def _check(writer: asyncio.StreamWriter) -> None:
    """Raises ConnectionResetError if it was closed meanwhile; uvloop would raise what is no OSError."""
    if writer.transport.is_closing():
        raise ConnectionResetError


def abort(writer: asyncio.StreamWriter) -> None:
    """Close with a reset: what is on its way is lost."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
    writer.transport.abort()
