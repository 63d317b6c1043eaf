"""A server: what it listens on, whom it has accepted, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from pathlib import Path
from ssl import SSLContext
from typing import Final

from prometheus_client import CollectorRegistry

from serving.calls.methods import Method
from serving.errors import Overloaded
from serving.health import Health
from serving.http.pages import Page, own_pages
from serving.surroundings import Surroundings
from serving.transport import health as health_calls
from serving.transport import reflection
from serving.transport.connection import Arrival, Connection
from serving.transport.exchange import Peer
from serving.transport.h1_side import H1Side
from serving.transport.h2_side import H2Side
from serving.transport.router import Router

_BACKLOG: Final = 4_096
_TCP_PROBE_AFTER_S: Final = 60  # of silence; finds streams whose client vanished without a word
_UNSENT_BYTES: Final = 128 * 1024  # that the system takes beyond what is on its way: what waits, waits with us
_POLL_S: Final = 0.02
_GOOD_BYE_S: Final = 0.5  # for the answers of calls that were broken off
_TICK_S: Final = 1.0


class Core:
    """What the connections of one server share.

    Attributes:
        date_line: the header for HTTP/1.1, of this second.
        kernel_bytes: what the system holds for a connection whose reader does not read.
    """

    def __init__(self, router: Router, shared: Surroundings) -> None:
        self.loop = asyncio.get_running_loop()
        self.router, self.limits, self.admission = router, shared.limits, shared.admission
        self.connections: set[Connection] = set()
        self.arrivals: set[Arrival] = set()  # those that have said nothing yet
        self.accepted = 0
        self.kernel_bytes = 2 * shared.limits.send_buffer_bytes
        least_s = min(self.limits.slow_request_s, self.limits.stalled_write_s, self.limits.keep_alive_s)
        self.tick_s = min(_TICK_S, max(0.02, least_s / 4))
        self.date_line = b""
        self._tell_date()

    def open_connection(self, peer: Peer) -> str:
        """Count one in. The limit that it would break, if any: then it was not counted."""
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

    def connection(self, transport: asyncio.Transport, peer: Peer, *, is_h2: bool, refusal: str) -> Connection:
        """A new one, of this HTTP."""
        if refusal:
            self.accepted += 1
            self.admission.connections_of.count(peer.host)
            if is_h2:  # over HTTP/1.1 there is an answer that counts it
                self.admission.refused[refusal] += 1
        kind = H2Side if is_h2 else H1Side
        return kind(self, transport, peer, refusal)

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


class Server:
    """Serves a table of methods in all protocols, with health, reflection and pages, on any number of addresses.

    Must be made inside the running event loop that is to serve.
    """

    def __init__(
        self,
        methods: Sequence[Method],
        health: Health,
        shared: Surroundings,
        registry: CollectorRegistry,
        pages: Mapping[str, Page],
        *,
        reuse_port: bool = False,
    ) -> None:
        services = sorted({method.path.partition("/")[0] for method in methods})
        self._health = health_calls.HealthCalls(health, services)
        table = [*methods, *self._health.methods()]
        table += reflection.methods([*services, health_calls.SERVICE], shared.limits.slow_request_s)
        note = shared.security.note if shared.security is not None else str
        router = Router(table, {**own_pages(health, registry, note), **pages}, shared)
        self._core = Core(router, shared)
        self._reuse_port = reuse_port
        self._listening: list[asyncio.Server] = []
        self._sockets: list[socket.socket] = []
        self._paths: list[Path] = []
        self._ticking: asyncio.Task[None] | None = None

    async def listen(self, address: str, tls: SSLContext | None = None) -> int:
        """Serve on host:port, or on unix:PATH; with TLS if there is a context. The port, which matters for port 0.

        Raises:
            OSError: the address cannot be had.
        """
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._core.tick_forever(), name="connections")
            self._health.start()
        sock = await _bound(address, self._core.limits.send_buffer_bytes, reuse_port=self._reuse_port)
        self._sockets.append(sock)
        if sock.family == socket.AF_UNIX:
            self._paths.append(Path(address.removeprefix("unix:")))
        serving = await self._core.loop.create_server(lambda: Arrival(self._core), sock=sock, ssl=tls, backlog=_BACKLOG)
        self._listening.append(serving)
        return 0 if sock.family == socket.AF_UNIX else int(sock.getsockname()[1])

    def connections(self) -> int:
        """How many connections there are."""
        return len(self._core.connections)

    async def stop(self, grace_s: float) -> None:
        """Say NOT_SERVING, take no new connections or calls, give those under way `grace_s`, then break them off."""
        if self._ticking is None:
            return
        await self._health.stop()
        self._stop_listening()
        core = self._core
        for arrival in [*core.arrivals]:
            arrival.leave()
        for connection in [*core.connections]:
            connection.shut_down()
        await self._until_empty(grace_s)
        for connection in [*core.connections]:
            connection.expire()
        await self._until_empty(_GOOD_BYE_S)
        for connection in [*core.connections]:
            connection.abort()
        await self._until_empty(_GOOD_BYE_S)
        self._ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._ticking
        self._ticking = None

    def _stop_listening(self) -> None:
        for serving in self._listening:
            serving.close()
        for sock in self._sockets:
            sock.close()
        for path in self._paths:
            path.unlink(missing_ok=True)
        self._listening, self._sockets, self._paths = [], [], []

    async def _until_empty(self, patience_s: float) -> None:
        loop = self._core.loop
        give_up_at = loop.time() + patience_s
        while self._core.connections and loop.time() < give_up_at:
            await asyncio.sleep(_POLL_S)


async def _bound(address: str, send_buffer_bytes: int, *, reuse_port: bool) -> socket.socket:
    if address.startswith("unix:"):
        return _bound_unix(address.removeprefix("unix:"))
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    name = host.strip("[]") or None
    found = await loop.getaddrinfo(name, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, where = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # Accepted sockets inherit all of these.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        for option, value in (("TCP_KEEPIDLE", _TCP_PROBE_AFTER_S), ("TCP_NOTSENT_LOWAT", _UNSENT_BYTES)):
            if hasattr(socket, option):
                listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        listening.bind(where)
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
    listening.setblocking(False)
    return listening


def _bound_unix(path: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(path)
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"cannot listen on unix:{path}: {error.strerror}") from error
    listening.setblocking(False)
    return listening
