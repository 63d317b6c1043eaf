"""The state of one HTTP/2 connection, calls of its driver, and the frames that carry no part of a request."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from serving.h2 import frames, hpack
from serving.h2.frames import ConnectionFault, ErrorCode, StreamFault
from serving.h2.outgoing import Http2Stream, Outgoing

HEADERS, REFUSED, TRAILERS, DATA, RESET, GOAWAY, PONG, FAILED = range(8)

Event = tuple[int, "Http2Stream | None", Any, bool]
"""Kind, stream, what it carries, and whether the stream ends with it: Head (HEADERS), AmbiguousHead or None if it is
too large (REFUSED: a request), pairs (TRAILERS), bytes (DATA), an error code (RESET), the last stream to be served
(GOAWAY), eight bytes (PONG), a sentence (FAILED)."""

_MOST_CREDIT: Final = 10_000
_GONE: Final = 1_000  # streams that are remembered with how they ended
BY_US, BY_PEER = True, False
_RAPID: Final = 5  # what the reset of a stream costs that was opened in the same turn


class Http2Settings(NamedTuple):
    """The settings that we send to the peer at the beginning, and hold it to."""

    max_streams: int = 10_000
    max_header_bytes: int = 32 * 1024  # of one list of headers, as HPACK counts
    window_bytes: int = 65_535  # of each stream
    connection_window_bytes: int = 1 << 20
    max_frame_bytes: int = 16_384
    table_bytes: int = 4_096
    credit: int = 5_000  # frames that carry nothing, until some credit is earned

    def http2_settings(self, *, is_client: bool) -> dict[int, int]:
        """Settings that HTTP/2 has names for."""
        return {
            frames.HEADER_TABLE_SIZE: self.table_bytes,
            frames.INITIAL_WINDOW_SIZE: self.window_bytes,
            frames.MAX_FRAME_SIZE: self.max_frame_bytes,
            frames.MAX_HEADER_LIST_SIZE: self.max_header_bytes,
            **({frames.ENABLE_PUSH: 0} if is_client else {frames.MAX_CONCURRENT_STREAMS: self.max_streams}),
        }


class Http2State:
    """One side of a connection; `Http2Machine` reads for it. A driver calls this, or `outgoing` for all else."""

    def __init__(self, settings: Http2Settings, *, is_client: bool = False) -> None:
        self.settings, self.is_client = settings, is_client
        self.outgoing = Outgoing()  # the driver takes it after each turn, and says how much room there is
        self.streams: dict[int, Http2Stream] = {}  # those that are open, or have still something to send
        self.last_id = 0  # the highest stream that the peer opened
        self.failed = False  # nothing is read any more
        self.is_behind = False  # the last call of `events` stopped early
        self.peer_max_streams = 100 if is_client else frames.MAX_STREAM_ID  # how many a client may have open
        self._decoder = hpack.HpackDecoder(settings.table_bytes)
        self._gone: dict[int, bool] = {}
        self._forgotten = 0  # of streams up to this one it may not be known any more how they ended
        self._next_id = 1
        self._refuse_above = frames.MAX_STREAM_ID
        self._credit = settings.credit
        self._window, self._unread = settings.connection_window_bytes, 0
        self._half_window = settings.connection_window_bytes // 2
        self._turn = self._opened = 0
        self._buffer, self._at = b"", 0
        self._events: list[Event] = []
        # A list of headers that goes on: its stream, its flags, and the block so far.
        self._block: tuple[int, int, bytearray] | None = None
        self._is_greeted = is_client
        self.has_settings = False  # those of the peer are here
        self._is_between = False  # the next frame may be of any kind
        if is_client:
            self.outgoing.control(frames.PREFACE)
        self.outgoing.control(frames.settings(settings.http2_settings(is_client=is_client)))
        if settings.connection_window_bytes > 65_535:
            self.outgoing.control(frames.window_update(0, settings.connection_window_bytes - 65_535))

    def open(self, block: bytes, *, end: bool) -> Http2Stream:
        """A client's next stream, with its headers as a block of `hpack.encode`."""
        stream = Http2Stream(self._next_id, self.outgoing.initial_window, self.settings.window_bytes)
        self._next_id += 2
        self.streams[stream.id] = stream
        self.outgoing.headers(stream, block, end=end)
        return stream

    def acknowledge_bytes(self, stream: Http2Stream, size: int) -> None:
        """Release so many bytes of DATA events: the peer may send as many more."""
        stream.unread += size
        if stream.unread * 2 >= self.settings.window_bytes and not stream.is_received and stream.id in self.streams:
            self.outgoing.control(frames.window_update(stream.id, stream.unread))
            stream.credit += stream.unread
            stream.unread = 0

    def reset(self, stream: Http2Stream, code: int) -> None:
        """End a stream before its time; what waits in it is dropped."""
        if stream.id in self.streams:
            self._remove(stream, by=BY_US)
            self.outgoing.control(frames.reset(stream.id, code))

    def abandon(self) -> list[Http2Stream]:
        """Drop all streams, since the connection ends; return those that were open, with nothing left in them."""
        streams = [*self.streams.values()]
        self.streams.clear()
        for stream in streams:
            self.outgoing.forget(stream)
        return streams

    def ping(self, payload: bytes) -> None:
        """Ask the peer whether it is there: PONG brings the eight bytes back."""
        self.outgoing.control(frames.frame(frames.PING, 0, 0, payload))

    def go_away(self, code: ErrorCode = ErrorCode.NO_ERROR, text: str = "", *, soon: bool = False) -> None:
        """Serve no streams beyond those that were opened; `soon`: a warning first, none is refused yet."""
        if not soon:
            self._refuse_above = min(self._refuse_above, self.last_id)
        self.outgoing.control(frames.goaway(frames.MAX_STREAM_ID if soon else self._refuse_above, code, text))

    def pump(self) -> None:
        """Make frames of what waits, as far as windows and room allow; forget the streams that are through."""
        self.outgoing.pump()
        self.settle()

    def settle(self) -> None:
        """Forget the streams that have ended on both sides; a server's early answer ends the request, too."""
        for stream in self.outgoing.ended:
            if stream.is_received:
                self.streams.pop(stream.id, None)
                stream.owner = None
            elif not self.is_client:
                self.reset(stream, ErrorCode.NO_ERROR)
        self.outgoing.ended.clear()

    def earn(self, more: int) -> None:
        """Let the peer send so many more frames that carry nothing: time has passed."""
        self._credit = min(self._credit + more + self.outgoing.earned, _MOST_CREDIT)
        self.outgoing.earned = 0

    def _pay(self, cost: int) -> None:
        self._credit -= cost
        if self._credit < 0:
            raise ConnectionFault("too many empty frames", ErrorCode.ENHANCE_YOUR_CALM)

    def _event(self, kind: int, stream: Http2Stream | None, what: Any, *, end: bool) -> None:
        self._events.append((kind, stream, what, end))
        if end and stream is not None and kind != RESET:
            stream.is_received = True
            if stream.is_sent:
                self.streams.pop(stream.id, None)

    def _check_length(self, stream: Http2Stream, size: int, *, end: bool) -> None:
        left = stream.expected - size
        if stream.expected >= 0 and (left < 0 or (end and left)):
            raise StreamFault("the length of the body is not its content-length")
        stream.expected = max(left, -1)

    def _reset(self, stream_id: int, code: ErrorCode) -> None:
        stream = self.streams.get(stream_id)
        if stream is None:
            self.outgoing.control(frames.reset(stream_id, code))
            self._note_gone(stream_id, by=BY_US)
        else:
            self.reset(stream, code)
            self._event(RESET, stream, code, end=True)

    def _remove(self, stream: Http2Stream, *, by: bool) -> None:
        self.streams.pop(stream.id, None)
        self.outgoing.forget(stream)
        self._note_gone(stream.id, by=by)

    def _note_gone(self, stream_id: int, *, by: bool) -> None:
        self._gone[stream_id] = by
        if len(self._gone) > _GONE:
            self._forgotten = max(self._forgotten, oldest := next(iter(self._gone)))
            del self._gone[oldest]

    def _on_closed(self, stream_id: int) -> None:
        """Judge a frame on a stream that is not open: to one that we reset, the peer may still send for a while."""
        if self._is_idle(stream_id):
            raise ConnectionFault(f"stream {stream_id} was not opened")
        by = self._gone.get(stream_id)
        self._pay(1)
        if by is None and not self.is_client and stream_id > self._forgotten:
            raise ConnectionFault(f"stream {stream_id} has ended", ErrorCode.STREAM_CLOSED)
        if by is BY_PEER:
            raise StreamFault(f"stream {stream_id} was reset by its peer", ErrorCode.STREAM_CLOSED)

    def _is_idle(self, stream_id: int) -> bool:
        return stream_id >= self._next_id if self.is_client and stream_id & 1 else stream_id > self.last_id

    def _fail(self, fault: ConnectionFault) -> None:
        self.failed = True
        self.go_away(fault.code, str(fault))
        self._event(FAILED, None, f"{fault.code.name}: {fault}", end=True)


