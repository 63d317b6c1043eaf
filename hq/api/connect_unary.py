"""Calls with one answer over the Connect protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from hq.api import gzipping, wire
from hq.api.asgi import ClientGone, Receive, Scope, Send, read_body, respond, respond_error
from hq.api.calls import HttpCall
from hq.api.connect import connect_timeout_s, request_id_header
from hq.api.media import Exchange, Media, accepts_gzip, is_gzip
from hq.api.methods import Unary
from hq.api.surroundings import Surroundings

_TYPES: Final = ("application/json", "application/proto", "application/x-protobuf")
# A deadline is the method's to keep: it knows whether a write was stored. Later than this we cut it off.
_DEADLINE_GRACE_S: Final = 0.25


class UnaryEndpoint:
    """One request, one answer, each the bare body."""

    def __init__(self, method: Unary, shared: Surroundings) -> None:
        self._parse = method.parse
        self._parse_json = method.parse_json
        self._method = method.run
        self._limits = shared.limits
        self._admission = shared.admission
        self._now = shared.clock.now
        self._stats = shared.traffic.stats("http", method.path)
        self._ids = shared.ids
        self._media = Media(*_TYPES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call; errors become answers as well."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        call = HttpCall(scope, headers, self._ids)
        try:
            exchange = self._media.exchange(headers.get(b"content-type"), headers.get(b"accept"))
            timeout_s = connect_timeout_s(headers)
            if timeout_s is not None:
                call.set_deadline(self._now() + timeout_s)
            body = await self._read(headers, receive)
            if timeout_s is None:
                payload = await self._run(exchange, body, call)
            else:
                async with asyncio.timeout(timeout_s + _DEADLINE_GRACE_S):
                    payload = await self._run(exchange, body, call)
            answer_headers = [(b"content-type", exchange.content_type), *request_id_header(call, headers)]
            if len(payload) >= self._limits.gzip_min_bytes and accepts_gzip(headers.get(b"accept-encoding")):
                payload = await gzipping.compress(payload, self._limits.gzip_level)
                answer_headers.append((b"content-encoding", b"gzip"))
        except ClientGone:
            return
        except BaseException as error:
            told = wire.as_hq_error(error, call)
            self._stats.ended(told.code)
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
            if admission.peer_rate is not None:
                admission.check_peer(call.peer)
            started = self._now()
            request = self._parse_json(body) if exchange.json_in else self._parse(body)
            answer = await self._method(request, call)
            payload = await answer.json() if exchange.json_out else answer.proto()
            self._stats.answered(self._now() - started)
        finally:
            admission.calls -= 1
        if len(payload) > admission.max_response_bytes:
            admission.refuse_answer(len(payload))
        return payload
