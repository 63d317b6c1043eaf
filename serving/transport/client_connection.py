"""One connection to a server, as its client: the bytes of all its calls, in turns, and how it ends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final, cast

from google.rpc import code_pb2 as codes  # type: ignore[import-untyped,unused-ignore]

from serving.h2 import frames, state
from serving.h2.frames import ErrorCode
from serving.h2.machine import Http2Machine
from serving.h2.outgoing import Http2Stream
from serving.h2.state import Http2Settings
from serving.sockets import probe
from serving.transport.client_call import CallFailed, ClientCall, Options, timeout_text, unsent

_ROOM_BYTES: Final = 256 * 1024  # of DATA handed to the transport at once
_JOINED_BYTES: Final = 64 * 1024
_TICK_S: Final = 1.0
_EARNED_PER_S: Final = 100
_LINGER_S: Final = 1.0
_MOST_PINGS: Final = 2  # in a row without a message: servers end connections for more; then TCP's own probes go on
_LAST_ID: Final = frames.MAX_STREAM_ID - 2
_ALIVE: Final = b"alive?  "
_TIMEOUT: Final = b"\0\x0cgrpc-timeout"  # a field of HPACK that enters no table


class ClientConnection:
    """Calls in the order in which they come, as many at once as the peer takes. No base: see `ServerConnection`."""

    def __init__(self, name: str, options: Options, retired: Callable[[ClientConnection, str], None]) -> None:
        """`retired` is called once, when no new calls may be started any more; with a reason if none ever could."""
        self._name, self._options, self._retired = name, options, retired
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()  # done when nothing is left of it
        self.has_answered = False  # the peer has answered a call
        self._is_ready = False  # the peer's settings are here
        self.is_retired = self._is_secure = self._is_paused = self._is_flushing = self._in_turn = self._is_heard = False
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[ClientCall, None] = {}
        self._heard_at, self._pinged_at, self._pings = self._loop.time(), math.inf, 0
        self._open_at = self._heard_at  # when the window for all streams was last open, as far as was needed
        self._timer = self._loop.call_later(options.connect_timeout_s, self.abort, "no response in time")
        held = options.max_header_bytes, options.window_bytes, options.connection_window_bytes
        self._machine = Http2Machine(Http2Settings(0, *held), is_client=True)

    def start(self, call: ClientCall) -> None:
        """Send a request, now or when its turn comes."""
        call.connection = self
        if call.deadline is not None:
            call.timer = self._loop.call_at(call.deadline, self._late, call)
        self._waiting[call] = None
        self._admit()

    def leave(self, call: ClientCall) -> None:
        """End the call; a caller that still waits gets the error that the connection was closed."""
        if not call.is_over:
            self._end(call, CallFailed(codes.UNAVAILABLE, f"the connection to {self._name} was closed"))

    def acknowledge_bytes(self, call: ClientCall, size: int) -> None:
        """Release so many bytes of the messages received."""
        if call.stream is not None and size:
            self._machine.acknowledge_bytes(call.stream, size)
            if self._machine.outgoing.frames:
                self._flush_soon()

    def _open(self, call: ClientCall) -> None:
        block = call.block
        if call.deadline is not None:
            value = timeout_text(call.deadline - self._loop.time())
            block = b"".join((block, _TIMEOUT, bytes((len(value),)), value))
        machine = self._machine
        stream = call.stream = machine.open(block, end=False)
        stream.owner = call
        machine.outgoing.data(stream, call.body, end=True)
        call.block = call.body = b""
        self._pings = 0
        self._flush_soon()
        if stream.id >= _LAST_ID:
            self._refuse("")

    def _late(self, call: ClientCall) -> None:
        text = f"{self._name} did not {'answer' if self._is_ready else 'accept the connection'} in time"
        self._end(call, CallFailed(codes.DEADLINE_EXCEEDED, text, is_unprocessed=call.stream is None))

    def _end(self, call: ClientCall, error: CallFailed) -> None:
        if call.stream is None:
            self._waiting.pop(call, None)
        else:
            self._machine.reset(call.stream, ErrorCode.CANCEL)
            self._flush_soon()
        call.end(error)

    def _admit(self) -> None:
        """Begin those that wait, in order, as many as the peer takes."""
        machine = self._machine
        while self._waiting and self._is_ready and len(machine.streams) < machine.peer_max_streams:
            call = next(iter(self._waiting))
            del self._waiting[call]
            self._open(call)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are, but do not say so
        secure = transport.get_extra_info("ssl_object")
        self._is_secure = secure is not None
        if self.lost.done():
            self._transport.abort()
            return
        if secure is not None and secure.selected_alpn_protocol() != "h2":
            self.abort("it does not speak HTTP/2 over TLS")
            return
        probe(transport.get_extra_info("socket"), self._options.ping_after_s + self._options.ping_timeout_s)
        self._flush()

    def data_received(self, data: bytes) -> None:
        machine = self._machine
        if machine.failed:
            return
        self._is_heard = self._in_turn = True
        machine.receive(data)
        for kind, stream, what, end in machine.events():
            if stream is None:
                self._handle_rest(kind, what)
            elif not stream.owner.is_over:  # not ended by an earlier event of these bytes
                self._handle(kind, stream, what, end=end)
        self._in_turn = False
        if not self._is_ready and machine.has_settings and not machine.failed:
            self._is_ready = True
            self._timer.cancel()
            self._timer = self._loop.call_later(_TICK_S, self._tick)
        self._flush()

    def _handle(self, kind: int, stream: Http2Stream, what: Any, *, end: bool) -> None:
        call: ClientCall = stream.owner
        self._pings = 0
        if kind == state.DATA:
            freed = call.data(what, end=end)
            if freed and not end:
                self._machine.acknowledge_bytes(stream, freed)
        elif kind == state.TRAILERS:
            call.trailers(what)
        elif kind == state.HEADERS:
            self.has_answered = True
            call.head(what, end=end)
        else:
            call.reset(what, is_late=call.deadline is not None and self._loop.time() >= call.deadline)
        if call.is_over and stream.id in self._machine.streams:  # more may come, or something waits to be sent
            self._machine.reset(stream, ErrorCode.CANCEL)

    def _handle_rest(self, kind: int, what: Any) -> None:
        if kind == state.GOAWAY:
            self._refuse("")
            for stream in [*self._machine.streams.values()]:
                if stream.id > what:
                    self._machine.reset(stream, ErrorCode.CANCEL)
                    stream.owner.end(self._closing())
        elif kind == state.FAILED:
            self._end_all(f"HTTP/2 protocol error ({what})")

    def _flush_soon(self) -> None:
        if not self._in_turn and not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        machine, out, transport = self._machine, self._machine.outgoing, self._transport
        if transport is None or transport.is_closing():
            return
        if self._waiting:
            self._admit()
        out.room = 0 if self._is_paused else _ROOM_BYTES - out.size
        machine.pump()
        if out.frames:
            size, parts = out.size, out.take()
            if size <= _JOINED_BYTES or self._is_secure:
                transport.write(b"".join(parts))
            else:
                transport.writelines(parts)
        out.drained.clear()
        out.room = 0 if self._is_paused else _ROOM_BYTES
        if out.is_ready and not self._is_paused:
            self._flush_soon()
        if self.is_retired and not machine.streams and not self._waiting:
            self._loop.call_later(_LINGER_S, transport.abort)
            transport.close()

    def eof_received(self) -> None:
        """Close the connection: no more will come."""

    def pause_writing(self) -> None:
        self._is_paused = True
        self._machine.outgoing.room = 0

    def resume_writing(self) -> None:
        self._is_paused = False
        self._flush()

    def _tick(self) -> None:
        now = self._loop.time()
        self._timer = self._loop.call_later(_TICK_S, self._tick)
        machine, options = self._machine, self._options
        machine.earn(_EARNED_PER_S)
        if self._is_heard or not machine.streams:
            self._is_heard, self._heard_at, self._pinged_at = False, now, math.inf
        if now - self._pinged_at >= options.ping_timeout_s:
            self.abort("it does not answer")
        elif self._pinged_at == math.inf and now - self._heard_at >= options.ping_after_s and self._pings < _MOST_PINGS:
            self._pinged_at, self._pings = now, self._pings + 1
            machine.ping(_ALIVE)
            self._flush_soon()
        if machine.outgoing.window > 0 or not machine.outgoing.waiting:
            self._open_at = now
        elif now - self._open_at >= options.ping_after_s + options.ping_timeout_s:
            self.abort("it accepts no requests")

    def retire(self, reason: str = "") -> None:
        """Start no more calls; close when the others have ended."""
        if self.is_retired:
            return
        self.is_retired = True
        self._retired(self, reason)
        if self._transport is None and not self._waiting:
            self.abort(reason)
        self._flush_soon()

    def _refuse(self, reason: str) -> None:
        """Refuse the calls that wait, none of which has begun: the peer takes no more."""
        self.retire(reason)
        waiting, self._waiting = self._waiting, {}
        for call in waiting:
            call.end(unsent(reason) if reason else self._closing())

    def _closing(self) -> CallFailed:
        return unsent(f"{self._name} accepts no more calls on this connection")

    def abort(self, reason: str) -> None:
        """Hang up at once, and end all calls; those that have begun may have been carried out."""
        self._end_all(reason)
        if self._transport is not None:
            self._transport.abort()
        elif not self.lost.done():
            self.lost.set_result(None)

    def _end_all(self, reason: str) -> None:
        self._timer.cancel()
        begun = self._machine.abandon()  # first: refusing those that wait may abort again, without the reason
        self._refuse("" if self._is_ready else f"cannot connect to {self._name}: {reason}")
        for stream in begun:
            stream.owner.end(CallFailed(codes.UNAVAILABLE, f"the connection to {self._name} was closed: {reason}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.abort(str(exc or "") or "by the peer")  # a reset may come without words
