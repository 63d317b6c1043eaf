"""Plain pages over an exchange: the server's own, and those of a site."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

from serving import wire
from serving.calls.current import CURRENT
from serving.context import ServerContext
from serving.errors import ServiceError, TooLarge
from serving.protocol_errors import SlowRequest
from serving.standard.pages import PageRequest, Pages
from serving.standard.site import MAX_FORM_BYTES, Site, SiteRequest
from serving.transport import connect
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange

_SMALL_BYTES: Final = 64 * 1024


class PageHandler:
    """One request for a page. Over HTTP/2 it waits for the end of a small body, which nobody reads."""

    _task: asyncio.Task[None] | None = None

    def __init__(self, exchange: Exchange, pages: Pages, shared: ServerContext) -> None:
        self._exchange, self._pages, self._call = exchange, pages, ExchangeCall(exchange, shared.ids)
        exchange.handler = self
        length = exchange.head.named.get(b"content-length", b"0")
        if not exchange.is_h2 or int(length) > _SMALL_BYTES:
            self._begin()

    def data(self, chunk: bytes, *, end: bool) -> None:
        self._exchange.consumed(len(chunk))
        if end:
            self._begin()

    def late(self) -> None:
        self._begin()

    def gone(self) -> None:
        if self._task is not None:
            self._task.cancel()

    expire = gone

    def _begin(self) -> None:
        if self._task is None:
            CURRENT.set(self._call)
            self._task = asyncio.get_running_loop().create_task(self._answer())

    async def _answer(self) -> None:
        head = self._exchange.head
        path, _, query = head.target.partition(b"?")
        request, method = PageRequest(head.named, query, self._call), head.method[:20].decode("latin-1")
        try:
            answer = await self._pages.answer(path.decode("latin-1"), method, request)
        except ServiceError as error:
            connect.refuse(self._exchange, error)
        else:
            self._exchange.answer(AnswerHead(answer.status, answer.fields()), answer.body)


class SiteHandler:
    """One request to a site: its small body first. A stream of pieces counts among the server's while it lasts."""

    _task: asyncio.Task[None] | None = None

    def __init__(self, exchange: Exchange, site: Site, shared: ServerContext) -> None:
        self._exchange, self._site, self._shared = exchange, site, shared
        self._call = ExchangeCall(exchange, shared.ids)
        self._body = bytearray()
        self._most_bytes: int = getattr(site, "max_body_bytes", MAX_FORM_BYTES)
        exchange.handler = self

    def data(self, chunk: bytes, *, end: bool) -> None:
        self._exchange.consumed(len(chunk))
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
            self._task = asyncio.get_running_loop().create_task(self._answer())
            self._task.add_done_callback(lambda _: self._forget_body())

    def late(self) -> None:
        if self._task is None:
            self._refuse(SlowRequest(f"the request did not arrive within {self._shared.limits.slow_request_s:g} s"))

    def gone(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:
            self._forget_body()

    expire = gone

    async def _answer(self) -> None:
        exchange, admission = self._exchange, self._shared.admission
        try:
            admission.check_rate(self._call.host)
            answer = await self._site(self._request())
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
                        await exchange.drained()
                exchange.finish()
            finally:
                admission.close_stream(exchange.peer.host)
        except BaseException as error:
            if exchange.sent_any:
                exchange.abort()
            elif not exchange.is_over:
                self._refuse(wire.as_service_error(error, self._call))

    def _request(self) -> SiteRequest:
        head = self._exchange.head
        path, _, query = head.target.partition(b"?")
        method, authority = head.method[:20].decode("latin-1"), head.authority.decode("latin-1")
        return SiteRequest(method, path.decode("latin-1"), query, head.named, authority, bytes(self._body), self._call)

    def _forget_body(self) -> None:
        self._shared.admission.release_body(self._exchange.peer.host, len(self._body))
        self._body = bytearray()

    def _refuse(self, error: ServiceError) -> None:
        self._forget_body()
        self._shared.admission.count(error)
        connect.refuse(self._exchange, error)
