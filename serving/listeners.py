"""The addresses that a server listens on, opened and closed in order around the work that it serves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from serving.auth import security
from serving.auth.tls import ServerTls
from serving.calls.methods import Method
from serving.context import ServerContext
from serving.flags import listening_by
from serving.standard.health import ProcessHealth
from serving.standard.hosts import AllowedHosts
from serving.standard.pages import HttpPage
from serving.standard.site import Site
from serving.telemetry.metrics import Table
from serving.transport.server import Server as TransportServer

log = logging.getLogger(__name__)

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to listen, as host:port; port 0 takes a free one."""

    grpc: str
    http: str
    grpc_mtls: str = ""  # a second address for gRPC, where callers show certificates; empty: none
    shared: bool = False  # other processes of ours listen on the same addresses
    pages: str = ""  # another address for HTTP, of this process alone, for health and metrics; empty: none
    cors: Sequence[str] = ()  # origins whose pages may call from a browser
    allowed_hosts: Sequence[str] = ()  # names for this server over plain HTTP/1.1, besides those above
    agents: str = ""  # a listener for agents alone, with limits of its own; empty: none
    env: str = "HQ_"  # prefix of these flags' variables, for messages


class Transports:
    """gRPC and HTTP over one table of methods.

    Attributes:
        listening: the addresses, once it listens.
    """

    def __init__(
        self,
        methods: Sequence[Method],
        health: ProcessHealth,
        shared: ServerContext,
        metrics: CollectorRegistry,
        addresses: Addresses,
        grace_s: float,
        pages: Mapping[str, HttpPage] | None = None,
        agents: Sequence[Method] = (),
        site: Site | None = None,
    ) -> None:
        """`pages`: besides those that every server has, by path. `agents`: what their listener serves.

        `site`: serves every path that is neither a method nor a page.
        """
        self._addresses, self._grace_s, self._loop_lag = addresses, grace_s, shared.loop_lag
        self._log_counts = shared.log_counts
        self._security, self._tls = shared.security, shared.security.tls if shared.security is not None else None
        if shared.security is not None:
            metrics.register(Table(security.METRICS, shared.security))
        self._tracing = shared.tracing
        if shared.tracing is not None:
            methods, agents = shared.tracing.traced_methods(methods), shared.tracing.traced_methods(agents)
        hosts = None
        if shared.security is None or shared.security.gate is None:
            listening = (addresses.grpc, addresses.http, addresses.agents, addresses.pages)
            hosts = AllowedHosts(filter(None, listening), addresses.allowed_hosts)
        self._stopping = asyncio.Event()
        self._health = health
        beside = shared.beside(shared.limits.for_agents()) if addresses.agents else shared
        # The limits that apply to agents' reports, wherever these are served.
        self.agents_admission = beside.admission
        self._server = _TransportServers(
            methods, health, shared, metrics, addresses, hosts, pages or {}, agents, beside, site
        )
        self.listening: asyncio.Future[Addresses] = asyncio.get_running_loop().create_future()

    def stop(self) -> None:
        """Begin to shut down."""
        self._stopping.set()

    async def serve(
        self,
        work: Coroutine[Any, Any, None],
        leave: Callable[[], None],
        drain: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Listen while the work goes on, until `stop`. Work that ends by itself ends all of it, with its error.

        When stopped: `leave` first (not ready any more, streams end), then calls in progress have their grace, then
        `drain` while the work still goes on, then the work is cancelled. Raises OSError if an address cannot be bound.
        """
        working = asyncio.create_task(work, name="work")
        stopping = asyncio.create_task(self._stopping.wait())
        looking = asyncio.create_task(self._loop_lag.run(), name="loop lag")
        logging.getLogger().addHandler(self._log_counts)
        keeping = asyncio.create_task(self._keep_security(), name="security")
        try:
            if self._addresses.pages:
                await self._server.show_pages(self._tls)
            if self._addresses.shared:
                await self._until_loaded(working)
            await self._listen()
            await asyncio.wait((working, stopping, keeping), return_when=asyncio.FIRST_COMPLETED)
            for part in (working, keeping):
                if part.done():
                    part.result()
            log.info("shutting down: calls in progress have %.0f s", self._grace_s)
            leave()
            await self._server.stop(self._grace_s)
            if drain is not None:
                await drain()
        finally:
            await self._end(working, stopping, looking, keeping)

    async def _end(self, *tasks: asyncio.Task[Any]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        logging.getLogger().removeHandler(self._log_counts)
        await self._server.stop(0)
        await self._server.hide_pages()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)
        if self._security is not None:
            self._security.close()

    async def _until_loaded(self, working: asyncio.Task[None]) -> None:
        """Wait until reads can be served: on a shared address, a process that cannot yet would turn callers away."""
        while not (self._health.has_loaded() or self._stopping.is_set() or working.done()):
            await asyncio.sleep(_POLL_S)

    async def _listen(self) -> None:
        listening = await self._server.listen(self._tls)
        also = f" and gRPC with certificates {listening.grpc_mtls}" if listening.grpc_mtls else ""
        also += f" and for agents {listening.agents}" if listening.agents else ""
        log.info("listening: gRPC %s, HTTP %s%s", listening.grpc, listening.http, also)
        self.listening.set_result(listening)

    async def _keep_security(self) -> None:
        if self._security is None:
            await asyncio.Event().wait()
        else:
            await self._security.keep()


def _with_port(address: str, port: int) -> str:
    if address.startswith("unix:"):
        return address
    return f"{address.rpartition(':')[0]}:{port}" if address else ""


class _TransportServers:
    """One server on all addresses, which may be the same, but for the agents' and that of pages."""

    def __init__(
        self,
        methods: Sequence[Method],
        health: ProcessHealth,
        shared: ServerContext,
        metrics: CollectorRegistry,
        addresses: Addresses,
        hosts: AllowedHosts | None,
        pages: Mapping[str, HttpPage],
        agents: Sequence[Method],
        beside: ServerContext,
        site: Site | None,
    ) -> None:
        self._addresses = addresses
        is_shared = addresses.shared
        self._server = TransportServer(
            methods, health, shared, metrics, pages, reuse_port=is_shared, cors=addresses.cors, site=site, hosts=hosts
        )
        self._agents = TransportServer(agents, health, beside, metrics, {}, reuse_port=is_shared, hosts=hosts)
        self._pages = TransportServer((), health, shared, metrics, pages, hosts=hosts)

    async def listen(self, tls: ServerTls | None) -> Addresses:
        """Listen on all addresses but that of pages; return them with their ports. Raises OSError."""
        wanted, mtls = self._addresses, ""
        if wanted.grpc_mtls and tls is not None:
            with listening_by("--grpc-mtls", wanted.env):
                port = await self._server.listen(wanted.grpc_mtls, tls.listening(require_clients=True))
            mtls = _with_port(wanted.grpc_mtls, port)
        context = tls.listening() if tls is not None else None
        agents = wanted.agents
        with listening_by("--http" if wanted.grpc == wanted.http else "--grpc", wanted.env):
            grpc = _with_port(wanted.grpc, await self._server.listen(wanted.grpc, context))
        if agents:
            with listening_by("--agents", wanted.env):
                agents = _with_port(agents, await self._agents.listen(agents, context))
        http = grpc
        if wanted.http not in (wanted.grpc, grpc) or wanted.http.endswith(":0"):
            with listening_by("--http", wanted.env):
                http = _with_port(wanted.http, await self._server.listen(wanted.http, context))
        return Addresses(grpc, http, mtls, agents=agents)

    async def show_pages(self, tls: ServerTls | None) -> None:
        """Listen on the address of pages. Raises OSError."""
        with listening_by("--worker-pages", self._addresses.env):
            await self._pages.listen(self._addresses.pages, tls.listening() if tls is not None else None)

    async def stop(self, grace_s: float) -> None:
        """Take nothing new, give calls in progress `grace_s`."""
        await asyncio.gather(self._server.stop(grace_s), self._agents.stop(grace_s))

    async def hide_pages(self) -> None:
        """Stop serving the pages, last of all."""
        await self._pages.stop(0)
