"""The common part of the protocols that a call may come over."""

from __future__ import annotations

from serving.encoding.envelopes import PREFIX, PREFIX_BYTES, Envelopes, Message, envelope, gunzip
from serving.errors import ServiceError
from serving.limiting.limits import Limits
from serving.transport.call import ExchangeCall
from serving.transport.exchange import AnswerHead, Exchange, with_extra


class Wire:
    """One protocol in one call. The constructor raises ServiceError for headers that it cannot serve."""

    transport = "http"  # as metrics name it
    json_in = False  # proto3 JSON instead of the binary encoding, in requests
    json_out = False  # and in answers
    timeout_s: float | None = None  # how long the caller waits; None: it did not say
    _encoding = ""  # of messages that say they are compressed
    _envelopes: Envelopes | None = None
    _ok: AnswerHead  # the head of an answer that begins well

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        self._exchange, self._limits = exchange, limits

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        """The messages that have become complete. Raises ServiceError."""
        if self._envelopes is None:
            most, size = self._limits.max_request_bytes, len(chunk) - PREFIX_BYTES
            if 0 <= size <= most and PREFIX.unpack_from(chunk) == (
                0,
                size,
            ):  # one message, not compressed: almost always
                return [(False, chunk[PREFIX_BYTES:])]
            self._envelopes = Envelopes(most)
        return self._envelopes.take(chunk, end=end)

    def decompress(self, payload: bytes) -> bytes:
        """Decompress a message; may take long. Raises ServiceError."""
        return gunzip(self._encoding, payload, self._limits.max_request_bytes)

    def unary_answer(self, call: ExchangeCall, payload: bytes) -> None:
        """Send the one answer of a call, and end it."""

    def begin(self, call: ExchangeCall) -> None:
        """Begin the answer: messages will come."""
        self._exchange.begin(with_extra(self._ok, call.head_fields))

    def frame_message(self, payload: bytes) -> bytes:
        """One of the answers, as the body has it."""
        return envelope(0, payload)

    def message(self, payload: bytes) -> None:
        """Send one of the answers."""
        self._exchange.send(self.frame_message(payload))

    def push(self, payload: bytes) -> bool:
        """Send one more answer, in protobuf, if nothing of the last one waits. False: it cannot be sent now."""
        exchange = self._exchange
        if may_send := exchange.sent_any and not (self.json_out or exchange.is_over or exchange.is_waiting):
            self.message(payload)
        return may_send

    def end(self, call: ExchangeCall) -> None:
        """End the call: all went well."""

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        """End the call with an error, whether its answer has begun or not."""
