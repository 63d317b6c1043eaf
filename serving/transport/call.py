"""A call over any protocol, as those who serve it see it."""

from __future__ import annotations

from collections.abc import Sequence

from serving.calls.incoming import RequestIds, acceptable_request_id
from serving.calls.methods import Call, Push
from serving.rights.access import UNCHECKED
from serving.transport.exchange import Exchange


class ExchangeCall(Call):
    """A call over any protocol, worked out from its exchange when somebody asks."""

    __setattr__ = object.__setattr__  # the base is frozen; its check would cost more than all of this object

    access = UNCHECKED
    _deadline: float | None = None
    _request_id = ""
    head_fields: Sequence[tuple[bytes, bytes]] = ()  # sent beside those of the protocol
    trailer_fields: Sequence[tuple[bytes, bytes]] = ()

    def __init__(self, exchange: Exchange, ids: RequestIds) -> None:
        self._exchange, self._ids = exchange, ids

    def set_deadline(self, deadline: float) -> None:
        """Make known when the caller stops waiting."""
        self._deadline = deadline

    @property
    def deadline(self) -> float | None:
        return self._deadline

    @property
    def request_id(self) -> str:
        if not self._request_id:
            self._request_id = acceptable_request_id(self.header("x-request-id")) or self._ids()
        return self._request_id

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
