"""The ASGI application: which path is whose."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from serving import wire
from serving.calls.incoming import HttpCall
from serving.calls.methods import Duplex, Method, Streaming, Unary
from serving.encoding import gzipping
from serving.errors import HqError, UnknownMethod
from serving.errors.exchanges import MethodNotAllowed
from serving.http.asgi import Endpoint, Headers, Receive, Scope, Send, respond, respond_error
from serving.http.connect_stream import StreamEndpoint
from serving.http.connect_unary import UnaryEndpoint
from serving.http.media import accepts_gzip
from serving.http.pages import Page, PageRequest
from serving.rights.rules import NOBODY, OPEN, PAGES
from serving.surroundings import Surroundings

_PAGE_METHODS: Final = ("GET", "HEAD")


class HttpApp:
    """Answers calls by their method's path and pages by theirs."""

    def __init__(self, methods: Sequence[Method], pages: Mapping[str, Page], shared: Surroundings) -> None:
        self._endpoints: dict[str, Endpoint] = {
            "/" + m.path: _endpoint(m, shared) for m in methods if not isinstance(m, Duplex)
        }
        self._pages = dict(pages)
        self._guards = {path: shared.guard(path, PAGES.get(path, NOBODY)) for path in pages}
        self._shared = shared

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        call = self._endpoints.get(_path(scope))
        if call is not None and scope["method"] == "POST":
            return call(scope, receive, send)
        return self._other(scope, send)

    async def _other(self, scope: Scope, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        call, guard = HttpCall(scope, headers, self._shared.ids), self._guards.get(_path(scope))
        try:
            page = self._page(_path(scope), scope["method"])
            if guard is not None and guard.admit is not None:
                guard.admit(call)
            if PAGES.get(_path(scope)) is not OPEN:
                self._shared.admission.check_rate(call.caller)
            answer = await page(PageRequest(headers, scope["query_string"], call))
            body = answer.body
            answer_headers: Headers = [(b"content-type", answer.content_type.encode("latin-1")), *answer.headers]
            if len(body) >= self._shared.limits.gzip_min_bytes and accepts_gzip(headers.get(b"accept-encoding")):
                body = await gzipping.compress(body, self._shared.limits.gzip_level)
                answer_headers.append((b"content-encoding", b"gzip"))
        except BaseException as error:
            told = wire.as_hq_error(error, call)
            self._shared.admission.count(told)
            if guard is not None:
                guard.refused(call, told)
            await respond_error(send, told, [])
            return
        await respond(send, answer.status, answer_headers, body)

    def _page(self, path: str, http_method: str) -> Page:
        if path in self._endpoints:
            raise MethodNotAllowed(http_method, "POST")
        page = self._pages.get(path)
        if page is None:
            raise self._unknown(path)
        if http_method not in _PAGE_METHODS:
            raise MethodNotAllowed(http_method, ", ".join(_PAGE_METHODS))
        return page

    def _unknown(self, path: str) -> HqError:
        return UnknownMethod(f"there is no {path[:200]!r} here: a call is POST /<service>/<method>")


def _path(scope: Scope) -> str:
    """As it was sent: decoded, `%2F` would pass by the rules of a proxy that guards calls by their paths."""
    raw: bytes = scope["raw_path"]
    return raw.decode("latin-1")


def _endpoint(method: Unary | Streaming, shared: Surroundings) -> Endpoint:
    return UnaryEndpoint(method, shared) if isinstance(method, Unary) else StreamEndpoint(method, shared)
