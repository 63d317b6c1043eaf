"""Plain pages: health, metrics, and what servers add."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from serving import wire
from serving.calls.current import CURRENT
from serving.encoding import gzipping
from serving.errors import HqError, UnknownMethod
from serving.errors.exchanges import MethodNotAllowed
from serving.http.media import accepts_gzip
from serving.http.pages import Page, PageAnswer, PageRequest
from serving.rights.rules import NOBODY, OPEN, PAGES
from serving.surroundings import Surroundings
from serving.transport import connect
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange

_METHODS: Final = (b"GET", b"HEAD")
_SMALL_BYTES: Final = 64 * 1024


class Paging:
    """The pages of one server by their paths."""

    def __init__(self, pages: Mapping[str, Page], shared: Surroundings) -> None:
        self._pages, self._shared = dict(pages), shared
        self._guards = {path: shared.guard(path, PAGES.get(path, NOBODY)) for path in pages}

    def open(self, exchange: Exchange) -> None:
        """Somebody asks for a page, or for what is not there."""
        _Asked(exchange, self, ExchangeCall(exchange, self._shared.ids))

    async def answer(self, exchange: Exchange, call: ExchangeCall) -> None:
        """Answer a request whose body, if any, is not looked at."""
        path = exchange.head.target.partition(b"?")[0].decode("latin-1")
        guard, limits = self._guards.get(path), self._shared.limits
        try:
            page = self._page(path, exchange.head.method)
            if guard is not None and guard.admit is not None:
                guard.admit(call)
            if PAGES.get(path) is not OPEN:
                self._shared.admission.check_rate(call.caller)
            named = exchange.head.named
            answer = await page(PageRequest(named, exchange.head.target.partition(b"?")[2], call))
            body, fields = answer.body, _fields(answer)
            if len(body) >= limits.gzip_min_bytes and accepts_gzip(named.get(b"accept-encoding")):
                body = await gzipping.compress(body, limits.gzip_level)
                fields.append((b"content-encoding", b"gzip"))
        except BaseException as error:
            told = wire.as_hq_error(error, call)
            self._shared.admission.count(told)
            if guard is not None:
                guard.refused(call, told)
            connect.refuse(exchange, told)
            return
        exchange.answer(AnswerHead(answer.status, fields), body)

    def _page(self, path: str, method: bytes) -> Page:
        page = self._pages.get(path)
        if page is None:
            raise self._unknown(path)
        if method not in _METHODS:
            raise MethodNotAllowed(method[:20].decode("latin-1"), "GET, HEAD")
        return page

    def _unknown(self, path: str) -> HqError:
        return UnknownMethod(f"there is no {path[:200]!r} here: a call is POST /<service>/<method>")


class _Asked:
    """The handler of one request for a page. Over HTTP/2 it waits for the end of a small body, which nobody reads."""

    def __init__(self, exchange: Exchange, pages: Paging, call: ExchangeCall) -> None:
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

    def expire(self) -> None:
        self.gone()

    def _begin(self) -> None:
        if self._task is None:
            CURRENT.set(self._call)
            self._task = asyncio.get_running_loop().create_task(self._pages.answer(self._exchange, self._call))


def _fields(answer: PageAnswer) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", answer.content_type.encode("latin-1")), *answer.headers]