class Http2Control(Http2State):
    """Settings, pings, windows, priorities and resets."""

    def _on_priority(self, _flags: int, stream_id: int, payload: bytes) -> None:
        self._pay(1)
        if not stream_id:
            raise ConnectionFault("PRIORITY on stream 0")
        if len(payload) != 5:
            raise StreamFault("a priority must have five bytes", ErrorCode.FRAME_SIZE_ERROR)
        self._check_priority(stream_id, payload)

    def _check_priority(self, stream_id: int, payload: bytes) -> None:
        if frames.WORD.unpack_from(payload)[0] & frames.MAX_STREAM_ID == stream_id:
            raise ConnectionFault("a stream depends on itself")

    def _on_reset(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id or self._is_idle(stream_id):
            raise ConnectionFault("RST_STREAM on a stream that was not opened")
        if len(payload) != 4:
            raise ConnectionFault("an error code must have four bytes", ErrorCode.FRAME_SIZE_ERROR)
        stream = self.streams.get(stream_id)
        self._pay(_RAPID if stream is not None and stream.opened_in == self._turn else 1)
        if stream is not None:
            self._remove(stream, by=BY_PEER)
            self._event(RESET, stream, frames.WORD.unpack(payload)[0], end=True)

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._pay(1)
        if stream_id:
            raise ConnectionFault("SETTINGS on a stream other than 0")
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise ConnectionFault("each setting must have six bytes", ErrorCode.FRAME_SIZE_ERROR)
        if flags & frames.ACK:
            return
        told = dict(frames.SETTING.iter_unpack(payload))  # of several values of one setting the last counts
        if frames.INITIAL_WINDOW_SIZE in told:
            self._pay(len(self.streams) // 100)
        for name, value in told.items():
            self._on_setting(name, value)
        self.outgoing.control(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _on_setting(self, name: int, value: int) -> None:
        out, fault, is_good = self.outgoing, ErrorCode.PROTOCOL_ERROR, True
        if name == frames.INITIAL_WINDOW_SIZE:
            is_good = value <= frames.MAX_WINDOW and out.resize(value, [*self.streams.values()])
            fault = ErrorCode.FLOW_CONTROL_ERROR
        elif name == frames.MAX_FRAME_SIZE:
            is_good = 16_384 <= value <= 0xFFFFFF
            out.max_frame = value if is_good else out.max_frame
        elif name == frames.ENABLE_PUSH:
            is_good = value <= (0 if self.is_client else 1)
        elif name == frames.HEADER_TABLE_SIZE:
            out.must_shrink |= value < self.settings.table_bytes
        elif name == frames.MAX_HEADER_LIST_SIZE:
            out.most_header_bytes = value
        elif name == frames.MAX_CONCURRENT_STREAMS:
            self.peer_max_streams = value
        if not is_good:
            raise ConnectionFault(f"setting {name} cannot be {value}", fault)

    def _on_push(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        raise ConnectionFault("PUSH_PROMISE is not allowed")

    def _on_unknown(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        self._pay(1)

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault("PING on a stream other than 0")
        if len(payload) != 8:
            raise ConnectionFault("a PING must have eight bytes", ErrorCode.FRAME_SIZE_ERROR)
        self._pay(1)
        if flags & frames.ACK:
            self._event(PONG, None, payload, end=False)
        else:
            self.outgoing.control(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _on_goaway(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault("GOAWAY on a stream other than 0")
        if len(payload) < 8:
            raise ConnectionFault("a GOAWAY must have at least eight bytes", ErrorCode.FRAME_SIZE_ERROR)
        self._pay(1)
        self._event(GOAWAY, None, frames.WORD.unpack_from(payload)[0] & frames.MAX_STREAM_ID, end=False)

    def _on_window(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault("a WINDOW_UPDATE must have four bytes", ErrorCode.FRAME_SIZE_ERROR)
        stream = self.streams.get(stream_id)
        is_away = stream is None and stream_id != 0
        if is_away and self._is_idle(stream_id):
            raise ConnectionFault(f"stream {stream_id} was not opened")
        self._pay(1)
        more = frames.WORD.unpack(payload)[0] & frames.MAX_WINDOW
        if more and (is_away or self.outgoing.widen_window(stream, more)):
            return
        code = ErrorCode.FLOW_CONTROL_ERROR if more else ErrorCode.PROTOCOL_ERROR
        kind = StreamFault if stream_id else ConnectionFault
        raise kind("a window update of 0, or beyond the largest window", code)
