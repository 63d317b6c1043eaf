"""UDP and TCP (RFC 7766) on one port, with a rate limit per address."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gateways.dns.responder import Responder
from serving.clock import Clock

log = logging.getLogger(__name__)

_TURNS: Final = 128  # datagrams read before other tasks get a turn
_READ_BYTES: Final = 4_096
_BUFFER_BYTES: Final = 4 * 1024 * 1024
_MOST_CONNECTIONS: Final = 1_000
_MOST_CONNECTIONS_PER_PEER: Final = 100
_IDLE_S: Final = 10.0
_PREFIX: Final = struct.Struct("!H")
_MOST_ADDRESSES: Final = 100_000  # addresses with a counter of their own


def bind_udp_and_tcp(address: str) -> tuple[socket.socket, socket.socket]:
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


class Rate:
    """Counts by address (an IPv6 network of 64 bits is one) in windows of a second.

    Attributes:
        per_s: 0: unlimited.
    """

    def __init__(self, per_s: int, clock: Clock) -> None:
        self.per_s, self._clock = per_s, clock
        self._second = -1
        self._counts: dict[str, int] = {}

    def allows(self, address: str) -> bool:
        """Count a question; False: the address is over its limit."""
        if not self.per_s:
            return True
        second = int(self._clock.now())
        if second != self._second:
            self._second = second
            self._counts = {}
        who = address if ":" not in address else _network(address)
        count = self._counts.get(who, 0) + 1
        if count == 1 and len(self._counts) >= _MOST_ADDRESSES:
            who, count = "", self._counts.get("", 0) + 1  # too many addresses: all further ones share a counter
        self._counts[who] = count
        return count <= self.per_s


def _network(address: str) -> str:
    """The first 64 bits, as text that only serves to tell networks apart."""
    head, has_gap, _ = address.partition("::")
    words = head.split(":")
    return ":".join(words[:4]) + ("::" if has_gap and len(words) < 4 else "")


class Udp:
    """Answers many datagrams per turn of the event loop: one by one, the loop would cost more than the answers."""

    def __init__(self, sock: socket.socket, responder: Responder, rate: Rate) -> None:
        self._sock, self._rate = sock, rate
        self._answer, self._dropped = responder.answer_udp, responder.counts.dropped

    def open(self) -> None:
        """Answer from now on."""
        asyncio.get_running_loop().add_reader(self._sock, self._read_packets)

    def close(self) -> None:
        """Stop answering."""
        asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()

    def _read_packets(self) -> None:
        for _ in range(_TURNS):
            try:
                packet, sender = self._sock.recvfrom(_READ_BYTES)
            except OSError:  # no datagram, or an ICMP error for an earlier answer
                return
            if not self._rate.allows(sender[0]):
                self._dropped["rate"] += 1
                continue
            try:
                answer = self._answer(packet, sender[0])
                if answer is not None:
                    self._sock.sendto(answer, sender)
            except OSError:  # the buffer is full: the client will retry
                self._dropped["send"] += 1
            except Exception:
                self._dropped["error"] += 1
                log.exception("could not answer a query")


class Tcp:
    """Answers messages of connections, in their order.

    Attributes:
        connections: how many are open, by address.
    """

    def __init__(self, sock: socket.socket, responder: Responder, rate: Rate, idle_s: float = _IDLE_S) -> None:
        self._sock, self._rate, self._idle_s = sock, rate, idle_s
        self._answer: Callable[[bytes, str], bytes | None] = responder.answer_tcp
        self._dropped = responder.counts.dropped
        self.connections: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Answer from now on."""
        self._server = await asyncio.start_server(self._serve, sock=self._sock, limit=1 << 16)

    async def close(self) -> None:
        """Stop answering."""
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
        """Serve a connection until the client closes it, is silent, or does not read."""
        while True:
            async with asyncio.timeout(self._idle_s):
                (size,) = _PREFIX.unpack(await reader.readexactly(2))
                packet = await reader.readexactly(size)
            if not self._rate.allows(peer):
                self._dropped["rate"] += 1
                return
            answer = self._answer(packet, peer)
            if answer is None:
                return
            writer.write(_PREFIX.pack(len(answer)) + answer)
            async with asyncio.timeout(self._idle_s):
                await writer.drain()
