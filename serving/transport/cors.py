"""Pages of other origins in a browser (CORS): which may ask, and what a browser is told so that it lets them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from serving.transport.exchange import AnswerHead, Exchange

_METHODS: Final = b"GET, HEAD, POST"
_SENT: Final = (
    b"authorization, content-type, connect-protocol-version, connect-timeout-ms, grpc-timeout, x-grpc-web, "
    b"x-user-agent, x-request-id, x-hq-cluster, traceparent, tracestate"
)
_READ: Final = b"grpc-status, grpc-message, grpc-status-details-bin, retry-after, x-request-id"
_KEPT_S: Final = b"7200"


class Cors:
    """The origins that an operator allows; `*` is all of them."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def __bool__(self) -> bool:
        return bool(self._origins)

    def answered(self, exchange: Exchange) -> bool:
        """Note what the answer must say; whether the request was only a browser's question, and is answered."""
        named = exchange.head.named
        origin = named.get(b"origin")
        if origin is None or not (origin in self._origins or b"*" in self._origins):
            return False
        exchange.extra = [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _READ),
            (b"vary", b"origin"),
        ]
        if exchange.head.method != b"OPTIONS" or b"access-control-request-method" not in named:
            return False
        allowed = [
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _SENT),
            (b"access-control-max-age", _KEPT_S),
        ]
        exchange.answer(AnswerHead(204, allowed), b"")
        return True
