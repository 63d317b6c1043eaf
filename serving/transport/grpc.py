"""gRPC, and gRPC-Web: https://github.com/grpc/grpc/blob/master/doc, PROTOCOL-HTTP2.md and PROTOCOL-WEB.md"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Final

from serving import wire
from serving.encoding import gzipping
from serving.encoding.envelopes import COMPRESSED, PREFIX_BYTES, Envelopes, Message, envelope, is_whole, prefix
from serving.errors import ServiceError, invalid
from serving.h2 import hpack
from serving.limiting.limits import Limits
from serving.protocol_errors import UnsupportedEncoding
from serving.transport.call import ExchangeCall, Wire
from serving.transport.exchange import AnswerHead, Exchange

_UNITS_S: Final = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_OK: Final = AnswerHead(200, [(b"content-type", b"application/grpc")])
_OK_TRAILERS: Final = hpack.encode([(b"grpc-status", b"0")])
_MOST_TRAILER_BYTES: Final = 8 * 1024  # what clients take if they say nothing else
_MOST_WEB_TRAILER_BYTES: Final = 64 * 1024
_TRAILERS: Final = 0x80  # the flag of a message of gRPC-Web
_ENCODINGS: Final = (b"grpc-accept-encoding", b"identity,gzip")
_UNESCAPED: Final = frozenset(range(0x20, 0x7F)) - {0x25}


@lru_cache(1_024)
def timeout_s(text: bytes) -> float:
    """Of a grpc-timeout. Raises InvalidRequest."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or not number.isdigit() or len(number) > 8:
        raise invalid("", "grpc-timeout must be a whole number of at most eight digits, and one of H, M, S, m, u, n")
    return int(number) * _UNITS_S[unit]


class Grpc(Wire):
    transport = "grpc"
    _ok = _OK
    _compress = ""
    _envelopes: Envelopes | None = None

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        super().__init__(exchange, limits)
        named = exchange.head.named
        if b"grpc-timeout" in named:
            self.timeout_s = timeout_s(named[b"grpc-timeout"])
        if b"grpc-encoding" in named and named[b"grpc-encoding"] != b"identity":
            self._encoding = named[b"grpc-encoding"].decode("latin-1")
            if self._encoding != "gzip":
                raise UnsupportedEncoding(self._encoding)

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        if self._envelopes is None:
            if is_whole(chunk, self._limits.max_request_bytes):  # almost always
                return [(False, chunk[PREFIX_BYTES:])]
            self._envelopes = Envelopes(self._limits.max_request_bytes)
        return self._envelopes.take(chunk, end=end) if chunk or end else []

    def unary_answer(self, call: ExchangeCall, payload: bytes) -> None:
        head, trailers = self._ok, _OK_TRAILERS
        lead = prefix(payload)
        if call.gzip_answers:
            head, payload, lead = self._head(call), self._enveloped(payload), b""
        elif call.head_fields:
            head = self._head(call)
        if request_id := call.echoed_request_id:
            call.answer_trailer("x-request-id", request_id)
        if call.trailer_fields:
            trailers = hpack.encode([(b"grpc-status", b"0"), *call.trailer_fields])
        self._exchange.answer(head, payload, trailers, lead)

    def begin(self, call: ExchangeCall) -> None:
        self._exchange.begin(self._head(call) if call.head_fields or call.gzip_answers else self._ok)

    def message(self, payload: bytes) -> None:
        self._exchange.send(self._enveloped(payload))

    def end(self, call: ExchangeCall) -> None:
        self._exchange.finish([(b"grpc-status", b"0"), *call.trailer_fields])

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        ended = [*status_fields(error, self._exchange.most_trailer_bytes), *call.trailer_fields]
        if call.head_fields and not self._exchange.sent_any:
            self._exchange.begin(self._head(call))  # else clients would take them for trailers
        if self._exchange.sent_any:
            self._exchange.finish(ended)
        else:
            also = [_ENCODINGS] if isinstance(error, UnsupportedEncoding) else []
            head = AnswerHead(200, [*self._ok.fields, *also, *ended])
            self._exchange.answer(head, b"")

    def _head(self, call: ExchangeCall) -> AnswerHead:
        fields = [*self._ok.fields, *call.head_fields]
        accepted = self._exchange.head.named.get(b"grpc-accept-encoding", b"")
        if call.gzip_answers and b"gzip" in accepted:
            self._compress = "gzip"
            fields.append((b"grpc-encoding", b"gzip"))
        return AnswerHead(200, fields)

    def _enveloped(self, payload: bytes) -> bytes:
        if not self._compress:
            return envelope(0, payload)
        return envelope(COMPRESSED, gzipping.compressed(payload, 1))


