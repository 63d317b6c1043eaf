"""The Connect protocol: https://connectrpc.com/docs/protocol; calls with one answer by POST or GET, and streams."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from serving import error_statuses
from serving.calls.incoming import connect_timeout_s
from serving.encoding import gzipping
from serving.encoding.envelopes import COMPRESSED, END_OF_STREAM, Message, envelope
from serving.encoding.media import Media, accepts_gzip, is_gzip
from serving.errors import ServiceError, TooLarge, invalid
from serving.head import Head
from serving.limiting.limits import Limits
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange, Fields, ok_head, with_extra
from serving.transport.wire import Wire

UNARY: Final = Media("application/json", "application/proto", "application/x-protobuf")
STREAMS: Final = Media("application/connect+json", "application/connect+proto")
_GET_FIELDS: Final = 20


class ConnectForm(NamedTuple):
    """The parsed headers of a call with one answer. `message`: of a GET, which has it in its query."""

    json_in: bool
    json_out: bool
    timeout_s: float | None
    encoding: str
    head: AnswerHead
    message: bytes | None = None


class ConnectUnary(Wire):
    """A call with one answer; request and answer are bare bodies."""

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        self._exchange, self._limits = exchange, limits  # not by super(): each call would pay for it
        head = exchange.head
        if head.form is None:
            head.form = _read_query(head) if head.method == b"GET" else _read_headers(head.named)
        self.json_in, self.json_out, self.timeout_s, self._encoding, self._ok, self._message = head.form
        self._body: list[bytes] = []
        self._size = len(self._message or b"")

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        if end and not self._size and self._message is None and len(chunk) <= self._limits.max_request_bytes:
            return [(bool(self._encoding), chunk)]  # almost always
        if self._message is None:
            self._body.append(chunk)
            self._size += len(chunk)
        if self._size > self._limits.max_request_bytes:
            raise TooLarge(f"the body is over the limit of {self._limits.max_request_bytes} bytes")
        whole = self._body if self._message is None else [self._message]
        return [(bool(self._encoding), b"".join(whole))] if end else []

    def unary_answer(self, call: ExchangeCall, payload: bytes) -> None:
        head, more, named = self._ok, self._more(call), self._exchange.head.named
        if len(payload) >= self._limits.gzip_min_bytes and accepts_gzip(named.get(b"accept-encoding")):
            payload = gzipping.compress_sync(payload, self._limits.gzip_level)
            more = [(b"content-encoding", b"gzip"), *more]
        self._exchange.answer(with_extra(head, more) if more else head, payload)

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        refuse(self._exchange, error, self._more(call))

    def _more(self, call: ExchangeCall) -> Fields:
        has_id = b"x-request-id" in self._exchange.head.named
        if not (has_id or call.head_fields or call.trailer_fields):
            return ()
        fields = [*call.head_fields, *((b"trailer-" + name, value) for name, value in call.trailer_fields)]
        return [*fields, (b"x-request-id", call.request_id.encode())] if has_id else fields


def _read_headers(named: Mapping[bytes, bytes]) -> ConnectForm:
    media = UNARY.encodings(named.get(b"content-type"), named.get(b"accept"))
    encoding = "gzip" if is_gzip(named.get(b"content-encoding")) else ""
    return ConnectForm(media.json_in, media.json_out, connect_timeout_s(named), encoding, ok_head(media.content_type))


def _read_query(head: Head) -> ConnectForm:
    timeout_s = connect_timeout_s({**head.named, b"connect-protocol-version": b"1"})
    query = head.target.partition(b"?")[2].decode("latin-1")
    try:
        told = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_GET_FIELDS))
    except ValueError as error:
        raise invalid("", f"cannot parse the query: {error}") from error
    if told.get("connect", "v1") != "v1":
        raise invalid("connect", "the protocol version must be v1")
    if "message" not in told:
        raise invalid("message", "a GET call takes its message in the query: encoding=json&message={...}")
    if told.get("encoding") not in ("json", "proto"):
        raise invalid("encoding", f"{told.get('encoding', '')[:40]!r}: write encoding=json or encoding=proto")
    message = told["message"].encode("latin-1")
    if told.get("base64") == "1":
        try:
            message = base64.urlsafe_b64decode(message + b"=" * (-len(message) % 4))
        except (ValueError, binascii.Error) as error:
            raise invalid("message", "not valid base64") from error
    encoding = "gzip" if is_gzip(told.get("compression", "").encode("latin-1")) else ""
    media = UNARY.encodings(f"application/{told['encoding']}".encode(), None)
    return ConnectForm(media.json_in, media.json_out, timeout_s, encoding, ok_head(media.content_type), message)


class ConnectStream(Wire):
    """A call with streams; the last envelope says how it ended, and the status is always 200."""

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        super().__init__(exchange, limits)
        named = exchange.head.named
        media = STREAMS.encodings(named.get(b"content-type"), None)
        self._ok, self.json_in, self.json_out = ok_head(media.content_type), media.json_in, media.json_out
        self.timeout_s = connect_timeout_s(named)
        self._encoding = "gzip" if is_gzip(named.get(b"connect-content-encoding")) else ""
        self._gzips = accepts_gzip(named.get(b"connect-accept-encoding"))
        if self._gzips:
            self._ok = with_extra(self._ok, [(b"connect-content-encoding", b"gzip")])

    @staticmethod
    def refuse(exchange: Exchange, error: ServiceError) -> None:
        """End a call whose headers cannot be served, in the form that its content type asks for."""
        media = STREAMS.encodings(exchange.head.named.get(b"content-type"), None)
        extra = [(b"x-request-id", error.request_id.encode())] if b"x-request-id" in exchange.head.named else []
        head = with_extra(ok_head(media.content_type), extra)
        exchange.answer(head, envelope(END_OF_STREAM, error_statuses.end_of_stream(error)))

    def frame_message(self, payload: bytes) -> bytes:
        if self._gzips and len(payload) >= self._limits.gzip_min_bytes:
            return envelope(COMPRESSED, gzipping.compress_sync(payload, self._limits.gzip_level))
        return envelope(0, payload)

    def end(self, call: ExchangeCall, error: ServiceError | None = None) -> None:
        self._exchange.send(envelope(END_OF_STREAM, error_statuses.end_of_stream(error, call.trailer_fields)))
        self._exchange.finish()

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        if not self._exchange.sent_any:
            if b"x-request-id" in self._exchange.head.named:
                call.answer_header("x-request-id", call.request_id)
            self.begin(call)
        self.end(call, error)


def refuse(exchange: Exchange, error: ServiceError, extra: Fields = ()) -> None:
    """Answer with Connect's JSON of an error, and the HTTP status that belongs to it."""
    if error.request_id and not any(name == b"x-request-id" for name, _ in extra):
        extra = [*extra, (b"x-request-id", error.request_id.encode())]
    exchange.answer(_head(error, extra), error_statuses.connect_error_body(error))


def last_answer(error: ServiceError) -> bytes:
    """An error over HTTP/1.1, with which the connection ends."""
    body = error_statuses.connect_error_body(error)
    return _head(error).lines + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body


def _head(error: ServiceError, extra: Fields = ()) -> AnswerHead:
    fields = (b"content-type", b"application/json"), *error_statuses.error_headers(error), *extra
    return AnswerHead(error_statuses.http_status(error), fields)
