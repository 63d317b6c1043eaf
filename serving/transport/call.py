"""A call as those who serve it see it, worked out from its exchange when somebody asks."""

from __future__ import annotations

from collections.abc import Sequence

from serving.calls.incoming import IncomingCall, RequestIds
from serving.transport.exchange import Exchange


class ExchangeCall(IncomingCall):
    """A call over our own transport, whichever protocol it speaks.

    Attributes:
        head_fields, trailer_fields: sent beside those of the protocol.
        gzip_answers: compress the answers of this call over gRPC, where the caller takes that.
    """

    gzip_answers = False
    head_fields: Sequence[tuple[bytes, bytes]] = ()
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

    @property
    def echoed_request_id(self) -> str:
        """The request id, if the caller sent one or somebody asked for it already; else empty."""
        return self.request_id if self._request_id or b"x-request-id" in self._exchange.head.named else ""
