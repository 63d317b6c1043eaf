"""A call as those who serve it see it, and what the protocols have in common that it may come over."""

from __future__ import annotations

from collections.abc import Sequence

from serving.calls.incoming import IncomingCall, RequestIds
from serving.calls.methods import Push
from serving.encoding.envelopes import PREFIX_BYTES, Envelopes, Message, envelope, gunzip, is_whole
from serving.errors import ServiceError
from serving.limiting.limits import Limits
from serving.transport.exchange import AnswerHead, Exchange, with_extra


class ExchangeCall(IncomingCall):
    """A call over any protocol, worked out from its exchange when somebody asks."""

    head_fields: Sequence[tuple[bytes, bytes]] = ()  # sent beside those of the protocol
    trailer_fields: Sequence[tuple[bytes, bytes]] = ()

    def __init__(self, exchange: Exchange, ids: RequestIds) -> None:
        self._exchange, self._ids = exchange, ids

    def __repr__(self) -> str:
        return f"ExchangeCall({self._exchange.head.target!r} from {self.peer})"

    @property
    def host(self) -> str:
        return self._exchange.peer.host

    @property
    def peer(self) -> str:
        return self._exchange.peer.name

    @property
    def uid(self) -> int:
        return self._exchange.peer.uid

    def certificate(self) -> bytes:
        return self._exchange.peer.certificate

    def header(self, name: str) -> str:
        return self._exchange.head.named.get(name.encode(), b"").decode("latin-1")

    def all_headers(self, name: str) -> tuple[str, ...]:
        encoded, head = name.encode(), self._exchange.head
        if encoded not in head.named:
            return ()
        return tuple([v.decode("latin-1") for k, v in head.fields if k == encoded])

    def fields(self) -> Sequence[tuple[bytes, bytes]]:
        return self._exchange.head.fields

    def answer_header(self, name: str, value: str) -> None:
        self.head_fields = (*self.head_fields, (name.encode(), value.encode("latin-1")))

    def answer_trailer(self, name: str, value: str) -> None:
        self.trailer_fields = (*self.trailer_fields, (name.encode(), value.encode("latin-1")))

    def pusher(self) -> Push:
        return self._exchange.handler.pusher()

    @property
    def echoed_request_id(self) -> str:
        """The request id, if the caller sent one or somebody asked for it already; else empty."""
        return self.request_id if self._request_id or b"x-request-id" in self._exchange.head.named else ""


class Wire:
    """One protocol in one call. The constructor raises ServiceError for headers that it cannot serve."""

    transport = "http"  # as metrics name it
    json_in = json_out = False  # proto3 JSON instead of the binary encoding
    timeout_s: float | None = None  # how long the caller waits; None: it did not say
    _encoding = ""  # of messages that say they are compressed
    _envelopes: Envelopes | None = None
    _ok: AnswerHead  # of an answer that begins well

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        self._exchange, self._limits = exchange, limits

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        """The messages that have become complete. Raises ServiceError."""
        if self._envelopes is None:
            if is_whole(chunk, self._limits.max_request_bytes):  # almost always
                return [(False, chunk[PREFIX_BYTES:])]
            self._envelopes = Envelopes(self._limits.max_request_bytes)
        return self._envelopes.take(chunk, end=end)

    def decompress(self, payload: bytes) -> bytes:
        """Of a message that is compressed; may take long. Raises ServiceError."""
        return gunzip(self._encoding, payload, self._limits.max_request_bytes)

    def unary_answer(self, call: ExchangeCall, payload: bytes) -> None:
        """The one answer of a call, and its end."""

    def begin(self, call: ExchangeCall) -> None:
        """Answers will come."""
        self._exchange.begin(with_extra(self._ok, call.head_fields))

    def framed(self, payload: bytes) -> bytes:
        """One of the answers, as the body has it."""
        return envelope(0, payload)

    def message(self, payload: bytes) -> None:
        """One of the answers."""
        self._exchange.send(self.framed(payload))

    def push(self, payload: bytes) -> bool:
        """One more answer, in protobuf, where nothing of the last waits. False: it cannot be sent now."""
        return not self.json_out and self._exchange.push(self.framed(payload))

    def end(self, call: ExchangeCall) -> None:
        """All went well."""

    def fail(self, call: ExchangeCall, error: ServiceError) -> None:
        """The end of a call, whether its answer has begun or not."""
