"""The Connect protocol: https://connectrpc.com/docs/protocol; calls with one answer by POST or GET, and streams."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final
from urllib.parse import parse_qsl

from serving import wire
from serving.calls.methods import Call
from serving.encoding import gzipping
from serving.errors import HqError, TooLarge, invalid
from serving.errors.exchanges import MethodNotAllowed, UnsupportedEncoding, UnsupportedMediaType
from serving.http.media import Exchange as Format
from serving.http.media import Media, accepts_gzip, is_gzip
from serving.limiting.limits import Limits
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange, Fields
from serving.transport.wires import COMPRESSED, Envelopes, Message, envelope, gunzip

END_OF_STREAM: Final = 0b10
UNARY: Final = Media("application/json", "application/proto", "application/x-protobuf")
STREAMS: Final = Media("application/connect+json", "application/connect+proto")
_TIMEOUT: Final = re.compile(rb"[0-9]{1,10}")
_GET_FIELDS: Final = 20


def timeout_s(named: dict[bytes, bytes]) -> float | None:
    """How long the caller waits; None: it did not say. Raises InvalidRequest, also for another version."""
    version = named.get(b"connect-protocol-version")
    if version is not None and version != b"1":
        raise invalid("", "connect-protocol-version must be 1")
    timeout_ms = named.get(b"connect-timeout-ms")
    if timeout_ms is None:
        return None
    if not _TIMEOUT.fullmatch(timeout_ms):
        raise invalid("", "connect-timeout-ms must be a whole number of at most ten digits")
    return int(timeout_ms) / 1000


class ConnectUnary:
    """A call with one answer; both are bare bodies."""

    __slots__ = ("_body", "_exchange", "_get", "_is_gzip", "_limits", "_media", "json_in", "json_out", "timeout_s")

    transport = "http"

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        """Raises HqError."""
        named = exchange.head.named
        self._exchange, self._limits = exchange, limits
        self._body: list[bytes] = []
        self._get: bytes | None = None
        self.json_in = self.json_out = True  # errors before anything is known
        self._is_gzip = False
        if exchange.head.method == b"GET":
            self.timeout_s, media = timeout_s({**named, b"connect-protocol-version": b"1"}), self._read_query()
        else:
            media = UNARY.exchange(named.get(b"content-type"), named.get(b"accept"))
            self.timeout_s = timeout_s(named)
            self._is_gzip = b"content-encoding" in named and is_gzip(named[b"content-encoding"])
        self._media, self.json_in, self.json_out = media.content_type, media.json_in, media.json_out

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        if self._get is not None:
            return [(self._is_gzip and bool(self._get), self._get)] if end else []
        if end and not self._body:  # almost always
            self._check_size(len(chunk))
            return [(self._is_gzip and bool(chunk), chunk)]
        self._body.append(chunk)
        self._check_size(sum(map(len, self._body)))
        if not end:
            return []
        body = b"".join(self._body)
        return [(self._is_gzip and bool(body), body)]

    def decompress(self, payload: bytes) -> bytes:
        return gunzip("gzip", payload, self._limits.max_request_bytes)

    def whole(self, call: Call, payload: bytes) -> None:
        fields = [(b"content-type", self._media)]
        if len(payload) >= self._limits.gzip_min_bytes:
            accepted = self._exchange.head.named.get(b"accept-encoding")
            if accepts_gzip(accepted):
                payload = gzipping.compressed(payload, self._limits.gzip_level)
                fields.append((b"content-encoding", b"gzip"))
        self._exchange.answer(AnswerHead(200, [*fields, *_extra(call)]), payload)

    def begin(self, call: Call) -> None:
        raise AssertionError(f"{call} has one answer")

    def message(self, payload: bytes) -> None:
        raise AssertionError(f"one answer has no messages, such as {payload!r}")

    def end(self, call: Call) -> None:
        raise AssertionError(f"{call} has one answer")

    def fail(self, call: Call, error: HqError) -> None:
        refuse(self._exchange, error, _extra(call))

    def _check_size(self, size: int) -> None:
        if size > self._limits.max_request_bytes:
            raise TooLarge(f"the body is over the limit of {self._limits.max_request_bytes} bytes")

    def _read_query(self) -> Format:
        query = self._exchange.head.target.partition(b"?")[2].decode("latin-1")
        try:
            told = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_GET_FIELDS))
        except ValueError as error:
            raise invalid("", f"the query cannot be read: {error}") from error
        if told.get("connect", "v1") != "v1":
            raise invalid("connect", "the version of the protocol must be v1")
        if "message" not in told:
            raise invalid("message", "a call by GET brings its message in the query: encoding=json&message={...}")
        message = told["message"].encode("latin-1")
        if told.get("base64") == "1":
            try:
                message = base64.urlsafe_b64decode(message + b"=" * (-len(message) % 4))
            except (ValueError, binascii.Error) as error:
                raise invalid("message", "it is not base64") from error
        self._get = message
        self._is_gzip = is_gzip(told.get("compression", "").encode("latin-1"))
        encoding = told.get("encoding", "")
        return UNARY.exchange(f"application/{encoding}".encode("latin-1", "replace"), None)


class ConnectStream:
    """A call with streams; the last envelope says how it ended, and the status is always 200."""

    __slots__ = (
        *("_encoding", "_envelopes", "_exchange", "_gzips", "_limits", "_media", "json_in", "json_out"),
        "timeout_s",
    )

    transport = "http"

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        """Raises HqError."""
        named = exchange.head.named
        self._exchange, self._limits = exchange, limits
        self._envelopes = Envelopes(limits.max_request_bytes)
        media = STREAMS.exchange(named.get(b"content-type"), None)
        self._media, self.json_in, self.json_out = media.content_type, media.json_in, media.json_out
        self._gzips = False
        self._encoding = ""
        self.timeout_s = timeout_s(named)
        self._encoding = "gzip" if is_gzip(named.get(b"connect-content-encoding")) else ""
        self._gzips = accepts_gzip(named.get(b"connect-accept-encoding"))

    @staticmethod
    def refuse(exchange: Exchange, error: HqError) -> None:
        """End a call whose headers cannot be served, in the form that its content type asks for."""
        media = STREAMS.exchange(exchange.head.named.get(b"content-type"), None)
        extra = [(b"x-request-id", error.request_id.encode())] if b"x-request-id" in exchange.head.named else []
        head = AnswerHead(200, [(b"content-type", media.content_type), *extra])
        exchange.answer(head, envelope(END_OF_STREAM, wire.end_of_stream(error)))

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        return self._envelopes.take(chunk, end=end) if chunk or end else []

    def decompress(self, payload: bytes) -> bytes:
        return gunzip(self._encoding, payload, self._limits.max_request_bytes)

    def whole(self, call: Call, payload: bytes) -> None:
        self.begin(call)
        self.message(payload)
        self.end(call)

    def begin(self, call: Call) -> None:
        assert isinstance(call, ExchangeCall)
        gzip = [(b"connect-content-encoding", b"gzip")] if self._gzips else []
        self._exchange.begin(AnswerHead(200, [(b"content-type", self._media), *gzip, *call.head_fields]))

    def message(self, payload: bytes) -> None:
        flags = 0
        if self._gzips and len(payload) >= self._limits.gzip_min_bytes:
            payload, flags = gzipping.compressed(payload, self._limits.gzip_level), COMPRESSED
        self._exchange.send(envelope(flags, payload))

    def end(self, call: Call) -> None:
        self._last(call, None)

    def fail(self, call: Call, error: HqError) -> None:
        assert isinstance(call, ExchangeCall)
        if not self._exchange.sent_any:
            if (request_id := call.echoed_request_id) and b"x-request-id" in self._exchange.head.named:
                call.answer_header("x-request-id", request_id)
            self.begin(call)
        self._last(call, error)

    def _last(self, call: Call, error: HqError | None) -> None:
        assert isinstance(call, ExchangeCall)
        self._exchange.send(envelope(END_OF_STREAM, wire.end_of_stream(error, call.trailer_fields)))
        self._exchange.finish()


def _extra(call: Call) -> Fields:
    assert isinstance(call, ExchangeCall)
    fields = [*call.head_fields, *((b"trailer-" + name, value) for name, value in call.trailer_fields)]
    if b"x-request-id" in dict(call.fields()):
        fields.append((b"x-request-id", call.request_id.encode()))
    return fields


def refuse(exchange: Exchange, error: HqError, extra: Fields = ()) -> None:
    """Answer with Connect's JSON of an error, and the HTTP status that belongs to it."""
    fields = [(b"content-type", b"application/json"), *error_fields(error), *extra]
    if error.request_id and not any(name == b"x-request-id" for name, _ in extra):
        fields.append((b"x-request-id", error.request_id.encode()))
    exchange.answer(AnswerHead(wire.http_status(error), fields), wire.connect_error_body(error))


def last_answer(error: HqError) -> bytes:
    """An error over HTTP/1.1, with which the connection ends."""
    body = wire.connect_error_body(error)
    head = AnswerHead(wire.http_status(error), [(b"content-type", b"application/json"), *error_fields(error)])
    return head.lines + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body


def error_fields(error: HqError) -> Fields:
    """Headers that say what to do about an error."""
    delay_s = wire.retry_after_s(error)
    if delay_s is not None:
        return [(b"retry-after", b"%d" % delay_s)]
    if error.code == "UNAUTHENTICATED":
        return [(b"www-authenticate", b"Bearer")]
    if isinstance(error, UnsupportedMediaType):
        return [(b"accept-post", error.accepted.encode())]
    if isinstance(error, UnsupportedEncoding):
        return [(b"accept-encoding", error.accepted.encode())]
    if isinstance(error, MethodNotAllowed):
        return [(b"allow", error.allowed.encode())]
    return []
