"""UDP and TCP (RFC 7766) on one port."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gateways.dns.rate import Rate
from gateways.dns.responder import Responder

log = logging.getLogger(__name__)

_TURNS: Final = 128  # datagrams that are read before anybody else has a turn
_READ_BYTES: Final = 4_096
_BUFFER_BYTES: Final = 4 * 1024 * 1024
_MOST_CONNECTIONS: Final = 1_000
_MOST_CONNECTIONS_PER_PEER: Final = 100
_IDLE_S: Final = 10.0
_PREFIX: Final = struct.Struct("!H")


def bound(address: str) -> tuple[socket.socket, socket.socket]:
    """A socket for UDP and one for TCP, on the same host:port; port 0 takes a free one. Raises OSError."""
    host, _, port = address.rpartition(":")
    family, *_, where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    tcp = socket.socket(family, socket.SOCK_STREAM)
    udp = socket.socket(family, socket.SOCK_DGRAM)
    try:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tcp.bind(where)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        udp.bind(tcp.getsockname())
    except OSError as error:
        tcp.close()
        udp.close()
        raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
    for sock in (tcp, udp):
        sock.setblocking(False)
    return udp, tcp


class Udp:
    """Answers datagrams, many in a turn of the loop: one by one costs more for the loop than for the answers."""

    def __init__(self, sock: socket.socket, responder: Responder, rate: Rate) -> None:
        self._sock, self._rate = sock, rate
        self._answer, self._dropped = responder.over_udp, responder.counts.dropped

    def open(self) -> None:
        """Answer from now on."""
        asyncio.get_running_loop().add_reader(self._sock, self._read)

    def close(self) -> None:
        """Answer no more."""
        asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()

    def _read(self) -> None:
        for _ in range(_TURNS):
            try:
                packet, sender = self._sock.recvfrom(_READ_BYTES)
            except OSError:  # nothing there, or word of an answer that found nobody
                return
            if not self._rate.allows(sender[0]):
                self._dropped["rate"] += 1
                continue
            try:
                answer = self._answer(packet)
                if answer is not None:
                    self._sock.sendto(answer, sender)
            except OSError:  # its buffer is full: who asked asks again
                self._dropped["send"] += 1
            except Exception:
                self._dropped["error"] += 1
                log.exception("a question could not be answered")


class Tcp:
    """Answers messages of connections, in their order.

    Attributes:
        connections: how many are open, by address.
    """

    def __init__(self, sock: socket.socket, responder: Responder, rate: Rate, idle_s: float = _IDLE_S) -> None:
        self._sock, self._rate, self._idle_s = sock, rate, idle_s
        self._answer: Callable[[bytes], bytes | None] = responder.over_tcp
        self._dropped = responder.counts.dropped
        self.connections: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Answer from now on."""
        self._server = await asyncio.start_server(self._serve, sock=self._sock, limit=1 << 16)

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = (writer.get_extra_info("peername") or ("",))[0]
        task = asyncio.current_task()
        assert task is not None
        if self.connections.total() >= _MOST_CONNECTIONS or self.connections[peer] >= _MOST_CONNECTIONS_PER_PEER:
            self._dropped["connections"] += 1
            writer.close()
            return
        self.connections[peer] += 1
        self._tasks.add(task)
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                await self._converse(reader, writer, peer)
        finally:
            self._tasks.discard(task)
            self.connections[peer] -= 1
            if not self.connections[peer]:
                del self.connections[peer]
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str) -> None:
        """Until its other end leaves, is silent, or does not read."""
        while True:
            async with asyncio.timeout(self._idle_s):
                (size,) = _PREFIX.unpack(await reader.readexactly(2))
                packet = await reader.readexactly(size)
            if not self._rate.allows(peer):
                self._dropped["rate"] += 1
                return
            answer = self._answer(packet)
            if answer is None:
                return
            writer.write(_PREFIX.pack(len(answer)) + answer)
            async with asyncio.timeout(self._idle_s):
                await writer.drain()
