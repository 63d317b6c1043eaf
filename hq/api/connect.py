"""Calls over the Connect protocol: one endpoint for each method of the table.

https://connectrpc.com/docs/protocol
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hq.api import gzipping, wire
from hq.api.asgi import ClientGone, Endpoint, Headers, Receive, Scope, Send, read_body, respond, respond_error
from hq.api.calls import HttpCall, RequestIds, closing_stream
from hq.api.envelope import COMPRESSED, END_OF_STREAM, HEADER_BYTES, unwrap_only, wrap
from hq.api.limits import Admission, Limits
from hq.api.media import Exchange, Media, accepts_gzip, is_gzip
from hq.api.methods import Answer, Method, Streaming, Unary
from hq.clock import Clock
from hq.errors import DeadlineExceeded, HqError, Retry, ShuttingDown, invalid

_UNARY: Final = ("application/json", "application/proto", "application/x-protobuf")
_STREAM: Final = ("application/connect+json", "application/connect+proto")
_TIMEOUT: Final = re.compile(rb"[0-9]{1,10}")
# A deadline is the method's to keep: it knows whether a write was stored. Later than this we cut it off.
_DEADLINE_GRACE_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all endpoints of a server share."""

    limits: Limits
    admission: Admission
    clock: Clock
    ids: RequestIds


def endpoint(method: Method, shared: Surroundings) -> Endpoint:
    """The ASGI application of one method; it is called with POST requests only."""
    return UnaryEndpoint(method, shared) if isinstance(method, Unary) else StreamEndpoint(method, shared)


