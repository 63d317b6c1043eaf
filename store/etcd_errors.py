"""Classifies failed calls to etcd: certainly not done, or unknown, or that its token must be fetched again.

Decided by the gRPC status and its message.

Everything that is not listed here is unknown, since a wrong "certainly not" would be a lie.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import NoReturn

import grpc

from store.port import (
    Compacted,
    Disconnected,
    FutureRevision,
    NoSpace,
    Rejected,
    Unavailable,
    UnknownOutcome,
)

Metadata = tuple[tuple[str, str], ...]

FULL = "etcd is full: raise its --quota-backend-bytes, or remove data, compact, defragment; then disarm the alarm"
CLOSED = "the connection to the store was closed"
# What a channel says of a call that it never sent.
_NEVER_SENT = ("failed to connect", "errors resolving", "dns resolution failed")
# etcd's messages about a token that it does not accept, whatever the status. The last: users or roles were changed.
_TOKEN = ("invalid auth token", "revision of auth store is old")
# No token was sent, since authentication was off when one was asked for; or none is configured.
_NO_USER = "user name is empty"
_NOT_ENABLED = "authentication is not enabled"
# The user is not known: nothing that a new token or another transaction would fix.
_NO_ENTRY = ("authentication failed", _NOT_ENABLED)
_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_LEARNER = "rpc not supported for learner"
_CERTAIN = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNIMPLEMENTED)


class Answered(Unavailable):
    """A member answered that it does nothing, and why: of several members' errors, this one explains most."""


class AuthenticationOff(Answered):
    """etcd's authentication is not enabled (yet)."""


class TokenRefused(Exception):
    """The member does not know the authentication token (any more): certainly nothing was done."""


class WatchTokenRefused(Disconnected):
    """The member does not know the token of a watch (any more)."""


_REFUSED = re.compile(
    r"failed to connect to all addresses; last error: \w+: (?:ipv[46]:)?(\S+): "
    r"(?:Failed to connect to remote host: )?(.+)"
)
_UNRESOLVED = re.compile(r"(?:errors resolving|DNS resolution failed for) (\S+): (?:\[.*lookup error: ?|.*: )?(.+?)\]?")


def words_of(error: grpc.aio.AioRpcError) -> str:
    """Return the failure in plain words, without the layers that gRPC lists for a failed connection."""
    details = error.details() or ""
    if match := _REFUSED.fullmatch(details) or _UNRESOLVED.fullmatch(details):
        return f"cannot connect to {match[1]}: {match[2]}"
    return details or error.code().name.lower().replace("_", " ")


def raise_for_call(error: grpc.aio.AioRpcError, *, write: bool) -> NoReturn:
    """Raise the port's error for a failed call, or TokenRefused."""
    code, details, words = error.code(), (error.details() or "").lower(), f"etcd: {words_of(error)}"
    _raise_for_access(code, details, words, error)
    if code is grpc.StatusCode.OUT_OF_RANGE:
        raise (Compacted(0) if "compacted" in details else FutureRevision(words)) from error
    if "database space exceeded" in details:
        raise NoSpace(FULL) from error
    if not write or _certainly_not_done(code, details):
        raise (Unavailable if code in _SILENT else Answered)(words) from error
    if code is grpc.StatusCode.INVALID_ARGUMENT or "larger than max" in details:
        raise Rejected(words) from error
    raise UnknownOutcome(words) from error


def _raise_for_access(code: grpc.StatusCode, details: str, words: str, error: grpc.aio.AioRpcError) -> None:
    """Raise the error if the member did nothing because of who asked, or because it is a learner."""
    if _NO_USER in details:
        needed = f"etcd requires authentication: set --etcd-user and --etcd-password-file ({words})"
        raise TokenRefused(needed) from error
    if code is grpc.StatusCode.UNAUTHENTICATED or any(text in details for text in _TOKEN):
        raise TokenRefused(words) from error
    if _NOT_ENABLED in details:
        raise AuthenticationOff(words) from error
    if _LEARNER in details:
        named = f"this member of etcd is a learner, which does not serve requests: name voting members ({words})"
        raise Answered(named) from error


def cancelled_by_close() -> bool:
    """Whether a CancelledError says that the task's channel was closed: nobody cancelled the task."""
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


def raise_for_watch(error: grpc.aio.AioRpcError) -> NoReturn:
    """Raise the port's error for a watch that ended."""
    refused = error.code() is grpc.StatusCode.UNAUTHENTICATED
    raise (WatchTokenRefused if refused else Disconnected)(f"etcd: {words_of(error)}") from error


def raise_for_cancelled_watch(compact_revision: int, reason: str) -> NoReturn:
    """Raise the port's error for a watch that etcd cancelled."""
    if compact_revision:
        raise Compacted(compact_revision)
    # To a watch with a token that has expired, etcd 3.5 says "permission denied".
    refused = any(text in reason for text in (*_TOKEN, _NO_USER, "permission denied"))
    words = f"etcd cancelled the watch: {reason or 'no reason given'}"
    raise (WatchTokenRefused if refused else Disconnected)(words)


def _certainly_not_done(code: grpc.StatusCode, details: str) -> bool:
    return (
        code in _CERTAIN
        or any(text in details for text in _NO_ENTRY)
        or (code is grpc.StatusCode.UNAVAILABLE and details.startswith(_NEVER_SENT))
        or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and details == "etcdserver: too many requests")
    )


class Token:
    """A token, fetched when first needed and again when it was refused, once for all who wait for it.

    etcd forgets tokens after five minutes without use, at its restart and when the user changes. While its
    authentication is off there is none; once it is on, calls without a token are refused.
    """

    def __init__(self, fetch: Callable[[], Awaitable[str]] | None) -> None:
        """Without `fetch` there is no authentication."""
        self._fetch = fetch
        self._value: str | None = None  # None: not fetched yet; "": there is none
        self._fetching = asyncio.Lock()

    async def metadata(self) -> Metadata:
        """Return the metadata of a call. Raises what `fetch` raises."""
        if self._fetch is None:
            return ()
        async with self._fetching:
            if self._value is None:
                try:
                    self._value = await self._fetch()
                except AuthenticationOff:
                    self._value = ""
        return self._token_metadata()

    def on_token_refused(self, metadata: Metadata) -> None:
        """Forget the token of a call that was refused, unless a newer one was fetched meanwhile."""
        if metadata == self._token_metadata():
            self._value = None

    def _token_metadata(self) -> Metadata:
        return (("token", self._value),) if self._value else ()
