"""Routes a request to a method (by path and content type, in one of the protocols) or to a page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from serving import error_statuses
from serving.calls.methods import Duplex, Method, Streaming, UnaryMethod
from serving.context import ServerContext
from serving.errors import ServiceError, UnknownMethod
from serving.head import Head
from serving.protocol_errors import GrpcNeedsHttp2, MethodNotAllowed, UnknownHost, UnsupportedMediaType
from serving.standard.hosts import AllowedHosts
from serving.standard.pages import VITAL, HttpPage, Pages
from serving.standard.site import Site
from serving.transport import connect
from serving.transport.call import ExchangeCall
from serving.transport.connect import ConnectStream, ConnectUnary
from serving.transport.exchange import AnswerHead, Exchange, Fields
from serving.transport.grpc import Grpc, GrpcJson, GrpcWeb, status_fields
from serving.transport.page_handlers import PageHandler, SiteHandler
from serving.transport.rpc import Rpc, RpcEndpoint, UnaryRpc
from serving.transport.streams import DuplexRpc, StreamRpc
from serving.transport.wire import Wire

_KINDS: Final[dict[type[Any], type[Rpc]]] = {UnaryMethod: UnaryRpc, Streaming: StreamRpc, Duplex: DuplexRpc}
UNKNOWN_FORM: Final = (UnsupportedMediaType, MethodNotAllowed)
_GRPC_KINDS: Final = frozenset(
    b"application/grpc" + form + codec for form in (b"", b"-web", b"-web-text") for codec in (b"", b"+proto", b"+json")
)
_ORDINARY: Final = (b"application/", b"text/")
_GRPC: Final = {b"application/grpc": Grpc, b"application/grpc+proto": Grpc, b"application/grpc+json": GrpcJson}

# What pages of other origins may send (CORS), and read.
_SENT: Final = (
    b"authorization, content-type, connect-protocol-version, connect-timeout-ms, grpc-timeout, x-grpc-web, "
    b"x-user-agent, x-request-id, x-hq-cluster, traceparent, tracestate"
)
_READ: Final = b"grpc-status, grpc-message, grpc-status-details-bin, retry-after, x-request-id"
_OF_ALL_ANSWERS: Final = ((b"access-control-expose-headers", _READ), (b"vary", b"origin"))


class Router:
    def __init__(
        self,
        methods: Sequence[Method],
        pages: Mapping[str, HttpPage],
        shared: ServerContext,
        cors: Cors | None = None,
        site: Site | None = None,
        hosts: AllowedHosts | None = None,
    ) -> None:
        """`hosts`: the names that callers may use for this server over plain HTTP/1.1; None: any."""
        self._cors, self._site, self._hosts = cors, site, hosts
        self._shared, self._limits = shared, shared.limits
        self._endpoints = {b"/" + one.path.encode(): RpcEndpoint(one, shared, _KINDS[type(one)]) for one in methods}
        self._pages, self._page_paths = Pages(pages, shared), frozenset(path.encode() for path in pages)

    def open(self, exchange: Exchange) -> None:
        """Give a request that has begun a handler, or answer it."""
        if self._cors is not None and self._cors.answer_preflight(exchange):
            return
        head = exchange.head
        endpoint = self._endpoints.get(head.target)
        kind = head.named.get(b"content-type", b"")
        if kind in _GRPC and endpoint is not None and head.method == b"POST" and exchange.is_h2:
            self._open(endpoint, exchange, _GRPC[kind])
        elif kind.startswith(b"application/grpc"):
            self._other_grpc(endpoint, exchange, kind)
        elif endpoint is not None and head.method == b"POST":
            self._open(endpoint, exchange, ConnectUnary if type(endpoint.method) is UnaryMethod else ConnectStream)
        else:
            self._get(exchange)

    def open_plain(self, exchange: Exchange) -> None:
        """`open`, for HTTP/1.1 over TCP without TLS: the client may be a browser."""
        head = exchange.head
        if self._hosts is None or self._hosts.allows(head.authority, head.target):
            self.open(exchange)
        else:
            self.refuse(exchange, UnknownHost(head.authority.decode("latin-1")))

    def is_vital(self, head: Head) -> bool:
        """Whether it asks whether we are alive, or how we are: a page, or a health check over any protocol."""
        path = head.target.partition(b"?")[0]
        endpoint = self._endpoints.get(path)
        return path in VITAL if endpoint is None else endpoint.is_free

    def refuse(self, exchange: Exchange, error: ServiceError) -> None:
        """Answer a request whose head says that it cannot be served: as gRPC if it is that, or has no known method."""
        self._shared.admission.count(error)
        head = exchange.head
        if head.method and not head.named.get(b"content-type", b"").startswith(b"application/grpc"):
            connect.refuse(exchange, error)
            return
        fields = [(b"content-type", b"application/grpc"), *status_fields(error)]
        exchange.answer(AnswerHead(error_statuses.http_status(error), fields), b"")

    def _open(self, endpoint: RpcEndpoint, exchange: Exchange, protocol: type[Wire]) -> None:
        try:
            spoken = protocol(exchange, self._limits)
        except ServiceError as error:
            self._refuse(exchange, endpoint, error)
            return
        endpoint.kind(endpoint, exchange, spoken).start()

    def _other_grpc(self, endpoint: RpcEndpoint | None, exchange: Exchange, kind: bytes) -> None:
        main = kind.partition(b";")[0].strip().lower()
        is_web = main.startswith(b"application/grpc-web")
        if main in _GRPC and not exchange.is_h2 and exchange.head.method == b"POST":
            self._refuse(exchange, endpoint, GrpcNeedsHttp2())
        elif endpoint is None and (is_web or exchange.is_h2):
            self._refuse(exchange, None, UnknownMethod(f"there is no method {_text(exchange.head.target)!r} here"))
        elif endpoint is None:
            self._get(exchange)
        elif exchange.head.method != b"POST":
            self._refuse(exchange, endpoint, MethodNotAllowed(_text(exchange.head.method), "POST"))
        elif is_web and main.partition(b"+")[2] in (b"", b"proto", b"json"):
            self._open(endpoint, exchange, GrpcWeb)
        elif main in _GRPC and exchange.is_h2:
            self._open(endpoint, exchange, _GRPC[main])
        else:
            error = UnsupportedMediaType(_text(kind), "application/grpc, application/grpc-web, application/json")
            self._refuse(exchange, endpoint, error)

    def _get(self, exchange: Exchange) -> None:
        head = exchange.head
        path = head.target.partition(b"?")[0]
        endpoint = self._endpoints.get(path)
        is_safe = endpoint is not None and isinstance(endpoint.method, UnaryMethod) and endpoint.method.safe
        if self._site is not None and endpoint is None and path not in self._page_paths:
            SiteHandler(exchange, self._site, self._shared)
        elif endpoint is None:
            PageHandler(exchange, self._pages, self._shared)
        elif head.method == b"POST" or (is_safe and head.method == b"GET"):  # a query says nothing to a POST
            self._open(endpoint, exchange, ConnectUnary if type(endpoint.method) is UnaryMethod else ConnectStream)
        else:
            error = MethodNotAllowed(_text(head.method), "GET, POST" if is_safe else "POST")
            self._refuse(exchange, endpoint, error)

    def _refuse(self, exchange: Exchange, endpoint: RpcEndpoint | None, error: ServiceError) -> None:
        """Refuse a request that no protocol can read, in the protocol that it seems to be."""
        call = ExchangeCall(exchange, self._shared.ids)
        error.request_id = call.request_id
        self._shared.admission.count(error)
        kind = exchange.head.named.get(b"content-type", b"")
        is_grpc = kind.startswith(b"application/grpc")
        if endpoint is not None:
            endpoint.stats["grpc" if is_grpc else "http"].count_end(error.code)
        if isinstance(error, GrpcNeedsHttp2):
            self._refuse_plainly(exchange, error, status_fields(error))  # also as gRPC: a proxy may have sent it
        elif isinstance(error, UnsupportedMediaType) and (is_grpc or (kind and not kind.startswith(_ORDINARY))):
            # Nobody knows which protocol that is: some clients would take an error of another one for nonsense.
            self._refuse_plainly(exchange, error)
        elif is_grpc:
            main = kind if kind in _GRPC_KINDS else b"application/grpc"
            also = [(b"grpc-accept-encoding", b"identity,gzip")] if error.reason == "UNSUPPORTED_ENCODING" else []
            exchange.answer(AnswerHead(200, [(b"content-type", main), *also, *status_fields(error)]), b"")
        elif endpoint is not None and endpoint.is_stream and not isinstance(error, UNKNOWN_FORM):
            ConnectStream.refuse(exchange, error)
        else:
            connect.refuse(exchange, error)

    def _refuse_plainly(self, exchange: Exchange, error: ServiceError, more: Fields = ()) -> None:
        plain = (b"content-type", b"text/plain; charset=utf-8"), *error_statuses.error_headers(error), *more
        exchange.answer(AnswerHead(error_statuses.http_status(error), plain), f"{error}\n".encode("utf-8", "replace"))


class Cors:
    """The origins that an operator allows; `*` is all of them."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def answer_preflight(self, exchange: Exchange) -> bool:
        """Note the headers that the answer needs. True: it was a browser's preflight, which is answered now."""
        named = exchange.head.named
        origin = named.get(b"origin")
        if origin is None or not (origin in self._origins or b"*" in self._origins):
            return False
        exchange.extra = [(b"access-control-allow-origin", origin), *_OF_ALL_ANSWERS]
        if exchange.head.method != b"OPTIONS" or b"access-control-request-method" not in named:
            return False
        allowed = [
            (b"access-control-allow-methods", b"GET, HEAD, POST"),
            (b"access-control-allow-headers", _SENT),
            (b"access-control-max-age", b"7200"),
        ]
        exchange.answer(AnswerHead(204, allowed), b"")
        return True


def _text(raw: bytes) -> str:
    return raw[:200].decode("latin-1")
