"""Plain pages over an exchange: the server's own, and those of a site."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

from serving import error_statuses
from serving.calls.current import CURRENT
from serving.context import ServerContext
from serving.errors import ServiceError, TooLarge
from serving.protocol_errors import SlowRequest
from serving.standard.pages import PageRequest, Pages
from serving.standard.site import MAX_FORM_BYTES, Site, SiteRequest
from serving.transport import connect
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange, Handler

_SMALL_BYTES: Final = 64 * 1024


class _TaskHandler(Handler):
    """A request that a task answers."""

    _task: asyncio.Task[None] | None = None

    def __init__(self, exchange: Exchange, shared: ServerContext) -> None:
        self._exchange, self._shared, self._call = exchange, shared, ExchangeCall(exchange, shared.ids)
        path, _, self._query = exchange.head.target.partition(b"?")
        self._path, self._method = path.decode("latin-1"), exchange.head.method[:20].decode("latin-1")
        exchange.handler = self

    def on_peer_gone(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def expire(self) -> None:
        self.on_peer_gone()

    def _begin(self) -> asyncio.Task[None]:
        if self._task is None:
            CURRENT.set(self._call)
            self._task = asyncio.get_running_loop().create_task(self._answer())
        return self._task

    async def _answer(self) -> None:
        """The task; whatever goes wrong, the exchange is answered."""


class PageHandler(_TaskHandler):
    """One request for a page. Over HTTP/2 it waits for the end of a small body, which nobody reads."""

    def __init__(self, exchange: Exchange, pages: Pages, shared: ServerContext) -> None:
        super().__init__(exchange, shared)
        self._pages = pages
        if not exchange.is_h2 or int(exchange.head.named.get(b"content-length", b"0")) > _SMALL_BYTES:
            self._begin()

    def data(self, chunk: bytes, *, end: bool) -> None:
        self._exchange.acknowledge_bytes(len(chunk))
        if end:
            self._begin()

    def on_request_timeout(self) -> None:
        self._begin()

    async def _answer(self) -> None:
        request = PageRequest(self._exchange.head.named, self._query, self._call)
        try:
            answer = await self._pages.answer(self._path, self._method, request)
        except ServiceError as error:
            connect.refuse(self._exchange, error)
        else:
            self._exchange.answer(AnswerHead(answer.status, answer.fields()), answer.body)


class SiteHandler(_TaskHandler):
    """One request to a site: its small body first. A stream of pieces counts among the server's while it lasts."""

    def __init__(self, exchange: Exchange, site: Site, shared: ServerContext) -> None:
        super().__init__(exchange, shared)
        self._site, self._body = site, bytearray()
        self._most_bytes: int = getattr(site, "max_body_bytes", MAX_FORM_BYTES)

    def data(self, chunk: bytes, *, end: bool) -> None:
        self._exchange.acknowledge_bytes(len(chunk))
        if self._task is not None or self._exchange.is_over:
            return
        try:
            if len(self._body) + len(chunk) > self._most_bytes:
                raise TooLarge(f"the body is over the limit of {self._most_bytes} bytes")
            self._shared.admission.hold_body(self._exchange.peer.host, len(chunk))
        except ServiceError as error:
            self._refuse(error)
            return
        self._body += chunk
        if end:
            self._begin().add_done_callback(lambda _: self._forget_body())

    def on_request_timeout(self) -> None:
        if self._task is None:
            self._refuse(SlowRequest(self._shared.limits.slow_request_s))

    def on_peer_gone(self) -> None:
        super().on_peer_gone()
        if self._task is None:
            self._forget_body()

    async def _answer(self) -> None:
        exchange, admission = self._exchange, self._shared.admission
        try:
            admission.check_rate(self._call.host)
            authority, body = exchange.head.authority.decode("latin-1"), bytes(self._body)
            asked = self._method, self._path, self._query, exchange.head.named, authority, body, self._call
            answer = await self._site(SiteRequest(*asked))
            head = AnswerHead(answer.status, answer.headers)
            if answer.stream is None:
                exchange.answer(head, answer.body)
                return
            admission.open_stream(exchange.peer.host)
            try:
                exchange.begin(head)
                async with aclosing(answer.stream) as pieces:
                    async for piece in pieces:
                        exchange.send(piece)
                        await exchange.wait_until_drained()
                exchange.finish()
            finally:
                admission.close_stream(exchange.peer.host)
        except BaseException as error:
            if exchange.sent_any:
                exchange.abort()
            elif not exchange.is_over:
                self._refuse(error_statuses.as_service_error(error, self._call))

    def _forget_body(self) -> None:
        self._shared.admission.release_body(self._exchange.peer.host, len(self._body))
        self._body = bytearray()

    def _refuse(self, error: ServiceError) -> None:
        self._forget_body()
        self._shared.admission.count(error)
        connect.refuse(self._exchange, error)
