"""Calls with a stream of answers over the Connect protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from serving import error_statuses
from serving.calls.answer_streams import ClosingStream, StreamTimeout
from serving.calls.incoming import HttpCall, connect_timeout_s
from serving.calls.methods import Answer, Streaming, settled
from serving.context import ServerContext
from serving.encoding import gzipping
from serving.encoding.envelopes import COMPRESSED, END_OF_STREAM, PREFIX_BYTES, envelope
from serving.encoding.jsonio import refuse_deep
from serving.encoding.media import Encodings, Media, accepts_gzip, is_gzip
from serving.errors import ServiceError, ShuttingDown, invalid
from serving.http.asgi import (
    ClientGone,
    Headers,
    Receive,
    Scope,
    Send,
    check_length,
    read_body,
    request_id_header,
    respond_error,
    unwrap_only,
)
from serving.limiting.admission import Admission
from serving.limiting.limits import Limits

_TYPES: Final = ("application/connect+json", "application/connect+proto")


class StreamEndpoint:
    """One request, many answers, each in an envelope; the last one says how it ended. Always HTTP 200."""

    def __init__(self, method: Streaming, shared: ServerContext) -> None:
        self._method = method
        self._guard = shared.guard(method.path, method.rule)
        self._limits = shared.limits
        self._admission = shared.admission
        self._worker_thread = shared.worker_thread
        self._clock = shared.clock
        self._ids = shared.ids
        self._stats = shared.traffic.stats("http", method.path)
        self._media = Media(*_TYPES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call. Errors end the stream; only a content type that is not for streams is refused with 415."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        call = HttpCall(scope, headers, self._ids)
        extra_headers = [request_id_header(call)] if b"x-request-id" in headers else []
        try:
            encodings = self._media.encodings(headers.get(b"content-type"), None)
        except ServiceError as error:
            told = error_statuses.as_service_error(error, call)
            self._stats.ended(told.code)
            await respond_error(send, told, extra_headers)
            return
        stream = Outgoing(send, encodings, headers, self._limits, extra_headers)
        failure: ServiceError | None = None
        try:
            await self._run(encodings, headers, call, receive, stream)
        except ClientGone:
            return
        except asyncio.CancelledError:
            failure = ShuttingDown("this replica is shutting down: reconnect to another one", 0.0)
        except BaseException as error:
            failure = error_statuses.as_service_error(error, call)
        if failure is not None:
            self._admission.count(failure)
            self._guard.refused(call, failure)
        self._stats.ended("OK" if failure is None else failure.code)
        with suppress(asyncio.CancelledError):  # the client left, or we shut down
            await stream.end(failure)

    async def _run(
        self,
        encodings: Encodings,
        headers: Mapping[bytes, bytes],
        call: HttpCall,
        receive: Receive,
        stream: Outgoing,
    ) -> None:
        timeout_s = connect_timeout_s(headers)
        if timeout_s is not None:
            call.set_deadline(self._clock.now() + timeout_s)
        if self._guard.admit is not None:
            self._guard.admit(call)
        peer = call.host
        message = await self._read(headers, peer, receive)
        self._admission.check_rate(call.caller)
        self._admission.open_stream(peer)
        try:
            with self._admission.holding(peer, len(message)):
                request = await self._parsed(message, json_in=encodings.json_in)
                await self._pump(request, call, timeout_s, stream)
        finally:
            self._admission.close_stream(peer)

    async def _parsed(self, message: bytes, *, json_in: bool) -> Any:
        if not json_in:
            return self._method.parse(message)
        refuse_deep(message, self._limits.max_json_depth)
        return await self._worker_thread.run(self._method.parse_json, message)

    async def _pump(self, request: object, call: HttpCall, timeout_s: float | None, stream: Outgoing) -> None:
        await stream.begin()
        answers = self._method.run(request, call)
        async with (
            StreamTimeout(timeout_s, self._limits.max_stream_age_s),
            self._guard.lease(call),
            ClosingStream(answers),
        ):
            async for answer in answers:
                await stream.message(answer, self._admission)

    async def _read(self, headers: Mapping[bytes, bytes], peer: str, receive: Receive) -> bytes:
        max_bytes = self._limits.max_request_bytes
        gzip = is_gzip(headers.get(b"connect-content-encoding"))
        check_length(headers, PREFIX_BYTES + max_bytes)
        body = await read_body(receive, self._admission, peer, PREFIX_BYTES + max_bytes)
        compressed, payload = unwrap_only(body, max_bytes)
        if not compressed:
            return payload
        if not gzip:
            raise invalid("", "the envelope is marked compressed, but connect-content-encoding is missing")
        return await gzipping.decompress(payload, max_bytes)


class Outgoing:
    """The answer's side of one stream."""

    def __init__(
        self,
        send: Send,
        encodings: Encodings,
        headers: Mapping[bytes, bytes],
        limits: Limits,
        extra_headers: Headers,
    ) -> None:
        self._send = send
        self._json = encodings.json_out
        self._gzip = accepts_gzip(headers.get(b"connect-accept-encoding"))
        self._limits = limits
        self._headers = [(b"content-type", encodings.content_type), *extra_headers]
        self._begun = False

    async def begin(self) -> None:
        """Send the headers."""
        if self._gzip:
            self._headers.append((b"connect-content-encoding", b"gzip"))
        self._begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})

    async def message(self, answer: Answer, admission: Admission) -> None:
        """Send one message; waits while the reader is slow."""
        payload = await settled(answer.json()) if self._json else answer.proto()
        if len(payload) > admission.max_response_bytes:
            admission.refuse_answer(len(payload))
        flags = 0
        if self._gzip and len(payload) >= self._limits.gzip_min_bytes:
            payload = await gzipping.compress(payload, self._limits.gzip_level)
            flags = COMPRESSED
        await self._send({"type": "http.response.body", "body": envelope(flags, payload), "more_body": True})

    async def end(self, failure: ServiceError | None) -> None:
        """Send the last envelope, after the headers if these were not sent yet."""
        if not self._begun:
            await self.begin()
        await self._send(
            {"type": "http.response.body", "body": envelope(END_OF_STREAM, error_statuses.end_of_stream(failure))}
        )
