"""What a transport needs to know of a call: how to read its request, how to run it, how to write its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from serving.shares import host_of

CLUSTER_HEADER: Final = "x-hq-cluster"  # which cluster a caller means; at a front the way to name a location


@dataclass(frozen=True, slots=True)
class Call:
    """Circumstances of one call.

    Attributes:
        deadline: on the injected clock, in seconds; None: the caller set none (a default applies to writes).
        peer: the caller's address, for messages.
        request_id: the caller's word for this call, or one made up.
    """

    deadline: float | None = None
    peer: str = ""
    request_id: str = ""

    @property
    def host(self) -> str:
        """The caller's address without its port: what limits per peer count by."""
        return host_of(self.peer)

    def header(self, name: str) -> str:
        """A header (HTTP) or metadata entry (gRPC) of the call by its lower-case name; empty: there is none."""
        return ""


class Answer(Protocol):
    """An answer in waiting: bytes are made for the format that was asked for, and only for it."""

    def proto(self) -> bytes:
        """The encoded message."""
        ...

    async def json(self) -> bytes:
        """The message as proto3 JSON; a large one is made in slices that yield to the loop."""
        ...


@dataclass(frozen=True, slots=True)
class Unary:
    """A call with one answer. `parse` and `parse_json` raise InvalidRequest; `run` raises HqError."""

    path: str  # e.g. "hq.v1.InstanceService/GetInstance"
    parse: Callable[[bytes], Any]
    parse_json: Callable[[bytes], Any]
    run: Callable[[Any, Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Streaming:
    """A call with a stream of answers, which ends by itself or with an HqError."""

    path: str
    parse: Callable[[bytes], Any]
    parse_json: Callable[[bytes], Any]
    run: Callable[[Any, Call], AsyncIterator[Answer]]


Method = Unary | Streaming
