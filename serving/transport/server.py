"""A server: what it listens on, whom it has accepted, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from ssl import SSLContext
from typing import Final

from prometheus_client import CollectorRegistry

from serving.calls.methods import Method
from serving.context import ServerContext
from serving.sockets import bind_socket, bind_unix_socket
from serving.standard import explaining, reflection, whoami
from serving.standard import health as health_calls
from serving.standard.health import ProcessHealth
from serving.standard.hosts import AllowedHosts
from serving.standard.pages import HttpPage, index_page, own_pages
from serving.standard.site import Site
from serving.transport.arrival import Acceptor
from serving.transport.connection import Core, ServerConnection
from serving.transport.router import Cors, Router

_BACKLOG: Final = 512  # connections not taken yet: served before their clients lose patience (decision 160)
_POLL_S: Final = 0.02
_GOOD_BYE_S: Final = 0.5  # for the answers of calls that were broken off


class Server:
    """Serves methods in all protocols, and pages, on any number of addresses; made inside the loop that is to serve."""

    def __init__(
        self,
        methods: Sequence[Method],
        health: ProcessHealth,
        shared: ServerContext,
        registry: CollectorRegistry,
        pages: Mapping[str, HttpPage],
        *,
        reuse_port: bool = False,
        cors: Sequence[str] = (),
        site: Site | None = None,
        hosts: AllowedHosts | None = None,
    ) -> None:
        """`cors`: origins whose pages may call from a browser; `*` for all. `site`: serves all other paths, and `/`.

        `hosts`: as the router takes them.
        """
        services = sorted({method.path.partition("/")[0] for method in methods})
        self._health = health_calls.HealthCalls(health, services)
        table = [*methods, *self._health.methods(), *(whoami.methods() if methods else ())]
        if methods:
            table.append(explaining.method(methods, shared.security.gate if shared.security is not None else None))
        table += reflection.methods([*services, health_calls.SERVICE], shared.limits.slow_request_s)
        note = shared.security.note if shared.security is not None else str
        shown = {**own_pages(health, registry, note), **pages}
        if site is None:
            shown["/"] = index_page([method.path for method in table], [*shown])
        router = Router(table, shown, shared, Cors(cors) if cors else None, site, hosts)
        self._core = Core(router, shared)
        self._reuse_port = reuse_port
        self._ends: list[Callable[[], object]] = []  # each ends listening on one address
        self._ticking: asyncio.Task[None] | None = None

    async def listen(self, address: str, tls: Callable[[], SSLContext] | None = None) -> int:
        """Serve on host:port or unix:PATH; return the port. `tls` gives each connection its context. Raises OSError."""
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._core.tick_forever(), name="connections")
            self._health.start()
        core = self._core
        is_unix, path = address.startswith("unix:"), Path(address.removeprefix("unix:"))
        if is_unix:
            sock = bind_unix_socket(str(path))
            self._ends.append(lambda: path.unlink(missing_ok=True))
        else:
            sock = await bind_socket(
                address, reuse_port=self._reuse_port, send_buffer_bytes=core.limits.send_buffer_bytes
            )
        sock.listen(_BACKLOG)
        self._ends += (Acceptor(core, sock, tls).close, sock.close)
        return 0 if is_unix else int(sock.getsockname()[1])

    async def stop(self, grace_s: float) -> None:
        """Say NOT_SERVING, take no new connections or calls, give those under way `grace_s`, then break them off."""
        if self._ticking is None:
            return
        await self._health.stop()
        for end in self._ends:
            end()
        self._ends = []
        for transport in [*self._core.arrivals]:
            transport.close()
        await self._end_all(lambda one: one.shut_down(), grace_s)
        await self._end_all(lambda one: one.expire(), _GOOD_BYE_S)
        await self._end_all(lambda one: one.transport.abort(), _GOOD_BYE_S)
        self._ticking.cancel()
        await asyncio.wait({self._ticking})
        self._ticking = None

    async def _end_all(self, end: Callable[[ServerConnection], None], patience_s: float) -> None:
        core = self._core
        for connection in [*core.connections]:
            end(connection)
        give_up_at = core.loop.time() + patience_s
        while core.connections and core.loop.time() < give_up_at:
            await asyncio.sleep(_POLL_S)
