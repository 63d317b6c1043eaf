"""One request to a site over an exchange: its small body first, then the answer, or a stream of pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from serving import wire
from serving.context import ServerContext
from serving.errors import ServiceError, TooLarge
from serving.protocol_errors import SlowRequest
from serving.standard.site import MAX_FORM_BYTES, Site, SiteRequest
from serving.transport import connect
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange


class SiteHandler:
    """The exchange's handler. A stream counts among the server's streams for as long as it lasts."""

    def __init__(self, exchange: Exchange, site: Site, shared: ServerContext) -> None:
        self._exchange, self._site, self._shared = exchange, site, shared
        self._call = ExchangeCall(exchange, shared.ids)
        self._body = bytearray()
        self._most_bytes: int = getattr(site, "max_body_bytes", MAX_FORM_BYTES)
        self._task: asyncio.Task[None] | None = None
        exchange.handler = self

    def data(self, chunk: bytes, *, end: bool) -> None:
        self._exchange.consumed(len(chunk))
        if self._task is not None or self._exchange.is_over:
            return
        if len(self._body) + len(chunk) > self._most_bytes:
            self._forget_body()
            self._refuse(TooLarge(f"the body is over the limit of {self._most_bytes} bytes"))
            return
        try:
            self._shared.admission.hold_body(self._exchange.peer.host, len(chunk))
        except ServiceError as error:
            self._forget_body()
            self._refuse(error)
            return
        self._body += chunk
        if end:
            self._task = asyncio.get_running_loop().create_task(self._answer())
            self._task.add_done_callback(lambda _: self._forget_body())

    def late(self) -> None:
        if self._task is None:
            self._forget_body()
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
            if answer.stream is None:
                exchange.answer(AnswerHead(answer.status, answer.headers), answer.body)
                return
            admission.open_stream(exchange.peer.host)
            try:
                exchange.begin(AnswerHead(answer.status, answer.headers))
                await self._pump(answer.stream)
            finally:
                admission.close_stream(exchange.peer.host)
        except BaseException as error:
            self._end(error)

    async def _pump(self, stream: AsyncGenerator[bytes]) -> None:
        exchange = self._exchange
        async with aclosing(stream):
            async for piece in stream:
                exchange.send(piece)
                if exchange.is_waiting:
                    await exchange.drained()
        exchange.finish()

    def _forget_body(self) -> None:
        self._shared.admission.release_body(self._exchange.peer.host, len(self._body))
        self._body = bytearray()

    def _request(self) -> SiteRequest:
        head = self._exchange.head
        path, _, query = head.target.partition(b"?")
        method, authority = head.method[:20].decode("latin-1"), head.authority.decode("latin-1")
        return SiteRequest(method, path.decode("latin-1"), query, head.named, authority, bytes(self._body), self._call)

    def _end(self, error: BaseException) -> None:
        if self._exchange.sent_any:
            self._exchange.abort()
        elif not self._exchange.is_over:
            self._refuse(wire.as_service_error(error, self._call))

    def _refuse(self, error: ServiceError) -> None:
        self._shared.admission.count(error)
        connect.refuse(self._exchange, error)
