"""The frames of a connection that carry no part of a request or answer: settings, pings, windows, resets."""

from __future__ import annotations

from typing import Final

from serving.h2 import frames
from serving.h2.frames import ConnectionFault, ErrorCode, StreamFault
from serving.h2.state import BY_PEER, GOAWAY, PONG, RESET, State

_RAPID: Final = 5  # what the reset of a stream costs that was opened in the same turn


class Control(State):
    """Reads them for a connection."""

    def _on_priority(self, _flags: int, stream_id: int, payload: bytes) -> None:
        self._pay(1)
        if not stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY belongs to a stream")
        if len(payload) != 5:
            raise StreamFault(ErrorCode.FRAME_SIZE_ERROR, "a priority has five bytes")
        if frames.WORD.unpack_from(payload)[0] & frames.MAX_STREAM_ID == stream_id:
            if self._is_idle(stream_id):
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a stream depends on itself")
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a stream depends on itself")

    def _on_reset(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id or self._is_idle(stream_id):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "RST_STREAM belongs to a stream that was opened")
        if len(payload) != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "an error code has four bytes")
        stream = self.streams.get(stream_id)
        self._pay(_RAPID if stream is not None and stream.opened_in == self._turn else 1)
        if stream is not None:
            self._remove(stream, by=BY_PEER)
            self._event(RESET, stream, frames.WORD.unpack(payload)[0], end=True)

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._pay(1)
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS belong to no stream")
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS have six bytes each")
        if flags & frames.ACK:
            return
        told = dict(frames.SETTING.iter_unpack(payload))  # of several for one thing the last counts
        if frames.INITIAL_WINDOW_SIZE in told:
            self._pay(len(self.streams) // 100)
        for name, value in told.items():
            self._on_setting(name, value)
        self.outgoing.control(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _on_setting(self, name: int, value: int) -> None:
        out, fault = self.outgoing, ErrorCode.PROTOCOL_ERROR
        if name == frames.INITIAL_WINDOW_SIZE:
            is_good = value <= frames.MAX_WINDOW and out.resize(value, [*self.streams.values()])
            fault = ErrorCode.FLOW_CONTROL_ERROR
        elif name == frames.MAX_FRAME_SIZE:
            is_good = 16_384 <= value <= 0xFFFFFF
            out.max_frame = value if is_good else out.max_frame
        elif name == frames.ENABLE_PUSH:
            is_good = value <= (0 if self.is_client else 1)
        else:
            is_good = True
            self._on_free_setting(name, value)
        if not is_good:
            raise ConnectionFault(fault, f"setting {name} cannot be {value}")

    def _on_free_setting(self, name: int, value: int) -> None:
        if name == frames.HEADER_TABLE_SIZE and value < self.settings.table_bytes:
            self.outgoing.shrink_table()
        elif name == frames.MAX_HEADER_LIST_SIZE:
            self.outgoing.most_header_bytes = value
        elif name == frames.MAX_CONCURRENT_STREAMS:
            self.peer_max_streams = value

    def _on_push(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "nobody asked for a push")

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PING belongs to no stream")
        if len(payload) != 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a PING has eight bytes")
        self._pay(1)
        if flags & frames.ACK:
            self._event(PONG, None, payload, end=False)
        else:
            self.outgoing.control(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _on_goaway(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "GOAWAY belongs to no stream")
        if len(payload) < 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a GOAWAY has at least eight bytes")
        self._pay(1)
        self._event(GOAWAY, None, frames.WORD.unpack_from(payload)[0] & frames.MAX_STREAM_ID, end=False)

    def _on_window(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a WINDOW_UPDATE has four bytes")
        if stream_id and self._is_idle(stream_id):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"stream {stream_id} was not opened")
        self._pay(1)
        more = frames.WORD.unpack(payload)[0] & frames.MAX_WINDOW
        stream = self.streams.get(stream_id)
        fault = ErrorCode.NO_ERROR if more else ErrorCode.PROTOCOL_ERROR
        if more and (stream is not None or not stream_id) and not self.outgoing.opened(stream, more):
            fault = ErrorCode.FLOW_CONTROL_ERROR
        if fault and stream_id:
            raise StreamFault(fault, "a window cannot be opened so")
        if fault:
            raise ConnectionFault(fault, "a window cannot be opened so")
