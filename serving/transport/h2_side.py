"""One HTTP/2 connection: its machine, its exchanges, and the turns that they take."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from serving.calls.current import CURRENT
from serving.h2 import hpack, state
from serving.h2.frames import ErrorCode
from serving.h2.machine import Http2Machine
from serving.h2.outgoing import Http2Stream
from serving.h2.state import Event, Http2Settings
from serving.head import AmbiguousHead, Head
from serving.limiting.peers import Peer
from serving.protocol_errors import HeadersTooLarge, MalformedHttp
from serving.transport.connection import Core, ServerConnection
from serving.transport.exchange import NO_HANDLER, AnswerHead, Exchange, Fields, with_extra

_ROOM_BYTES: Final = 512 * 1024  # DATA handed to the transport at once, at most
_JOINED_BYTES: Final = 32 * 1024  # output up to this size waits for the next turn's
_BATCH, _TURN_S = 8, 0.001  # requests between looks at the clock
_EARNED_PER_S: Final = 100.0
_DRAIN_S: Final = 1.0  # between the warning that no more streams are served, and the last word
_DRAINING, _ALIVE = b"draining", b"alive?  "
_CONTINUE: Final = hpack.encode([(b":status", b"100")])
_NO_HEAD: Final = Head(b"", b"/", b"", [], {})


class Http2Connection(ServerConnection):
    def __init__(self, core: Core, transport: asyncio.Transport, peer: Peer, surplus: str = "") -> None:
        super().__init__(core, transport, peer, surplus)
        limits = core.limits
        self.machine = Http2Machine(Http2Settings(limits.max_streams_per_connection, limits.max_header_bytes))
        self._incomplete: dict[Exchange, float] = {}
        self._blocked: dict[Http2Stream, tuple[float, int]] = {}
        self._in_turn = self._is_flushing = self._is_full = self._is_heard = False
        self._is_leaving = self._has_left = False
        self._heard_at = self._busy_at = self.loop.time()
        self._pinged_at: float | None = None
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._is_heard = True
        if self.is_closing or self.machine.failed:
            return
        self.machine.receive(data)
        self.take_turn()

    def handle(self) -> None:
        machine, turns, until = self.machine, self.core.turns, 0.0
        self._in_turn = True
        machine.outgoing.room = 0 if self.is_paused else _ROOM_BYTES
        while True:
            events = machine.events(_BATCH)
            turns.left -= len(events)
            self._tell(events)
            if not machine.is_behind or turns.left <= 0 or 0.0 < until < self.loop.time():
                break
            until = until or self.loop.time() + _TURN_S
        self._in_turn = False
        CURRENT.set(None)
        if not machine.is_behind or machine.outgoing.size > _JOINED_BYTES:
            self._flush()
        if machine.is_behind:
            self.wait_in_line()
        elif self._is_full and not self.is_closing:
            self._is_full = False
            self.transport.resume_reading()

    def hold_back(self) -> None:
        if not self._is_full:
            self._is_full = True
            self.transport.pause_reading()

    def _tell(self, events: list[Event]) -> None:
        for kind, stream, what, end in events:
            if stream is None or kind == state.RESET:
                self._handle_rest(kind, stream, what)
            elif kind == state.HEADERS:
                self._open(stream, what, end=end)
            elif stream.owner is not None:  # else it was turned away with its connection
                if end and self._incomplete:
                    self._incomplete.pop(stream.owner, None)
                stream.owner.receive(what if kind == state.DATA else b"", end=end)
            elif kind == state.REFUSED:
                self._refuse(stream, what)

    def _open(self, stream: Http2Stream, head: Head, *, end: bool) -> None:
        if self.surplus and self.has_no_place(head):
            return
        exchange = stream.owner = H2Exchange(self, stream, head)
        if not stream.is_received:  # else the rest of it is among the events to come
            self._incomplete[exchange] = self.loop.time()
            if head.named.get(b"expect") == b"100-continue":
                self.machine.outgoing.headers(stream, _CONTINUE, end=False)
        self.core.router.open(exchange)
        if end:
            exchange.receive(b"", end=True)

    def _refuse(self, stream: Http2Stream, fault: AmbiguousHead | None) -> None:
        """Answer a request whose head cannot be served; `fault` None: the head is over the limit."""
        head = _NO_HEAD if fault is None else fault.head
        if self.surplus and self.has_no_place(head):
            return
        stream.owner = H2Exchange(self, stream, head)
        limit = self.core.limits.max_header_bytes
        self.core.router.refuse(stream.owner, HeadersTooLarge(limit) if fault is None else MalformedHttp(str(fault)))

    def _handle_rest(self, kind: int, stream: Http2Stream | None, what: Any) -> None:
        if stream is not None and stream.owner is not None:
            self._incomplete.pop(stream.owner, None)
            stream.owner.leave()
        elif kind == state.PONG:
            self._pinged_at = None
            if what == _DRAINING and self._is_leaving:
                self._say_last()
        elif kind == state.FAILED:
            limit = "frame_floods" if what.startswith("ENHANCE_YOUR_CALM") else "malformed_http"
            self.core.admission.refused[limit] += 1
            self._hang_up()

    def over(self, exchange: Exchange) -> None:
        """Go on after an answer that is complete, though it may not have left."""
        exchange.handler = NO_HANDLER  # else each call would be a reference cycle
        if self._incomplete:
            self._incomplete.pop(exchange, None)
        self.flush_soon()

    def flush_soon(self) -> None:
        """Write what is there at the end of this turn, once."""
        if self.machine.outgoing.waiting:
            self.account(self.machine.outgoing.waiting)
        if not self._in_turn and not self._is_flushing:
            self._is_flushing = True
            self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        if self.is_lost:
            return
        machine, out = self.machine, self.machine.outgoing
        machine.settle()
        if out.waiting and not self.is_paused:
            out.room = max(0, _ROOM_BYTES - out.size)
            machine.pump()
        if out.frames:
            size = out.size
            self.write(out.take(), size)
        out.room = 0 if self.is_paused else _ROOM_BYTES
        if out.drained or out.waiting or self.waiting or self.is_paused:
            self._see_what_waits()
        if self._has_left and not machine.streams and not out.frames:
            self.close()

    def _see_what_waits(self) -> None:
        out = self.machine.outgoing
        drained, out.drained = out.drained, []
        for stream in drained:
            if stream.owner is not None:
                stream.owner.wake()
        if out.is_ready and not self.is_paused:
            self.flush_soon()
        self.account(out.waiting)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._flush()

    def relieve(self) -> None:
        """End the stream in which most waits; if nothing waits in any, the connection."""
        slowest = max(self.machine.streams.values(), key=lambda stream: stream.queued, default=None)
        if slowest is None or not slowest.queued:
            super().relieve()
        else:
            self._give_up(slowest, "max_answers_bytes")

    def _give_up(self, stream: Http2Stream, limit: str) -> None:
        self.core.admission.refused[limit] += 1
        self.machine.reset(stream, ErrorCode.ENHANCE_YOUR_CALM)
        stream.owner.leave()
        self.flush_soon()

    def tick(self, now: float) -> None:
        self.machine.earn(max(1, round(_EARNED_PER_S * self.core.tick_s)))
        if self._is_heard:
            self._is_heard, self._heard_at, self._pinged_at = False, now, None
        if self._incomplete:
            self._check_late(now)
        if self.waiting or self.machine.outgoing.waiting:
            self.account(self.machine.outgoing.waiting)  # a slow reader may have taken some, with no call to tell of it
            self.check_stall(now)
            if self.transport.is_closing():
                return
            self._check_blocked(now)
        if self.machine.streams:
            self._busy_at = now
        limits = self.core.limits
        if now > self._retire_at + limits.max_connection_age_grace_s:
            self.expire()
        elif now > self._retire_at or now - self._busy_at > limits.max_connection_idle_s:
            self.shut_down()
        self._check_alive(now)

    def _check_late(self, now: float) -> None:
        oldest = now - self.core.limits.slow_request_s
        for exchange in [one for one, since in self._incomplete.items() if since < oldest]:
            self._incomplete.pop(exchange, None)
            exchange.handler.on_request_timeout()

    def _check_blocked(self, now: float) -> None:
        """End streams whose reader opens no window, while the connection goes on."""
        before, self._blocked = self._blocked, {}
        for stream in [one for one in self.machine.streams.values() if one.queued and one.window <= 0]:
            if measured := self.still_taking(before.get(stream), now, stream.sent):
                self._blocked[stream] = measured
            else:
                self._give_up(stream, "stalled_write_s")

    def _check_alive(self, now: float) -> None:
        limits = self.core.limits
        if self._pinged_at is not None and now - self._pinged_at > limits.ping_timeout_s:
            self.abort_connection()
        elif self._pinged_at is None and now - self._heard_at > limits.ping_interval_s and not self.is_closing:
            self._pinged_at = now
            self.machine.ping(_ALIVE)
            self.flush_soon()

    def turn_away(self, limit: str) -> None:
        super().turn_away(limit)
        self.machine.last_id = 0  # tells the client that no stream was served: it may send them elsewhere
        self.machine.go_away(ErrorCode.ENHANCE_YOUR_CALM, limit)
        self.machine.failed = True
        self._hang_up()

    def _hang_up(self) -> None:
        self._leave_all()
        self._flush()
        self.close(lingers=True)

    def shut_down(self) -> None:
        if self._is_leaving or self.is_closing:
            return
        self._is_leaving = True
        self.machine.go_away(soon=True)
        self.machine.ping(_DRAINING)
        self.loop.call_later(_DRAIN_S, self._say_last)
        self.flush_soon()

    def _say_last(self) -> None:
        if not self._has_left and not self.is_closing:
            self._has_left = True
            self.machine.go_away()
            self.flush_soon()

    def expire(self) -> None:
        self.shut_down()
        for stream in [*self.machine.streams.values()]:
            stream.owner.handler.expire()
        self._say_last()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._leave_all()

    def _leave_all(self) -> None:
        self._incomplete.clear()
        self._blocked.clear()
        for stream in self.machine.abandon():
            if stream.owner is not None:
                stream.owner.leave()


class H2Exchange(Exchange):
    is_h2 = True

    def __init__(self, side: Http2Connection, stream: Http2Stream, head: Head) -> None:
        self.head, self.peer, self._side, self._stream = head, side.peer, side, stream

    def answer(self, head: AnswerHead, body: bytes, trailers: bytes = b"", lead: bytes = b"") -> None:
        if self.is_over:
            return
        self.is_over = self.sent_any = True
        if self.extra:
            head = with_extra(head, self.extra)
        side, stream = self._side, self._stream
        out = side.machine.outgoing
        if trailers:
            out.answer(stream, head.block, body, trailers, lead)
        else:
            is_bare = not body or self.head.method == b"HEAD"
            block = head.block if not body else head.block + hpack.encode([(b"content-length", b"%d" % len(body))])
            out.headers(stream, block, end=is_bare)
            if not is_bare:
                out.data(stream, body, end=True)
        side.over(self)

    def begin(self, head: AnswerHead) -> None:
        if not self.is_over:
            self.sent_any = True
            self._side.machine.outgoing.headers(self._stream, with_extra(head, self.extra).block, end=False)
            self._side.flush_soon()

    def send(self, chunk: bytes) -> None:
        if not self.is_over:
            self._side.machine.outgoing.data(self._stream, chunk)
            self._side.flush_soon()

    def finish(self, trailers: Fields | None = None) -> None:
        if not self.is_over:
            self.is_over = True
            out = self._side.machine.outgoing
            if trailers is None:
                out.data(self._stream, b"", end=True)
            else:
                out.trailers(self._stream, hpack.encode(trailers))
            self._side.over(self)

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._side.machine.reset(self._stream, ErrorCode.INTERNAL_ERROR)
            self._side.over(self)

    def acknowledge_bytes(self, size: int) -> None:
        machine = self._side.machine
        machine.acknowledge_bytes(self._stream, size)
        if machine.outgoing.frames:
            self._side.flush_soon()

    @property
    def is_waiting(self) -> bool:
        return self._stream.queued > 0

    @property
    def most_trailer_bytes(self) -> int:
        return self._side.machine.outgoing.most_header_bytes
