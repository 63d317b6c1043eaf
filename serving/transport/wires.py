"""What the protocols have in common: how messages, answers, ends and errors of one call go over an exchange."""

from __future__ import annotations

from serving.encoding import envelopes
from serving.encoding.envelopes import Message
from serving.errors import ServiceError
from serving.limiting.limits import Limits
from serving.transport.call import ExchangeCall
from serving.transport.exchange import Exchange


class Wire:
    """One protocol in one call. The constructor raises ServiceError for headers that it cannot serve.

    Attributes:
        transport: as metrics name it.
        json_in, json_out: proto3 JSON instead of the binary encoding.
        timeout_s: how long the caller waits; None: it did not say.
    """

    transport = "http"
    json_in = json_out = False
    timeout_s: float | None = None
    _encoding = ""  # of messages that say they are compressed

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        self._exchange, self._limits = exchange, limits

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        """The messages that have become complete. Raises ServiceError."""
        raise NotImplementedError

    def decompress(self, payload: bytes) -> bytes:
        """Of a message that is compressed; may take long. Raises ServiceError."""
        return envelopes.gunzip(self._encoding, payload, self._limits.max_request_bytes)

    def unary_answer(self, call: ExchangeCall, payload: bytes) -> None:
        """The one answer of a call, and its end."""
        self.begin(call)
        self.message(payload)
        self.end(call)

    def begin(self, call: ExchangeCall) -> None:
        """Answers will come."""
        raise NotImplementedError

    def message(self, payload: bytes) -> None:
        """One of the answers."""
        raise NotImplementedError

    def end(self, call: ExchangeCall) -> None:
        """All went well."""
        raise NotImplementedError

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        """The end of a call, whether its answer has begun or not."""
        raise NotImplementedError