class GrpcJson(Grpc):
    """One call whose messages are proto3 JSON."""

    json_in = json_out = True
    _ok = AnswerHead(200, [(b"content-type", b"application/grpc+json")])


class GrpcWeb(Grpc):
    """One call over gRPC-Web, binary or as text: its trailers are a message."""

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        kind = exchange.head.named.get(b"content-type", b"")
        self._is_text = kind.startswith(b"application/grpc-web-text")
        self.json_in = self.json_out = b"+json" in kind
        self._partial = b""
        super().__init__(exchange, limits)

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        if self._is_text:
            text = self._partial + chunk
            cut = len(text) if end else len(text) // 4 * 4
            text, self._partial = text[:cut], text[cut:]
            chunk = _decoded(text)
        return super().take(chunk, end=end)

    def unary_answer(self, call: ExchangeCall, payload: bytes) -> None:
        head, body = self._head(call), self._enveloped(payload)
        self._exchange.answer(head, self._coded(body + _last([(b"grpc-status", b"0"), *call.trailer_fields])))

    def begin(self, call: ExchangeCall) -> None:
        self._exchange.begin(self._head(call))

    def message(self, payload: bytes) -> None:
        self._exchange.send(self._coded(self._enveloped(payload)))

    def end(self, call: ExchangeCall) -> None:
        self._exchange.send(self._coded(_last([(b"grpc-status", b"0"), *call.trailer_fields])))
        self._exchange.finish()

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        last = self._coded(_last([*status_fields(error, _MOST_WEB_TRAILER_BYTES), *call.trailer_fields]))
        if self._exchange.sent_any:
            self._exchange.send(last)
            self._exchange.finish()
        else:
            self._exchange.answer(self._head(call), last)

    def _head(self, call: ExchangeCall) -> AnswerHead:
        kind = b"application/grpc-web-text" if self._is_text else b"application/grpc-web"
        codec = b"+json" if self.json_out else b"+proto"
        return AnswerHead(200, [(b"content-type", kind + codec), *super()._head(call).fields[1:]])

    def _coded(self, data: bytes) -> bytes:
        return base64.b64encode(data) if self._is_text else data


def status_fields(error: ServiceError, most_bytes: int = 0) -> list[tuple[bytes, bytes]]:
    """The error as trailers; its details are left out where the peer takes no more."""
    status = wire.status_of(error)
    fields = [(b"grpc-status", b"%d" % status.code), (b"grpc-message", escaped(status.message))]
    size = sum(len(name) + len(value) + 32 for name, value in fields)
    for name, value in wire.grpc_trailers(error, status):
        encoded = base64.b64encode(value).rstrip(b"=") if isinstance(value, bytes) else value.encode()
        size += len(name) + len(encoded) + 32
        if size <= (most_bytes or _MOST_TRAILER_BYTES):
            fields.append((name.encode(), encoded))
    return fields


def escaped(text: str) -> bytes:
    """As grpc-message has it: percent-encoded but for printable ASCII."""
    raw = text.encode("utf-8", "replace")
    if raw.isascii() and b"%" not in raw and text.isprintable():
        return raw
    return b"".join([bytes((byte,)) if byte in _UNESCAPED else b"%%%02X" % byte for byte in raw])


def _last(fields: list[tuple[bytes, bytes]]) -> bytes:
    return envelope(_TRAILERS, b"".join([name + b": " + value + b"\r\n" for name, value in fields]))


def _decoded(text: bytes) -> bytes:
    """Base64 of several pieces in a row, each with a padding of its own."""
    try:
        pieces = text.replace(b"=", b"= ").replace(b"= = ", b"== ").split()
        return b"".join([base64.b64decode(piece, validate=True) for piece in pieces])
    except (ValueError, binascii.Error) as error:
        raise invalid("", "the body is not valid base64") from error
