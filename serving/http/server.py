"""uvicorn as the server of HTTP/1.1, and the application that it runs: which path is whose."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Collection, Mapping, Sequence
from ssl import SSLContext
from typing import Any, Final, cast

import uvicorn
from prometheus_client import CollectorRegistry

from serving.calls.incoming import HttpCall
from serving.calls.methods import Duplex, Method, Streaming, Unary
from serving.context import ServerContext
from serving.errors import ServiceError
from serving.http.asgi import Endpoint, Receive, Scope, Send, respond, respond_error
from serving.http.connect_stream import StreamEndpoint
from serving.http.connect_unary import UnaryEndpoint
from serving.http.protocol import bounded_by
from serving.protocol_errors import UnknownHost
from serving.sockets import bound
from serving.standard.health import Health
from serving.standard.hosts import AllowedHosts
from serving.standard.pages import Page, PageRequest, Pages, own_pages

_BACKLOG: Final = 2_048
_POLL_S: Final = 0.02
_GOOD_BYE_S: Final = 0.5  # for the answers of calls that were broken off


class HttpServer:
    """Serves a table of methods in the Connect protocol, health and metrics, and further pages by path."""

    def __init__(
        self,
        methods: Sequence[Method],
        health: Health,
        shared: ServerContext,
        registry: CollectorRegistry,
        pages: Mapping[str, Page],
        *,
        reuse_port: bool = False,
        hosts: AllowedHosts | None = None,
    ) -> None:
        self._reuse_port = reuse_port
        note = shared.security.note if shared.security is not None else str
        self._app = HttpApp(methods, {**own_pages(health, registry, note), **pages}, shared, hosts)
        self._shared = shared
        self._server: uvicorn.Server | None = None
        self._socket: socket.socket | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def start(self, address: str, tls: SSLContext | None = None) -> int:
        """Listen on host:port, with TLS if there is a context; return the port, which matters for port 0.

        Raises:
            OSError: the address cannot be bound.
        """
        self._socket = await bound(address, reuse_port=self._reuse_port)
        self._server = server = uvicorn.Server(self._config(tls))
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        # Not `serve`: it would take over the process' signals.
        await server.startup([self._socket])
        self._ticking = asyncio.create_task(server.main_loop(), name="http server")
        return cast("int", self._socket.getsockname()[1])

    def connections(self) -> int:
        """How many connections there are."""
        return 0 if self._server is None else len(self._server.server_state.connections)

    async def stop(self, grace_s: float) -> None:
        """Take no new connections, give calls in progress `grace_s` to finish, then break them off."""
        if self._server is None or self._socket is None or self._ticking is None:
            return
        self._ticking.cancel()
        for listener in self._server.servers:
            listener.close()
        self._socket.close()
        state, self._server = self._server.server_state, None
        for connection in list(state.connections):
            connection.shutdown()
        await _until_empty(state.connections, grace_s)
        for task in list(state.tasks):
            task.cancel()
        await _until_empty(state.connections, _GOOD_BYE_S if state.tasks else 0.0)
        for connection in list(state.connections):
            connection.transport.abort()

    def _config(self, tls: SSLContext | None) -> uvicorn.Config:
        return uvicorn.Config(
            cast("Any", self._app),
            http=bounded_by(self._shared.limits, self._shared.admission),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=cast("Any", self._shared.limits.keep_alive_s),
            backlog=_BACKLOG,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )


async def _until_empty(connections: Collection[object], patience_s: float) -> None:
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + patience_s
    while connections and loop.time() < give_up_at:
        await asyncio.sleep(_POLL_S)


class HttpApp:
    """Answers calls by their method's path and pages by theirs."""

    def __init__(
        self,
        methods: Sequence[Method],
        pages: Mapping[str, Page],
        shared: ServerContext,
        hosts: AllowedHosts | None,
    ) -> None:
        self._endpoints: dict[str, Endpoint] = {
            "/" + m.path: _endpoint(m, shared) for m in methods if not isinstance(m, Duplex)
        }
        self._pages = Pages(pages, shared, self._endpoints)
        self._shared, self._hosts = shared, hosts

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if self._hosts is not None and scope["scheme"] == "http":
            authority = dict(scope["headers"]).get(b"host", b"")
            if not self._hosts.allows(authority, scope["raw_path"]):
                return respond_error(send, UnknownHost(authority.decode("latin-1")), [])
        call = self._endpoints.get(_path(scope))
        if call is not None and scope["method"] == "POST":
            return call(scope, receive, send)
        return self._other(scope, send)

    async def _other(self, scope: Scope, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request = PageRequest(headers, scope["query_string"], HttpCall(scope, headers, self._shared.ids))
        try:
            answer = await self._pages.answer(_path(scope), scope["method"], request)
        except ServiceError as error:
            await respond_error(send, error, [])
            return
        await respond(send, answer.status, answer.fields(), answer.body)


def _path(scope: Scope) -> str:
    """As it was sent: decoded, `%2F` would pass by the rules of a proxy that guards calls by their paths."""
    raw: bytes = scope["raw_path"]
    return raw.decode("latin-1")


def _endpoint(method: Unary | Streaming, shared: ServerContext) -> Endpoint:
    return UnaryEndpoint(method, shared) if isinstance(method, Unary) else StreamEndpoint(method, shared)
