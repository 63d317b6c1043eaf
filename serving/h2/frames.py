"""Frames of HTTP/2 (RFC 9113, 4 and 6): their numbers, and their bytes."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
MAX_WINDOW: Final = (1 << 31) - 1
MAX_STREAM_ID: Final = (1 << 31) - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)

FRAME: Final = struct.Struct(">HBBBL")  # length (16 bits, 8 bits), type, flags, stream
WORD: Final = struct.Struct(">L")
SETTING: Final = struct.Struct(">HL")
GOAWAY_HEAD: Final = struct.Struct(">LL")


class ErrorCode(IntEnum):
    """Why a stream or connection ended (RFC 9113, 7)."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Http2Fault(Exception):
    """The peer broke the protocol."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.PROTOCOL_ERROR) -> None:
        super().__init__(text)
        self.code = code


class ConnectionFault(Http2Fault):
    """A protocol violation that ends the connection."""


class StreamFault(Http2Fault):
    """A protocol violation that ends one stream."""


def head(length: int, kind: int, flags: int, stream_id: int) -> bytes:
    return FRAME.pack(length >> 8, length & 0xFF, kind, flags, stream_id)


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return head(len(payload), kind, flags, stream_id) + payload


def settings(values: dict[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(SETTING.pack(*pair) for pair in values.items()))


def window_update(stream_id: int, more: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream_id, WORD.pack(more))


def reset(stream_id: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream_id, WORD.pack(code))


def goaway(last_id: int, code: int, text: str = "") -> bytes:
    """A GOAWAY: no streams above `last_id` were or will be served."""
    return frame(GOAWAY, 0, 0, GOAWAY_HEAD.pack(last_id, code) + text.encode()[:200])


def strip_padding(flags: int, payload: bytes) -> bytes:
    """The payload of DATA or HEADERS without its padding. Raises ConnectionFault."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault("padding is longer than its frame")
    return payload[1 : len(payload) - payload[0]]
