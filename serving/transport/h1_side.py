"""One HTTP/1.1 connection: its machine, and its exchanges, one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from serving.calls.current import CURRENT
from serving.errors import ServiceError, TooLarge
from serving.h1 import machine
from serving.h1.machine import Begun, Event, Fault, Machine
from serving.protocol_errors import HeadersTooLarge, MalformedHttp, SlowRequest, TooManyConnections
from serving.transport import connect
from serving.transport.connection import Connection, Core
from serving.transport.exchange import Peer
from serving.transport.h1_exchange import H1Exchange

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class H1Side(Connection):
    """The connection."""

    def __init__(self, core: Core, transport: asyncio.Transport, peer: Peer, surplus: str = "") -> None:
        super().__init__(core, transport, peer, surplus)
        self._machine = Machine(core.limits.max_header_bytes)
        self._events: deque[Event] = deque()
        self._exchange: H1Exchange | None = None
        self._is_advancing = self._is_full = self._is_leaving = False
        self._out: list[bytes] = []
        self._idle_at = self.loop.time()
        self._begun_at: float | None = None  # when the request began that has not arrived yet
        self._body_bytes = self._unwanted_bytes = 0
        self.max_unwanted_bytes = 2 * core.limits.max_request_bytes  # of a request that is answered, or all framing

    # --- reading ---

    def data_received(self, data: bytes) -> None:
        if self.is_closing:
            self._drop(len(data))
            return
        events = self._machine.receive(data)
        if self._machine.is_reading_body and self._exchange is not None and not events:
            self._count(len(data))
        if events:
            self._events += events
            self._advance()
            if events[-1][0] == machine.FAULT and self._must_wait():
                self._refuse_fault(events[-1][1])  # whoever sends so is not answered what it sent before
        if self._machine.is_reading_head or self._machine.is_reading_body:
            if self._begun_at is None:
                self._begun_at = self.loop.time()
        else:
            self._begun_at = None

    def _must_wait(self) -> bool:
        exchange = self._exchange
        return exchange is not None and exchange.is_received and not exchange.is_over

    def _advance(self) -> None:
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while self._events and not self.is_closing:
                kind, what, end = self._events[0]
                if kind == machine.HEAD and self._exchange is not None:
                    break
                self._events.popleft()
                if kind == machine.HEAD:
                    self._open(what)
                elif kind == machine.BODY:
                    self._body(what, end=end)
                elif self._exchange is None or not self._exchange.sent_any:
                    self._refuse_fault(what)
                else:
                    self.close(lingers=True)
        finally:
            self._is_advancing = False
        CURRENT.set(None)
        self._flush()
        if self._events or self.is_paused or self._is_full:
            self._hold_back()

    def _open(self, begun: Begun) -> None:
        if self.surplus and self.has_no_place(begun.head):
            return
        if self._is_leaving or self.loop.time() > self._retire_at:
            begun = begun._replace(keep_alive=False)
        exchange = self._exchange = H1Exchange(self, begun)
        self._body_bytes = self._unwanted_bytes = 0
        self.core.router.open(exchange)
        if begun.expects_continue and not exchange.sent_any:
            exchange.is_continued = True
            self._out.append(_CONTINUE)

    def _body(self, chunk: bytes, *, end: bool) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        exchange.is_received = exchange.is_received or end
        if exchange.is_over and chunk:
            self._unwanted_bytes += len(chunk)
            if self._unwanted_bytes > self.max_unwanted_bytes and not end:
                self.close(lingers=True)
                return
        exchange.receive(chunk, end=end)
        if exchange.is_over:
            self.over(exchange)

    def _count(self, size: int) -> None:
        self._body_bytes += size
        if self._body_bytes > self.max_unwanted_bytes:
            self._refuse(TooLarge("the body has too much chunking overhead"))

    def _drop(self, size: int) -> None:
        """More that nobody reads: as much as one request may have is let through; then the sender has to wait."""
        self._unwanted_bytes += size
        if self._unwanted_bytes > self.core.limits.max_request_bytes and not self.is_lost:
            self.transport.pause_reading()

    def _hold_back(self) -> None:
        """Read no more while requests wait for the one ahead of them, or answers for their reader."""
        must_wait = bool(self._events) or self.is_paused
        if must_wait != self._is_full and not self.is_closing and not self.is_lost:
            self._is_full = must_wait
            if must_wait:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    # --- writing ---

    @property
    def has_whole_requests(self) -> bool:
        """All that has begun to arrive is here to its end."""
        return not self._machine.is_reading_body

    def put(self, parts: list[bytes]) -> None:
        """Write, at the end of this turn of the loop where one is going on."""
        self._out += parts
        if not self._is_advancing:
            self._flush()

    def over(self, exchange: H1Exchange) -> None:
        """The answer is complete, though it may not have left."""
        exchange.handler = None  # else each call would be a circle
        if exchange is not self._exchange:
            return
        if exchange.ends_connection:
            self.close(lingers=not exchange.is_received)
        elif not exchange.is_received:
            return  # what is left of the request is read and dropped, before the next one or the end
        elif not exchange.keeps_alive:
            self.close()
        else:
            self._exchange = None
            self._idle_at = self.loop.time()
            if not self._is_advancing:
                self._advance()

    def close(self, *, lingers: bool = False) -> None:
        self._flush()
        super().close(lingers=lingers)

    def _flush(self) -> None:
        if self._out:
            parts, self._out = self._out, []
            if not (self.is_lost or self.is_closing):
                self.write(parts, sum(map(len, parts)))
        if self.waiting or self.is_paused:
            self.account(0)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.account(0)
        if self._exchange is not None:
            self._exchange.wake()
        self._hold_back()

    # --- refusals ---

    def turn_away(self, limit: str) -> None:
        super().turn_away(limit)
        self._refuse(TooManyConnections(""))  # it was counted

    def _refuse_fault(self, fault: Fault) -> None:
        if fault.limit:
            most = self.core.limits.max_header_bytes
            self._refuse(HeadersTooLarge(f"the headers are over the limit of {most} bytes"))
        else:
            self._refuse(MalformedHttp(str(fault)))

    def _refuse(self, error: ServiceError) -> None:
        """Answer with an error, listen to nothing any more, and hang up."""
        self.core.admission.count(error)
        exchange = self._exchange
        may_answer = exchange is None or not (exchange.sent_any or exchange.is_received)
        if exchange is not None and not exchange.is_over:
            exchange.leave()
        if may_answer:
            self._out.append(connect.last_answer(error))
        self._flush()
        self.close(lingers=True)

    # --- time and ends ---

    def tick(self, now: float) -> None:
        limits = self.core.limits
        if self.is_closing:
            return
        self._check_late(now)
        if self.waiting:
            self.account(0)
            self.check_stall(now)
        is_idle = self._exchange is None and self._begun_at is None and not self._events
        if is_idle and now - self._idle_at > limits.keep_alive_s and not self.is_paused:
            self.close()
        if now > self._retire_at + limits.max_connection_age_grace_s:
            self.expire()

    def _check_late(self, now: float) -> None:
        patience_s = self.core.limits.slow_request_s
        if self._begun_at is None or now - self._begun_at <= patience_s or self._events:
            return
        exchange = self._exchange
        if exchange is not None and (exchange.is_over or exchange.is_received):
            if exchange.is_over:
                self.close(lingers=True)
            return
        self._begun_at = None
        if exchange is not None and exchange.handler is not None:
            exchange.keeps_alive, exchange.ends_connection = False, True
            exchange.handler.late()
        else:
            self._refuse(SlowRequest(f"the request did not arrive within {patience_s:g} s"))

    def shut_down(self) -> None:
        self._is_leaving = True
        exchange = self._exchange
        if exchange is not None and exchange.is_over:
            self.close(lingers=True)
        elif exchange is None and not self._events:
            self.close()
        elif exchange is not None and not exchange.sent_any:
            exchange.keeps_alive, exchange.ends_connection = False, True

    def expire(self) -> None:
        self.shut_down()
        if self._exchange is not None:
            self._exchange.expire()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._events.clear()
        if self._exchange is not None:
            self._exchange.leave()
