"""A plain page over an exchange."""

from __future__ import annotations

import asyncio
from typing import Final

from serving.calls.current import CURRENT
from serving.errors import ServiceError
from serving.standard.pages import PageRequest, Pages
from serving.transport import connect
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange

_SMALL_BYTES: Final = 64 * 1024


class PageHandler:
    """One request for a page. Over HTTP/2 it waits for the end of a small body, which nobody reads."""

    def __init__(self, exchange: Exchange, pages: Pages, call: ExchangeCall) -> None:
        self._exchange, self._pages, self._call = exchange, pages, call
        self._task: asyncio.Task[None] | None = None
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
