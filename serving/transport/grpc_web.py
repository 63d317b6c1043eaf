"""gRPC-Web, binary and text: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md; trailers are a message."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from serving.encoding.envelopes import Message, envelope
from serving.errors import ServiceError, invalid
from serving.limiting.limits import Limits
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange
from serving.transport.grpc import Grpc, status_fields

_TRAILERS: Final = 0x80
_MOST_TRAILER_BYTES: Final = 64 * 1024


class GrpcWeb(Grpc):
    """One call."""

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
        last = self._coded(_last([*status_fields(error, _MOST_TRAILER_BYTES), *call.trailer_fields]))
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


def _last(fields: list[tuple[bytes, bytes]]) -> bytes:
    return envelope(_TRAILERS, b"".join([name + b": " + value + b"\r\n" for name, value in fields]))


def _decoded(text: bytes) -> bytes:
    """Base64 of several pieces in a row, each with a padding of its own."""
    try:
        pieces = text.replace(b"=", b"= ").replace(b"= = ", b"== ").split()
        return b"".join([base64.b64decode(piece, validate=True) for piece in pieces])
    except (ValueError, binascii.Error) as error:
        raise invalid("", "the body is not valid base64") from error
