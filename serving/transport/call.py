"""A call over any protocol, as those who serve it see it."""

from __future__ import annotations

from collections.abc import Sequence

from serving.calls.incoming import IncomingCall, RequestIds
from serving.calls.methods import Push
from serving.transport.exchange import Exchange


class ExchangeCall(IncomingCall):
    """A call over any protocol, worked out from its exchange when somebody asks."""

    head_fields: Sequence[tuple[bytes, bytes]] = ()  # sent beside those of the protocol
    trailer_fields: Sequence[tuple[bytes, bytes]] = ()

    def __init__(self, exchange: Exchange, ids: RequestIds) -> None:
        self._exchange, self._ids = exchange, ids

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
