"""The Connect protocol: https://connectrpc.com/docs/protocol; calls with one answer by POST or GET, and streams."""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

from serving import wire
from serving.calls.incoming import connect_timeout_s
from serving.encoding import gzipping
from serving.encoding.envelopes import COMPRESSED, END_OF_STREAM, Envelopes, Message, envelope
from serving.encoding.media import Exchange as Format
from serving.encoding.media import Media, accepts_gzip, is_gzip
from serving.errors import ServiceError, TooLarge, invalid
from serving.limiting.limits import Limits
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange, Fields, with_extra
from serving.transport.wires import Wire

UNARY: Final = Media("application/json", "application/proto", "application/x-protobuf")
STREAMS: Final = Media("application/connect+json", "application/connect+proto")
_GET_FIELDS: Final = 20


class ConnectUnary(Wire):
    """A call with one answer; both are bare bodies."""

    json_in = json_out = True  # errors before anything is known

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        super().__init__(exchange, limits)
        named = exchange.head.named
        self._body: list[bytes] = []
        self._size = 0
        self._is_get = exchange.head.method == b"GET"
        if self._is_get:
            self.timeout_s, media = connect_timeout_s({**named, b"connect-protocol-version": b"1"}), self._read_query()
        else:
            media = UNARY.exchange(named.get(b"content-type"), named.get(b"accept"))
            self.timeout_s = connect_timeout_s(named)
            self._encoding = "gzip" if is_gzip(named.get(b"content-encoding")) else ""
        self._media, self.json_in, self.json_out = media.content_type, media.json_in, media.json_out

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        if not self._is_get:
            self._body.append(chunk)
            self._size += len(chunk)
        if self._size > self._limits.max_request_bytes:
            raise TooLarge(f"the body is over the limit of {self._limits.max_request_bytes} bytes")
        return [(bool(self._encoding), b"".join(self._body))] if end else []

    def unary_answer(self, call: ExchangeCall, payload: bytes) -> None:
        more = self._more(call)
        if len(payload) >= self._limits.gzip_min_bytes:
            accepted = self._exchange.head.named.get(b"accept-encoding")
            if accepts_gzip(accepted):
                payload = gzipping.compressed(payload, self._limits.gzip_level)
                more = [(b"content-encoding", b"gzip"), *more]
        self._exchange.answer(with_extra(_head(self._media), more), payload)

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        refuse(self._exchange, error, self._more(call))

    def _more(self, call: ExchangeCall) -> Fields:
        fields = [*call.head_fields, *((b"trailer-" + name, value) for name, value in call.trailer_fields)]
        if b"x-request-id" in self._exchange.head.named:
            fields.append((b"x-request-id", call.request_id.encode()))
        return fields

    def _read_query(self) -> Format:
        query = self._exchange.head.target.partition(b"?")[2].decode("latin-1")
        try:
            told = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_GET_FIELDS))
        except ValueError as error:
            raise invalid("", f"cannot parse the query: {error}") from error
        if told.get("connect", "v1") != "v1":
            raise invalid("connect", "the protocol version must be v1")
        if "message" not in told:
            raise invalid("message", "a GET call takes its message in the query: encoding=json&message={...}")
        message = told["message"].encode("latin-1")
        if told.get("base64") == "1":
            try:
                message = base64.urlsafe_b64decode(message + b"=" * (-len(message) % 4))
            except (ValueError, binascii.Error) as error:
                raise invalid("message", "not valid base64") from error
        self._body, self._size = [message], len(message)
        self._encoding = "gzip" if is_gzip(told.get("compression", "").encode("latin-1")) else ""
        encoding = told.get("encoding", "")
        return UNARY.exchange(f"application/{encoding}".encode("latin-1", "replace"), None)


class ConnectStream(Wire):
    """A call with streams; the last envelope says how it ended, and the status is always 200."""

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        super().__init__(exchange, limits)
        named = exchange.head.named
        self._envelopes = Envelopes(limits.max_request_bytes)
        media = STREAMS.exchange(named.get(b"content-type"), None)
        self._media, self.json_in, self.json_out = media.content_type, media.json_in, media.json_out
        self.timeout_s = connect_timeout_s(named)
        self._encoding = "gzip" if is_gzip(named.get(b"connect-content-encoding")) else ""
        self._gzips = accepts_gzip(named.get(b"connect-accept-encoding"))

    @staticmethod
    def refuse(exchange: Exchange, error: ServiceError) -> None:
        """End a call whose headers cannot be served, in the form that its content type asks for."""
        media = STREAMS.exchange(exchange.head.named.get(b"content-type"), None)
        extra = [(b"x-request-id", error.request_id.encode())] if b"x-request-id" in exchange.head.named else []
        head = AnswerHead(200, [(b"content-type", media.content_type), *extra])
        exchange.answer(head, envelope(END_OF_STREAM, wire.end_of_stream(error)))

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        return self._envelopes.take(chunk, end=end) if chunk or end else []

    def begin(self, call: ExchangeCall) -> None:
        gzip = [(b"connect-content-encoding", b"gzip")] if self._gzips else []
        self._exchange.begin(AnswerHead(200, [(b"content-type", self._media), *gzip, *call.head_fields]))

    def message(self, payload: bytes) -> None:
        flags = 0
        if self._gzips and len(payload) >= self._limits.gzip_min_bytes:
            payload, flags = gzipping.compressed(payload, self._limits.gzip_level), COMPRESSED
        self._exchange.send(envelope(flags, payload))

    def end(self, call: ExchangeCall) -> None:
        self._last(call, None)

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        if not self._exchange.sent_any:
            if (request_id := call.echoed_request_id) and b"x-request-id" in self._exchange.head.named:
                call.answer_header("x-request-id", request_id)
            self.begin(call)
        self._last(call, error)

    def _last(self, call: ExchangeCall, error: ServiceError | None) -> None:
        self._exchange.send(envelope(END_OF_STREAM, wire.end_of_stream(error, call.trailer_fields)))
        self._exchange.finish()


@lru_cache(16)
def _head(media: bytes) -> AnswerHead:
    """Of almost all answers: encoded once."""
    return AnswerHead(200, [(b"content-type", media)])


def refuse(exchange: Exchange, error: ServiceError, extra: Fields = ()) -> None:
    """Answer with Connect's JSON of an error, and the HTTP status that belongs to it."""
    fields = [(b"content-type", b"application/json"), *wire.error_headers(error), *extra]
    if error.request_id and not any(name == b"x-request-id" for name, _ in extra):
        fields.append((b"x-request-id", error.request_id.encode()))
    exchange.answer(AnswerHead(wire.http_status(error), fields), wire.connect_error_body(error))


def last_answer(error: ServiceError) -> bytes:
    """An error over HTTP/1.1, with which the connection ends."""
    body = wire.connect_error_body(error)
    head = AnswerHead(wire.http_status(error), [(b"content-type", b"application/json"), *wire.error_headers(error)])
    return head.lines + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body
