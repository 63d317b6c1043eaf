"""The ASGI application: which path is whose."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence

from serving.calls.incoming import HttpCall
from serving.calls.methods import Duplex, Method, Streaming, Unary
from serving.errors import HqError
from serving.http.asgi import Endpoint, Receive, Scope, Send, respond, respond_error
from serving.http.connect_stream import StreamEndpoint
from serving.http.connect_unary import UnaryEndpoint
from serving.standard.pages import Page, PageRequest, Pages
from serving.surroundings import Surroundings


class HttpApp:
    """Answers calls by their method's path and pages by theirs."""

    def __init__(self, methods: Sequence[Method], pages: Mapping[str, Page], shared: Surroundings) -> None:
        self._endpoints: dict[str, Endpoint] = {
            "/" + m.path: _endpoint(m, shared) for m in methods if not isinstance(m, Duplex)
        }
        self._pages = Pages(pages, shared, self._endpoints)
        self._shared = shared

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        call = self._endpoints.get(_path(scope))
        if call is not None and scope["method"] == "POST":
            return call(scope, receive, send)
        return self._other(scope, send)

    async def _other(self, scope: Scope, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request = PageRequest(headers, scope["query_string"], HttpCall(scope, headers, self._shared.ids))
        try:
            answer = await self._pages.answer(_path(scope), scope["method"], request)
        except HqError as error:
            await respond_error(send, error, [])
            return
        await respond(send, answer.status, answer.fields(), answer.body)


def _path(scope: Scope) -> str:
    """As it was sent: decoded, `%2F` would pass by the rules of a proxy that guards calls by their paths."""
    raw: bytes = scope["raw_path"]
    return raw.decode("latin-1")


def _endpoint(method: Unary | Streaming, shared: Surroundings) -> Endpoint:
    return UnaryEndpoint(method, shared) if isinstance(method, Unary) else StreamEndpoint(method, shared)