class UnaryEndpoint:
    """One request, one answer, each the bare body."""

    def __init__(self, method: Unary, shared: Surroundings) -> None:
        self._parse = method.parse
        self._parse_json = method.parse_json
        self._method = method.run
        self._limits = shared.limits
        self._admission = shared.admission
        self._clock = shared.clock
        self._ids = shared.ids
        self._media = Media(*_UNARY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call; errors become answers as well."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        call = HttpCall(scope, headers, self._ids)
        try:
            exchange = self._media.exchange(headers.get(b"content-type"), headers.get(b"accept"))
            timeout_s = connect_timeout_s(headers)
            if timeout_s is not None:
                call.set_deadline(self._clock.now() + timeout_s)
            body = await self._read(headers, receive)
            if timeout_s is None:
                payload = await self._run(exchange, body, call)
            else:
                async with asyncio.timeout(timeout_s + _DEADLINE_GRACE_S):
                    payload = await self._run(exchange, body, call)
            if len(payload) > self._limits.max_response_bytes:
                self._admission.refuse_answer(len(payload))
            answer_headers = [(b"content-type", exchange.content_type), *request_id_header(call, headers)]
            if len(payload) >= self._limits.gzip_min_bytes and accepts_gzip(headers.get(b"accept-encoding")):
                payload = await gzipping.compress(payload, self._limits.gzip_level)
                answer_headers.append((b"content-encoding", b"gzip"))
        except ClientGone:
            return
        except BaseException as error:
            told = wire.as_hq_error(error, call)
            await respond_error(send, told, request_id_header(call, headers))
            return
        await respond(send, 200, answer_headers, payload)

    async def _read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        max_bytes = self._limits.max_request_bytes
        body = await read_body(headers, receive, self._admission, max_bytes)
        encoding = headers.get(b"content-encoding")
        if encoding is not None and is_gzip(encoding):
            body = await gzipping.decompress(body, max_bytes)
        return body

    async def _run(self, exchange: Exchange, body: bytes, call: HttpCall) -> bytes:
        admission = self._admission
        if admission.calls >= admission.max_calls:
            admission.refuse_call()
        admission.calls += 1
        try:
            request = self._parse_json(body) if exchange.json_in else self._parse(body)
            answer = await self._method(request, call)
            return await answer.json() if exchange.json_out else answer.proto()
        finally:
            admission.calls -= 1


class StreamEndpoint:
    """One request, many answers, each in an envelope; the last envelope says how it ended. Always HTTP 200."""

    def __init__(self, method: Streaming, shared: Surroundings) -> None:
        self._method = method
        self._limits = shared.limits
        self._admission = shared.admission
        self._clock = shared.clock
        self._ids = shared.ids
        self._media = Media(*_STREAM)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call. Errors end the stream; only a content type of no stream is refused by HTTP status."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        call = HttpCall(scope, headers, self._ids)
        try:
            exchange = self._media.exchange(headers.get(b"content-type"), None)
        except HqError as error:
            await respond_error(send, error, request_id_header(call, headers))
            return
        stream = Outgoing(send, exchange, headers, self._limits, request_id_header(call, headers))
        failure: HqError | None = None
        try:
            await self._run(exchange, headers, call, receive, stream)
        except ClientGone:
            return
        except asyncio.CancelledError:
            failure = ShuttingDown("this replica shuts down: go on at another one", 0.0)
        except BaseException as error:
            failure = wire.as_hq_error(error, call)
        await stream.end(failure)

    async def _run(
        self,
        exchange: Exchange,
        headers: Mapping[bytes, bytes],
        call: HttpCall,
        receive: Receive,
        stream: Outgoing,
    ) -> None:
        timeout_s = connect_timeout_s(headers)
        if timeout_s is not None:
            call.set_deadline(self._clock.now() + timeout_s)
        message = await self._read(headers, receive)
        request = self._method.parse_json(message) if exchange.json_in else self._method.parse(message)
        self._admission.open_stream()
        try:
            await self._pump(request, call, timeout_s, stream)
        finally:
            self._admission.close_stream()

    async def _pump(self, request: object, call: HttpCall, timeout_s: float | None, stream: Outgoing) -> None:
        age_s = self._limits.max_stream_age_s
        limit = asyncio.timeout(age_s if timeout_s is None else min(timeout_s, age_s))
        await stream.begin()
        try:
            async with limit, closing_stream(self._method.run(request, call)) as answers:
                async for answer in answers:
                    await stream.message(answer, self._admission)
        except TimeoutError as error:
            if not limit.expired():
                raise
            if timeout_s is not None and timeout_s <= age_s:
                raise DeadlineExceeded(f"the stream ends at its deadline, after {timeout_s:g} s") from error
            raise Retry(f"the stream ends after {age_s:g} s: go on at any replica", 0.0) from error

    async def _read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        max_bytes = self._limits.max_request_bytes
        gzip = is_gzip(headers.get(b"connect-content-encoding"))
        body = await read_body(headers, receive, self._admission, HEADER_BYTES + max_bytes)
        compressed, payload = unwrap_only(body, max_bytes)
        if not compressed:
            return payload
        if not gzip:
            raise invalid("", "the envelope says compressed, but connect-content-encoding does not say how")
        return await gzipping.decompress(payload, max_bytes)


class Outgoing:
    """The answer's side of one stream."""

    def __init__(
        self,
        send: Send,
        exchange: Exchange,
        headers: Mapping[bytes, bytes],
        limits: Limits,
        extra_headers: Headers,
    ) -> None:
        self._send = send
        self._json = exchange.json_out
        self._gzip = accepts_gzip(headers.get(b"connect-accept-encoding"))
        self._limits = limits
        self._headers = [(b"content-type", exchange.content_type), *extra_headers]
        self._begun = False

    async def begin(self) -> None:
        """Send the headers."""
        if self._gzip:
            self._headers.append((b"connect-content-encoding", b"gzip"))
        self._begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})

    async def message(self, answer: Answer, admission: Admission) -> None:
        """Send one message; waits while the reader is slow."""
        payload = await answer.json() if self._json else answer.proto()
        if len(payload) > admission.max_response_bytes:
            admission.refuse_answer(len(payload))
        flags = 0
        if self._gzip and len(payload) >= self._limits.gzip_min_bytes:
            payload = await gzipping.compress(payload, self._limits.gzip_level)
            flags = COMPRESSED
        await self._send({"type": "http.response.body", "body": wrap(flags, payload), "more_body": True})

    async def end(self, failure: HqError | None) -> None:
        """Send the last envelope, after the headers if these were not sent yet."""
        if not self._begun:
            await self.begin()
        await self._send(
            {"type": "http.response.body", "body": wrap(END_OF_STREAM, wire.end_of_stream(failure))}
        )


def connect_timeout_s(headers: Mapping[bytes, bytes]) -> float | None:
    """How long the caller waits, in seconds; None: it did not say. The protocol's version is checked, too.

    Raises:
        InvalidRequest: the version is not 1, or the timeout is not a number of at most ten digits.
    """
    version = headers.get(b"connect-protocol-version")
    if version is not None and version != b"1":
        raise invalid("", "connect-protocol-version must be 1")
    timeout_ms = headers.get(b"connect-timeout-ms")
    if timeout_ms is None:
        return None
    if not _TIMEOUT.fullmatch(timeout_ms):
        raise invalid("", "connect-timeout-ms must be a whole number of at most ten digits")
    return int(timeout_ms) / 1000


def request_id_header(call: HttpCall, headers: Mapping[bytes, bytes]) -> Headers:
    """The caller's id of this call, to be sent back; nothing if it sent none."""
    return [(b"x-request-id", call.request_id.encode())] if b"x-request-id" in headers else []
