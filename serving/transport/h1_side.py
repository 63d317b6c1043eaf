"""One HTTP/1.1 connection: its machine, and its exchanges, one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from serving.calls.current import CURRENT
from serving.errors import ServiceError, TooLarge
from serving.h1 import machine
from serving.h1.machine import Begun, Event, Http1Fault, Http1Machine
from serving.limiting.peers import Peer
from serving.protocol_errors import HeadersTooLarge, MalformedHttp, SlowRequest, TooManyConnections
from serving.transport import connect
from serving.transport.connection import Core, ServerConnection
from serving.transport.exchange import NO_HANDLER, AnswerHead, Exchange, Fields, with_extra

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_NO_BODY: Final = (204, 304)


class H1Side(ServerConnection):
    def __init__(self, core: Core, transport: asyncio.Transport, peer: Peer, surplus: str = "") -> None:
        super().__init__(core, transport, peer, surplus)
        self._machine = Http1Machine(core.limits.max_header_bytes)
        self._route = core.router.open if peer.is_secure or peer.is_local else core.router.open_plain
        self._events: deque[Event] = deque()
        self._exchange: H1Exchange | None = None
        self._is_advancing = self._is_full = self._is_leaving = False
        self._out: list[bytes] = []
        self._idle_at = self.loop.time()
        self._begun_at: float | None = None  # when the request began that has not arrived yet
        self._body_bytes = self._unwanted_bytes = 0
        self._most_unwanted_bytes = 2 * core.limits.max_request_bytes  # of an answered request, or of mere framing

    def data_received(self, data: bytes) -> None:
        if self.is_closing:  # as much as one request may have is dropped; then the sender has to wait
            self._unwanted_bytes += len(data)
            if self._unwanted_bytes > self.core.limits.max_request_bytes and not self.is_lost:
                self.transport.pause_reading()
            return
        if events := self._machine.receive(data):
            self._events += events
            self.take_turn()
        elif self._machine.is_reading_body and self._exchange is not None:
            self._body_bytes += len(data)
            if self._body_bytes > self._most_unwanted_bytes:
                self._refuse(TooLarge("the body has too much chunking overhead"))
        if not (self._machine.is_reading_head or self._machine.is_reading_body):
            self._begun_at = None
        elif self._begun_at is None:
            self._begun_at = self.loop.time()

    def handle(self) -> None:
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while (event := self._next_event()) is not None:
                kind, what, end = event
                if kind == machine.HEAD:
                    self._open(what)
                elif kind == machine.BODY:
                    self._body(what, end=end)
                else:
                    self._refuse_fault(what)
        finally:
            self._is_advancing = False
        CURRENT.set(None)
        self._flush()
        if self._events or self.is_paused or self._is_full:
            self.hold_back()

    def _next_event(self) -> Event | None:
        """Return the next event to handle; None: nothing came, or it has to wait."""
        if not self._events or self.is_closing:
            return None
        if self._events[0][0] == machine.HEAD:
            if self._exchange is not None:
                kind, what, _ = self._events[-1]
                if kind == machine.FAULT:
                    self._refuse_fault(what)  # whoever sends that gets no answer to earlier requests either
                return None
            if self.core.turns.left <= 0:
                self.wait_in_line()
                return None
            self.core.turns.left -= 1
        return self._events.popleft()

    def _open(self, begun: Begun) -> None:
        if self.surplus and self.has_no_place(begun.head):
            return
        if self._is_leaving or self.loop.time() > self._retire_at:
            begun = begun._replace(keep_alive=False)
        exchange = self._exchange = H1Exchange(self, begun)
        self._body_bytes = self._unwanted_bytes = 0
        self._route(exchange)
        if begun.expects_continue and not exchange.sent_any:
            exchange.is_continued = True
            self._out.append(_CONTINUE)

    def _body(self, chunk: bytes, *, end: bool) -> None:
        if (exchange := self._exchange) is None:
            return
        exchange.is_received = exchange.is_received or end
        if exchange.is_over and chunk:
            self._unwanted_bytes += len(chunk)
            if self._unwanted_bytes > self._most_unwanted_bytes and not end:
                self.close(lingers=True)
                return
        exchange.handler.data(chunk, end=end)
        if exchange.is_over and exchange is self._exchange:
            self.over(exchange)

    def hold_back(self) -> None:
        """Read no more while requests wait for the one ahead of them, or answers for their reader."""
        must_wait = bool(self._events) or self.is_paused
        if must_wait != self._is_full and not self.is_closing and not self.is_lost:
            self._is_full = must_wait
            if must_wait:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    def will_read_rest(self, exchange: H1Exchange) -> bool:
        """Whether the rest of its request is here, or will come and is not too long to be read for nothing."""
        if not self._machine.is_reading_body:
            return True
        named = exchange.head.named
        size = int(named.get(b"content-length", b"0"))
        is_held_back = size > 0 and exchange.begun.expects_continue and not exchange.is_continued
        return not is_held_back and b"transfer-encoding" not in named and size <= self._most_unwanted_bytes

    def write_parts(self, parts: list[bytes]) -> None:
        """Write, at the end of this turn of the loop where one is going on."""
        self._out += parts
        if not self._is_advancing:
            self._flush()

    def over(self, exchange: H1Exchange) -> None:
        """Go on after an answer that is complete, though it may not have left."""
        exchange.handler = NO_HANDLER  # else each call would be a reference cycle
        if exchange.ends_connection:
            self.close(lingers=not exchange.is_received)
        elif not exchange.is_received:
            return  # what is left of the request is read and dropped, before the next one or the end
        elif not exchange.keeps_alive:
            self.close()
        else:
            self._exchange = None
            self._idle_at = self.loop.time()
            if self._begun_at is not None and self._events:  # the next request has waited for this one
                self._begun_at = self._idle_at
            if not self._is_advancing:
                self.handle()

    def close(self, *, lingers: bool = False) -> None:
        self._flush()
        super().close(lingers=lingers)

    def _flush(self) -> None:
        parts, self._out = self._out, []
        if parts and not (self.is_lost or self.is_closing):
            self.write(parts, sum(map(len, parts)))
        if self.waiting or self.is_paused:
            self.account(0)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.account(0)
        if self._exchange is not None:
            self._exchange.wake()
        self.hold_back()

    def turn_away(self, limit: str) -> None:
        super().turn_away(limit)
        self._refuse(TooManyConnections(""))  # super() has counted it

    def _refuse_fault(self, fault: Http1Fault) -> None:
        self._refuse(HeadersTooLarge(self.core.limits.max_header_bytes) if fault.limit else MalformedHttp(str(fault)))

    def _refuse(self, error: ServiceError) -> None:
        """Answer with an error, listen to nothing any more, and hang up."""
        self.core.admission.count(error)
        exchange = self._exchange
        may_answer = exchange is None or not (exchange.sent_any or exchange.is_received)
        if exchange is not None:
            exchange.leave()
        if may_answer:
            self._out.append(connect.last_answer(error))
        self.close(lingers=True)

    def tick(self, now: float) -> None:
        limits = self.core.limits
        if self.is_closing:
            return
        if self._begun_at is not None and now - self._begun_at > limits.slow_request_s and not self._events:
            self._late(self._exchange)
        if self.waiting:
            self.account(0)
            self.check_stall(now)
        is_idle = self._exchange is None and self._begun_at is None and not self._events
        if is_idle and now - self._idle_at > limits.keep_alive_s and not self.is_paused:
            self.close()
        if now > self._retire_at + limits.max_connection_age_grace_s:
            self.expire()

    def _late(self, exchange: H1Exchange | None) -> None:
        if exchange is None:
            self._refuse(SlowRequest(self.core.limits.slow_request_s))
        elif exchange.is_over:
            self.close(lingers=True)
        elif not exchange.is_received:
            self._begun_at = None
            exchange.ends_soon()
            exchange.handler.on_request_timeout()

    def shut_down(self) -> None:
        self._is_leaving = True
        exchange = self._exchange
        if exchange is not None and exchange.is_over:
            self.close(lingers=True)
        elif exchange is None and not self._events:
            self.close()
        elif exchange is not None and not exchange.sent_any:
            exchange.ends_soon()

    def expire(self) -> None:
        self.shut_down()
        if self._exchange is not None:
            self._exchange.handler.expire()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._events.clear()
        if self._exchange is not None:
            self._exchange.leave()


class H1Exchange(Exchange):
    """One request; its answer has a length, or comes in chunks."""

    _is_chunked = False
    is_received = False
    is_continued = False
    ends_connection = False  # at once, without the rest of the request

    def __init__(self, side: H1Side, begun: Begun) -> None:
        self.head, self.peer, self._side, self.begun = begun.head, side.peer, side, begun
        self.keeps_alive = begun.keep_alive

    def ends_soon(self) -> None:
        """Let the connection end with the answer."""
        self.keeps_alive, self.ends_connection = False, True

    def answer(self, head: AnswerHead, body: bytes, trailers: bytes = b"", lead: bytes = b"") -> None:
        if self.is_over:
            return
        self.is_over = self.sent_any = True
        side = self._side
        length = b"" if head.status in _NO_BODY else b"content-length: %d\r\n" % len(body)
        body = b"" if self.head.method == b"HEAD" else body
        head = with_extra(head, self.extra) if self.extra else head
        side.write_parts([head.lines, side.core.date_line, length, self._ending(), body])
        side.over(self)

    def begin(self, head: AnswerHead) -> None:
        if self.is_over:
            return
        self.sent_any = True
        self._is_chunked = not self.begun.is_old
        if not self._is_chunked:
            self.ends_soon()  # nothing else tells where the answer ends
        chunked = b"transfer-encoding: chunked\r\n" if self._is_chunked else b""
        self._side.write_parts([with_extra(head, self.extra).lines, self._side.core.date_line, chunked, self._ending()])

    def send(self, chunk: bytes) -> None:
        if not self.is_over and chunk:
            self._side.write_parts([b"%x\r\n" % len(chunk), chunk, b"\r\n"] if self._is_chunked else [chunk])

    def finish(self, trailers: Fields | None = None) -> None:
        if not self.is_over:
            self.is_over = True
            if self._is_chunked:
                self._side.write_parts([b"0\r\n\r\n"])
            self._side.over(self)

    def abort(self) -> None:
        self.is_over = True
        if not self._side.is_lost:
            self._side.transport.abort()

    @property
    def is_waiting(self) -> bool:
        return self._side.is_paused

    def _ending(self) -> bytes:
        # A client that is answered before the end of its request may send another one behind it, unless told not to.
        self.keeps_alive = self.keeps_alive and (self.is_received or self._side.will_read_rest(self))
        return b"\r\n" if self.keeps_alive else b"connection: close\r\n\r\n"
