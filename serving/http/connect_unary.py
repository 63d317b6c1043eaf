"""Calls with one answer over the Connect protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from serving import error_statuses
from serving.calls.incoming import HttpCall, connect_timeout_s
from serving.calls.methods import Unary, settled
from serving.context import ServerContext
from serving.encoding import gzipping
from serving.encoding.jsonio import refuse_deep
from serving.encoding.media import Encodings, Media, accepts_gzip, is_gzip
from serving.http.asgi import (
    ClientGone,
    Receive,
    Scope,
    Send,
    check_length,
    read_body,
    request_id_header,
    respond,
    respond_error,
)
from serving.limiting.admission import LARGE_BYTES

_TYPES: Final = ("application/json", "application/proto", "application/x-protobuf")
# The method keeps the deadline itself: it knows whether a write was stored. Later than this we cut it off.
_DEADLINE_GRACE_S: Final = 0.25


class UnaryEndpoint:
    """One request, one answer, each the bare body."""

    def __init__(self, method: Unary, shared: ServerContext) -> None:
        self._parse = method.parse
        self._parse_json = method.parse_json
        self._guard = shared.guard(method.path, method.rule)
        self._method = self._guard.recorded(method)
        self._max_bytes = shared.limits.max_request_bytes
        self._max_json_depth = shared.limits.max_json_depth
        self._gzip_min_bytes = shared.limits.gzip_min_bytes
        self._gzip_level = shared.limits.gzip_level
        self._admission = shared.admission
        self._worker_thread = shared.worker_thread
        self._now = shared.clock.now
        self._stats = shared.traffic.stats("http", method.path)
        self._ids = shared.ids
        self._media = Media(*_TYPES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call; errors become answers as well."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        call = HttpCall(scope, headers, self._ids)
        try:
            encodings = self._media.encodings(headers.get(b"content-type"), headers.get(b"accept"))
            timeout_s = connect_timeout_s(headers)
            if timeout_s is None:
                payload, seconds = await self._run(encodings, headers, call, receive)
            else:
                call.set_deadline(self._now() + timeout_s)
                async with asyncio.timeout(timeout_s + _DEADLINE_GRACE_S):
                    payload, seconds = await self._run(encodings, headers, call, receive)
            answer_headers = [(b"content-type", encodings.content_type)]
            if b"x-request-id" in headers:
                answer_headers.append(request_id_header(call))
            if len(payload) >= self._gzip_min_bytes and accepts_gzip(headers.get(b"accept-encoding")):
                payload = await gzipping.compress(payload, self._gzip_level)
                answer_headers.append((b"content-encoding", b"gzip"))
            self._stats.answered(seconds)  # no sooner: what is ready may still be refused
        except ClientGone:
            return
        except BaseException as error:
            await self._refuse(send, error, call, headers)
            return
        await respond(send, 200, answer_headers, payload)

    async def _run(
        self, encodings: Encodings, headers: Mapping[bytes, bytes], call: HttpCall, receive: Receive
    ) -> tuple[bytes, float]:
        """The answer, and how many seconds it took from when the request was complete."""
        caller = peer = call.host
        if self._guard.admit is not None:
            self._guard.admit(call)
            caller = call.caller
        if b"content-encoding" in headers or b"expect" in headers:
            body = await self._read(headers, peer, receive)
        else:
            body = await read_body(receive, self._admission, peer, self._max_bytes)
        if len(body) < LARGE_BYTES:
            return await self._answer(encodings, body, call, caller)
        with self._admission.holding(peer, len(body)):
            return await self._answer(encodings, body, call, caller)

    async def _answer(self, encodings: Encodings, body: bytes, call: HttpCall, caller: str) -> tuple[bytes, float]:
        admission, peer = self._admission, call.host
        admission.open_call(peer)
        try:
            admission.check_rate(caller)
            if encodings.json_in:
                refuse_deep(body, self._max_json_depth)
            started = self._now()
            request = await self._worker_thread.run(self._parse_json, body) if encodings.json_in else self._parse(body)
            answer = await settled(self._method(request, call))
            payload = await settled(answer.json()) if encodings.json_out else answer.proto()
            seconds = self._now() - started
        finally:
            admission.close_call(peer)
        if len(payload) > admission.max_response_bytes:
            admission.refuse_answer(len(payload))
        return payload, seconds

    async def _read(self, headers: Mapping[bytes, bytes], peer: str, receive: Receive) -> bytes:
        check_length(headers, self._max_bytes)
        body = await read_body(receive, self._admission, peer, self._max_bytes)
        return await gzipping.decompress(body, self._max_bytes) if is_gzip(headers.get(b"content-encoding")) else body

    async def _refuse(self, send: Send, error: BaseException, call: HttpCall, headers: Mapping[bytes, bytes]) -> None:
        told = error_statuses.as_service_error(error, call)
        self._admission.count(told)
        self._guard.refused(call, told)
        self._stats.ended(told.code)
        await respond_error(send, told, [request_id_header(call)] if b"x-request-id" in headers else [])
