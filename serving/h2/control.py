"""The frames of a connection that carry no part of a request or answer: settings, pings, windows, resets."""

from __future__ import annotations

from typing import Final

from serving.h2 import frames
from serving.h2.frames import ConnectionFault, ErrorCode, StreamFault
from serving.h2.state import BY_PEER, GOAWAY, PONG, RESET, Http2State

_RAPID: Final = 5  # what the reset of a stream costs that was opened in the same turn


class Http2Control(Http2State):
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
        told = dict(frames.SETTING.iter_unpack(payload))  # of several for one thing the last counts
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
