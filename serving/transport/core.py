"""What the connections of one server share: limits, counts, and the time."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from typing import Final, Protocol

from serving.context import ServerContext
from serving.errors import Overloaded
from serving.h2.heads import Head
from serving.transport.exchange import Exchange, Peer

_TICK_S: Final = 1.0


class Accepted(Protocol):
    """A connection, as far as others deal with it.

    Time passes (tick); too much waits (relieve); take no more requests, finish those under way, then close (shut_down);
    end all that is under way, with errors that say so (expire); hang up at once (abort).
    """

    waiting: int
    peer: Peer

    def tick(self, now: float) -> None: ...
    def relieve(self) -> None: ...
    def shut_down(self) -> None: ...
    def expire(self) -> None: ...
    def abort(self) -> None: ...


class Arriving(Protocol):
    """A connection that has said nothing yet."""

    def leave(self) -> None: ...


class Routes(Protocol):
    """Whose requests are."""

    def open(self, exchange: Exchange) -> None: ...
    def is_vital(self, head: Head) -> bool: ...
    def refuse_headers(self, exchange: Exchange) -> None: ...


class Core:
    """What the connections of one server share.

    Attributes:
        date_line: the header for HTTP/1.1, of this second.
        kernel_bytes: what the system holds for a connection whose reader does not read.
    """

    def __init__(self, router: Routes, shared: ServerContext) -> None:
        self.loop = asyncio.get_running_loop()
        self.router, self.limits, self.admission = router, shared.limits, shared.admission
        self.connections: set[Accepted] = set()
        self.arrivals: set[Arriving] = set()  # those that have said nothing yet
        self.accepted = 0
        self.kernel_bytes = 2 * shared.limits.send_buffer_bytes
        least_s = min(self.limits.slow_request_s, self.limits.stalled_write_s, self.limits.keep_alive_s)
        self.tick_s = min(_TICK_S, max(0.02, least_s / 4))
        self.date_line = b""
        self._tell_date()

    def open_connection(self, peer: Peer) -> str:
        """Count one in. The limit that it would break, if any: then it was not counted, and takes nobody's place."""
        if self.accepted >= self.limits.max_connections:
            return "max_connections"
        try:
            self.admission.connections_of.take(peer.host)
        except Overloaded as error:
            return error.limit
        self.accepted += 1
        return ""

    def close_connection(self, peer: Peer) -> None:
        """Count one out."""
        self.accepted -= 1
        self.admission.connections_of.give_back(peer.host)

    def count_fault(self, text: str) -> None:
        """A peer broke the protocol."""
        name = "frame_floods" if text.startswith("ENHANCE_YOUR_CALM") else "malformed_http"
        self.admission.refused[name] += 1

    def relieve(self, host: str) -> None:
        """More waits than may, for this peer or for all: the connection where most of it waits gives some up."""
        of_peer = not self.admission.answers_of.has_room(host)
        waiting = [one for one in self.connections if one.waiting and (one.peer.host == host or not of_peer)]
        if waiting:
            max(waiting, key=lambda one: one.waiting).relieve()

    async def tick_forever(self) -> None:
        """Give all connections the time, about once a second."""
        while True:
            await asyncio.sleep(self.tick_s)
            self._tell_date()
            now = self.loop.time()
            for number, connection in enumerate([*self.connections], 1):
                connection.tick(now)
                if number % 1_000 == 0:
                    await asyncio.sleep(0)

    def _tell_date(self) -> None:
        self.date_line = b"date: %s\r\n" % formatdate(usegmt=True).encode()
