"""The circumstances of a call as a transport knows them, worked out only if somebody asks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from serving.calls.current import CURRENT
from serving.calls.methods import Call
from serving.clock import Clock
from serving.errors import invalid
from serving.limiting.peers import address_of, host_of
from serving.rights.access import UNCHECKED

Scope = Mapping[str, Any]

_REQUEST_ID: Final = re.compile(r"[!-~]{1,128}")
_CONNECT_TIMEOUT: Final = re.compile(rb"[0-9]{1,10}")


class RequestIds:
    """Made-up ids of calls: unique within the process, and across processes by their prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._numbers = itertools.count(1)

    def __call__(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"


def acceptable_request_id(text: str) -> str:
    """The caller's id if it is printable ASCII of at most 128 characters, else nothing: ids go into logs."""
    return text if _REQUEST_ID.fullmatch(text) else ""


def connect_timeout_s(headers: Mapping[bytes, bytes]) -> float | None:
    """How long a caller over Connect waits; None: it did not say. The protocol's version is checked, too.

    Raises:
        InvalidRequest: the version is not 1, or the timeout is not a number of at most ten digits.
    """
    version = headers.get(b"connect-protocol-version")
    if version is not None and version != b"1":
        raise invalid("", "connect-protocol-version must be 1")
    timeout_ms = headers.get(b"connect-timeout-ms")
    if timeout_ms is None:
        return None
    if not _CONNECT_TIMEOUT.fullmatch(timeout_ms):
        raise invalid("", "connect-timeout-ms must be a whole number of at most ten digits")
    return int(timeout_ms) / 1000


def _address(peer: str) -> str:
    """host:port of what gRPC calls a peer, like ipv6:%5B::1%5D:40000."""
    return unquote(peer).partition(":")[2]


@lru_cache(4_096)  # calls of one connection have one peer
def grpc_host(peer: str) -> str:
    """The address without its port of what gRPC calls a peer."""
    return host_of(_address(peer))


class IncomingCall(Call):
    """What calls have in common, however they came."""

    __setattr__ = object.__setattr__  # the base is frozen; its check would cost more than all of this object

    access = UNCHECKED
    _deadline: float | None = None
    _request_id = ""
    _ids: RequestIds

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


class GrpcCall(IncomingCall):
    """A call over gRPC; the current one of the task that makes it."""

    _deadline: float | None = -1.0

    def __init__(self, context: Any, clock: Clock, ids: RequestIds) -> None:
        CURRENT.set(self)
        self._context, self._clock, self._ids = context, clock, ids
        self._headers: dict[str, str] | None = None

    @property
    def deadline(self) -> float | None:
        if self._deadline == -1.0:
            left_s = self._context.time_remaining()
            self._deadline = None if left_s is None else self._clock.now() + left_s
        return self._deadline

    @property
    def peer(self) -> str:
        return _address(self._context.peer())

    @property
    def host(self) -> str:
        return grpc_host(self._context.peer())

    def header(self, name: str) -> str:
        if self._headers is None:  # gRPC makes its metadata anew for each look
            told = reversed(self._context.invocation_metadata() or ())
            self._headers = {k: v for k, v in told if isinstance(v, str)}
        return self._headers.get(name, "")

    def all_headers(self, name: str) -> tuple[str, ...]:
        return tuple([v for k, v in self._context.invocation_metadata() or () if k == name])

    def certificate(self) -> bytes:
        found = self._context.auth_context().get("x509_pem_cert", ())
        return b"".join(found[:1])

    @property
    def told_request_id(self) -> str:
        """The request id if the caller sent one, or if somebody asked for it already; else empty."""
        if not self._request_id:
            for name, _ in self._context.invocation_metadata() or ():  # a look takes a microsecond
                if name == "x-request-id":
                    return self.request_id
        return self._request_id


class HttpCall(IncomingCall):
    """A call over HTTP; the current one of the task that makes it."""

    def __init__(self, scope: Scope, headers: Mapping[bytes, bytes], ids: RequestIds) -> None:
        CURRENT.set(self)
        self._scope, self._headers, self._ids = scope, headers, ids

    @property
    def host(self) -> str:
        client = self._scope.get("client")
        return address_of(client[0]) if client else ""

    @property
    def peer(self) -> str:
        client = self._scope.get("client")
        return f"{client[0]}:{client[1]}" if client else ""

    def header(self, name: str) -> str:
        return self._headers.get(name.encode(), b"").decode("latin-1")

    def all_headers(self, name: str) -> tuple[str, ...]:
        encoded = name.encode()
        return tuple([v.decode("latin-1") for k, v in self._scope["headers"] if k == encoded])
