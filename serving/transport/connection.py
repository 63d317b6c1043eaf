"""One client's connection: its unsent bytes are counted, and every wait has a limit. `Core`: what all of them share."""

from __future__ import annotations

import asyncio
import socket
import struct
from email.utils import formatdate
from typing import Any, Final

from serving.context import ServerContext
from serving.errors import Overloaded
from serving.head import Head
from serving.limiting.peers import Peer
from serving.limiting.turns import Turns
from serving.transport.router import Router

_TICK_S: Final = 1.0
_RETIRE_S: Final = 60.0
_MOST_GAP_S: Final = 0.01  # a handshake takes a millisecond
LINGER_S: Final = 2.0  # for a refused client to read why; closing at once might lose the answer
SURPLUS_S: Final = 0.5  # for a connection too many to begin its request, so that it is refused in its own HTTP
_SPARED_S: Final = 5.0  # for the answer of a connection too many that asks for our health
_AT_ONCE: Final = struct.pack("ii", 1, 0)
_LARGE_BYTES: Final = 4 * 1024  # pieces of this size cost more to copy than a system call that takes several


class Core:
    def __init__(self, router: Router, shared: ServerContext) -> None:
        self.loop = asyncio.get_running_loop()
        self.turns = Turns()
        self.router, self.limits, self.admission = router, shared.limits, shared.admission
        self._gate = shared.security.gate if shared.security is not None else None
        self._revision = 0  # of the gate, at which connections were looked at
        self.connections: set[ServerConnection] = set()
        self.arrivals: set[asyncio.Transport] = set()  # of connections that have said nothing yet
        self.accepted, self.date_line = 0, b""  # the line is for HTTP/1.1, of this second
        self.kernel_bytes = 2 * shared.limits.send_buffer_bytes  # held by the system for a connection that nobody reads
        least_s = min(self.limits.slow_request_s, self.limits.stalled_write_s, self.limits.keep_alive_s)
        self.tick_s = min(_TICK_S, max(0.02, least_s / 4))

    def open_connection(self, peer: Peer) -> str:
        """Count a connection in; return the limit that it would break, if any: then it is not counted."""
        if self.accepted >= self.limits.max_connections:
            return "max_connections"
        try:
            self.admission.connections_of.take(peer.host)
        except Overloaded as error:
            return error.limit
        self.accepted += 1
        return ""

    def close_connection(self, peer: Peer) -> None:
        """Count a connection out."""
        self.accepted -= 1
        self.admission.connections_of.give_back(peer.host)

    def relieve(self, host: str) -> None:
        """Too much waits, for this peer or for all: let the connection where most of it waits give some up."""
        of_peer = not self.admission.answers_of.has_room(host)
        waiting = [one for one in self.connections if one.waiting and (one.peer.host == host or not of_peer)]
        if waiting:
            max(waiting, key=lambda one: one.waiting).relieve()

    async def tick_forever(self) -> None:
        """Give all connections the time, about once a second."""
        while True:
            self.date_line, now = b"date: %s\r\n" % formatdate(usegmt=True).encode(), self.loop.time()
            self._retire_withdrawn(now)
            for number, connection in enumerate([*self.connections], 1):
                connection.tick(now)
                if number % 100 == 0:
                    await self.turns.next()
            await asyncio.sleep(self.tick_s)

    def _retire_withdrawn(self, now: float) -> None:
        """Close, over a minute, connections whose certificates were withdrawn: their next handshake verifies them."""
        if self._gate is None or self._gate.revision == self._revision:
            return
        self._revision = self._gate.revision
        identified = [each for each in self.connections if each.peer.certificate]
        ending = [each for each in identified if self._gate.has_withdrawn(each.peer.certificate)]
        gap_s = min(_MOST_GAP_S, _RETIRE_S / max(1, len(ending)))
        for number, connection in enumerate(ending):
            connection.retire(now + number * gap_s)


