"""gRPC, and gRPC-Web: https://github.com/grpc/grpc/blob/master/doc, PROTOCOL-HTTP2.md and PROTOCOL-WEB.md"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Final

from serving import error_statuses
from serving.encoding.envelopes import PREFIX, Message, envelope
from serving.errors import ServiceError, invalid
from serving.h2 import hpack
from serving.limiting.limits import Limits
from serving.protocol_errors import UnsupportedEncoding
from serving.transport.call import ExchangeCall
from serving.transport.exchange import Exchange, ok_head, with_extra
from serving.transport.wire import Wire

_UNITS_S: Final = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_OK, _OK_JSON = ok_head(b"application/grpc"), ok_head(b"application/grpc+json")
_OK_STATUS: Final = (b"grpc-status", b"0")
_OK_TRAILERS: Final = hpack.encode([_OK_STATUS])
_MOST_TRAILER_BYTES: Final = 8 * 1024  # what clients take if they say nothing else
_MOST_WEB_TRAILER_BYTES: Final = 64 * 1024
_TRAILERS: Final = 0x80  # the flag of a message of gRPC-Web
_UNESCAPED: Final = frozenset(range(0x20, 0x7F)) - {0x25}


@lru_cache(1_024)
def timeout_s(text: bytes) -> float:
    """Timeout of a grpc-timeout header, in seconds. Raises InvalidRequest."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or not number.isdigit() or len(number) > 8:
        raise invalid("", "grpc-timeout must be a whole number of at most eight digits, and one of H, M, S, m, u, n")
    return int(number) * _UNITS_S[unit]


class Grpc(Wire):
    transport = "grpc"

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        self._exchange, self._limits = exchange, limits  # not by super(): each call would pay for it
        self._ok = _OK_JSON if self.json_in else _OK
        named = exchange.head.named
        if b"grpc-timeout" in named:
            self.timeout_s = timeout_s(named[b"grpc-timeout"])
        if b"grpc-encoding" in named and named[b"grpc-encoding"] != b"identity":
            self._encoding = named[b"grpc-encoding"].decode("latin-1")
            if self._encoding != "gzip":
                raise UnsupportedEncoding(self._encoding)

    def unary_answer(self, call: ExchangeCall, payload: bytes) -> None:
        if request_id := call.echoed_request_id:
            call.answer_trailer("x-request-id", request_id)
        trailers = hpack.encode([_OK_STATUS, *call.trailer_fields]) if call.trailer_fields else _OK_TRAILERS
        head = with_extra(self._ok, call.head_fields) if call.head_fields else self._ok
        self._exchange.answer(head, payload, trailers, PREFIX.pack(0, len(payload)))

    def end(self, call: ExchangeCall) -> None:
        self._finish([_OK_STATUS, *call.trailer_fields])

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        ended = [*status_fields(error, self._exchange.most_trailer_bytes), *call.trailer_fields]
        if call.head_fields and not self._exchange.sent_any:
            self.begin(call)  # else clients would take the headers for trailers
        if self._exchange.sent_any:
            self._finish(ended)
        else:
            self._exchange.answer(with_extra(self._ok, ended), b"")

    def _finish(self, fields: list[tuple[bytes, bytes]]) -> None:
        self._exchange.finish(fields)


class GrpcJson(Grpc):
    json_in = True
    json_out = True


class GrpcWeb(Grpc):
    """One call over gRPC-Web, binary or as text: its trailers are a message."""

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        kind = exchange.head.named.get(b"content-type", b"")
        self._is_text = kind.startswith(b"application/grpc-web-text")
        self.json_in = self.json_out = b"+json" in kind
        codec = b"+json" if self.json_in else b"+proto"
        self._partial = b""
        super().__init__(exchange, limits)
        self._ok = ok_head(b"application/grpc-web" + (b"-text" if self._is_text else b"") + codec)

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        if self._is_text:
            text = self._partial + chunk
            cut = len(text) if end else len(text) // 4 * 4
            text, self._partial = text[:cut], text[cut:]
            chunk = _decode_base64(text)
        return super().take(chunk, end=end)

    def unary_answer(self, call: ExchangeCall, payload: bytes) -> None:
        self._answer(call, envelope(0, payload) + _last([_OK_STATUS, *call.trailer_fields]))

    def frame_message(self, payload: bytes) -> bytes:
        return self._encode_text(envelope(0, payload))

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        ended = [*status_fields(error, _MOST_WEB_TRAILER_BYTES), *call.trailer_fields]
        if self._exchange.sent_any:
            self._finish(ended)
        else:
            self._answer(call, _last(ended))

    def _finish(self, fields: list[tuple[bytes, bytes]]) -> None:
        self._exchange.send(self._encode_text(_last(fields)))
        self._exchange.finish()

    def _answer(self, call: ExchangeCall, body: bytes) -> None:
        self._exchange.answer(with_extra(self._ok, call.head_fields), self._encode_text(body))

    def _encode_text(self, data: bytes) -> bytes:
        return base64.b64encode(data) if self._is_text else data


def status_fields(error: ServiceError, most_bytes: int = 0) -> list[tuple[bytes, bytes]]:
    """The error as trailers; its details are left out where the peer takes no more."""
    status = error_statuses.status_of(error)
    fields = [(b"grpc-status", b"%d" % status.code), (b"grpc-message", percent_encode(status.message))]
    size = sum(len(name) + len(value) + 32 for name, value in fields)
    for name, value in error_statuses.grpc_trailers(error, status):
        encoded = base64.b64encode(value).rstrip(b"=") if isinstance(value, bytes) else value.encode()
        size += len(name) + len(encoded) + 32
        if size <= (most_bytes or _MOST_TRAILER_BYTES):
            fields.append((name.encode(), encoded))
    return fields


def percent_encode(text: str) -> bytes:
    """Encode for grpc-message: percent-encoded but for printable ASCII."""
    raw = text.encode("utf-8", "replace")
    if raw.isascii() and b"%" not in raw and text.isprintable():
        return raw
    return b"".join([bytes((byte,)) if byte in _UNESCAPED else b"%%%02X" % byte for byte in raw])


def _last(fields: list[tuple[bytes, bytes]]) -> bytes:
    return envelope(_TRAILERS, b"".join([name + b": " + value + b"\r\n" for name, value in fields]))


def _decode_base64(text: bytes) -> bytes:
    """Base64 of several pieces in a row, each with a padding of its own."""
    try:
        pieces = text.replace(b"=", b"= ").replace(b"= = ", b"== ").split()
        return b"".join([base64.b64decode(piece, validate=True) for piece in pieces])
    except (ValueError, binascii.Error) as error:
        raise invalid("", "the body is not valid base64") from error