class ServerConnection:  # an asyncio.Protocol, but for its base: that is not compiled, and slows down each attribute
    """One connection in one HTTP. `tick` comes about once a second; nothing else is timed, but the last seconds."""

    def __init__(self, core: Core, transport: asyncio.Transport, peer: Peer, surplus: str = "") -> None:
        """`surplus`: the limit that the connection is beyond: it is turned away, unless it asks for our health."""
        self.core, self.transport, self.peer = core, transport, peer
        self.loop = core.loop
        self.waiting = 0  # bytes not taken yet: our own queues, the transport's, and the system's while it is full
        self.is_paused = self.is_closing = self.is_lost = self._is_in_line = False
        self._retire_at = self.loop.time() + core.limits.max_connection_age_s
        self._stalled: tuple[float, int] | None = None  # since when, and how many bytes had been written by then
        self._written = self._untaken = 0
        core.connections.add(self)
        self.surplus, self._is_spared = surplus, False
        if surplus:
            self._retire_at = self.loop.time() - 1  # no more than one request
            self.loop.call_later(SURPLUS_S, core.turns.wait, self._surplus_late)

    def retire(self, at: float) -> None:
        """Take no more requests from then on, on the loop's clock."""
        self._retire_at = min(self._retire_at, at)

    def has_no_place(self, head: Head) -> bool:
        """Refuse a connection over the limit, but answer health checks: else a flood looks like an outage."""
        if not self.is_closing:
            self._is_spared = self.core.router.is_vital(head)
            if not self._is_spared:
                self.turn_away(self.surplus)
        return self.is_closing

    def turn_away(self, limit: str) -> None:
        """Say that there are too many connections, and hang up. Counted here; each HTTP says it in its own way."""
        self.core.admission.refused[limit] += 1

    def _surplus_late(self) -> None:
        if self._is_spared:
            self.loop.call_later(_SPARED_S, self.abort_connection)
        elif not (self.is_closing or self.is_lost):
            self.turn_away(self.surplus)

    def take_turn(self) -> None:
        """Handle what has come: now, or after the turns of others, and no more is read until then."""
        if self._is_in_line:
            self.hold_back()
        elif self.core.turns.left <= 0:
            self.wait_in_line()
        else:
            self.handle()

    def wait_in_line(self) -> None:
        if not self._is_in_line:
            self._is_in_line = True
            self.core.turns.wait(self._handle_in_line)

    def _handle_in_line(self) -> None:
        self._is_in_line = False
        if not self.is_lost:
            self.handle()

    def handle(self) -> None:
        """Handle what has come, as much as is due to one connection."""

    def hold_back(self) -> None:
        """Read no more for now."""

    def write(self, parts: list[Any], size: int) -> None:
        """Hand bytes to the transport, in as few calls of the system as may be."""
        self._written += size
        if size <= _LARGE_BYTES * len(parts) or self.peer.is_secure:  # TLS copies them anyway
            self.transport.write(b"".join(parts) if len(parts) > 1 else parts[0])
        else:
            self.transport.writelines(parts)

    def account(self, queued: int) -> None:
        """Count what waits now: `queued` bytes in our own queues, and what the transport and the system hold."""
        written = self.transport.get_write_buffer_size() + self.core.kernel_bytes if self.is_paused else 0
        waiting, self._untaken = queued + written, written
        if waiting != self.waiting:
            change, self.waiting = waiting - self.waiting, waiting
            if not self.core.admission.weigh(self.peer.host, change):
                self.core.relieve(self.peer.host)

    def relieve(self) -> None:
        """Give up what waits here: too much waits, for this peer or for all, and most of it here."""
        self.core.admission.refused["max_answers_bytes"] += 1
        self.abort_connection()

    def data_received(self, data: bytes) -> None:
        """Take bytes that have come."""

    def eof_received(self) -> None:
        """Close the connection: no more will come."""

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False

    def check_stall(self, now: float) -> None:
        """Cut off a reader that takes less than it must: no byte at all, or too few of those that wait for long."""
        if not self.waiting:
            self._stalled = None
            return
        self._stalled = self.still_taking(self._stalled, now, self._written - self._untaken)
        if self._stalled is None:
            self.core.admission.refused["stalled_write_s"] += 1
            self.abort_connection()

    def still_taking(self, before: tuple[float, int] | None, now: float, taken: int) -> tuple[float, int] | None:
        """(time, bytes taken) at which measuring a slow reader began; None: it has taken too little since."""
        limits, (since, taken_before) = self.core.limits, before or (now, taken)
        patience_s = now - since
        if patience_s < limits.stalled_write_s:
            return since, taken_before
        return None if taken - taken_before < limits.min_read_bytes_per_s * patience_s else (now, taken)

    def tick(self, now: float) -> None:
        """Do what has become due."""

    def shut_down(self) -> None:
        """Take no more requests, finish those under way, then close."""

    def expire(self) -> None:
        """End all that is under way, with errors that say so."""

    def close(self, *, lingers: bool = False) -> None:
        """Write what is left, and hang up. `lingers`: drop what comes; unread, it would destroy the last answer."""
        if self.is_closing or self.is_lost:
            return
        self.is_closing = True
        self.loop.call_later(LINGER_S, self.abort_connection)  # if the peer does not take it
        if lingers and self.transport.can_write_eof():
            self.transport.write_eof()
            self.transport.resume_reading()
        else:
            self.transport.close()

    def abort_connection(self) -> None:
        """Hang up on a peer that does not read, and drop what the system holds for it."""
        if not self.is_lost:
            sock = self.transport.get_extra_info("socket")
            if sock is not None and sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.core.connections.discard(self)
        if not self.surplus:
            self.core.close_connection(self.peer)
        if self.waiting:
            self.core.admission.weigh(self.peer.host, -self.waiting)
            self.waiting = 0
