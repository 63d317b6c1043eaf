"""The store on etcd v3: a session over several members.

Any member serves. A member that fails is left for the next one, and what certainly was not done is tried there at once.
A write of unknown outcome is not tried again: only its writer can settle it (commit.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import grpc

from store.etcd_errors import Answered, Metadata, Token, TokenRefused, WatchTokenRefused
from store.etcd_rpc import EtcdWatch, MemberConnection
from store.port import (
    Commit,
    Compare,
    Disconnected,
    MemberStatus,
    Record,
    StorePage,
    Unavailable,
    UnknownOutcome,
    Write,
)

log = logging.getLogger(__name__)
T = TypeVar("T")

_SLOW = 10  # reads of many keys may take this many times longer
_LEAST_TIMEOUT_S = 0.1
_DRAIN_S = 30.0


class EtcdCredentials(Protocol):
    """TLS credentials of channels to etcd, read from files that may be replaced meanwhile."""

    @property
    def current(self) -> grpc.ChannelCredentials:
        """The credentials in force."""
        ...

    @property
    def fault(self) -> str:
        """Why the files as they are now are not in force; empty: they are."""
        ...

    def has_changed(self) -> bool:
        """Whether `current` has changed since the last call."""
        ...


async def _unknown_cause(endpoint: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class EtcdConfig:
    """Where etcd is and how to talk to it.

    Attributes:
        endpoints: host:port of the members, any order.
        credentials: for TLS; None: plain text.
        user, password: for etcd's own authentication; empty: none.
        read_timeout_s: for one try at one member.
        find_cause: why there is no connection to an endpoint; empty: unknown.
    """

    endpoints: tuple[str, ...]
    credentials: EtcdCredentials | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    read_timeout_s: float = 3.0
    find_cause: Callable[[str], Awaitable[str]] = _unknown_cause


class EtcdStore:
    """The port `Store` on etcd 3.4 or newer."""

    def __init__(self, config: EtcdConfig) -> None:
        self._config = config
        self._tls = config.credentials
        self._members = self._create_connections()
        self._tokens = {member.endpoint: self._token_for(member) for member in self._members}
        self._current = 0
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def files_fault(self) -> str:
        """Why the files for TLS as they are now are not in force; empty: they are, or there are none."""
        return self._tls.fault if self._tls is not None else ""

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s

        def left_s() -> float:
            return max(_LEAST_TIMEOUT_S, deadline - loop.time())

        return await self._ask(lambda m, md: m.commit(guards, writes, left_s(), md))

    async def get(self, key: bytes, *, revision: int = 0) -> tuple[Record | None, int]:
        timeout_s = self._config.read_timeout_s
        page = await self._ask(lambda m, md: m.range(key, None, revision, 0, timeout_s, md))
        return (page.records[0] if page.records else None), page.revision

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False) -> StorePage:
        timeout_s = self._config.read_timeout_s * _SLOW
        return await self._ask(lambda m, md: m.range(start, end, revision, limit, timeout_s, md, keys_only=keys_only))

    async def count(self, start: bytes, end: bytes, *, revision: int) -> int:
        timeout_s = self._config.read_timeout_s * _SLOW
        return await self._ask(lambda m, md: m.count(start, end, revision, timeout_s, md))

    async def newest(self, start: bytes, end: bytes) -> tuple[int, int, int]:
        timeout_s = self._config.read_timeout_s * _SLOW
        return await self._ask(lambda m, md: m.newest(start, end, timeout_s, md))

    async def compact(self, revision: int) -> None:
        timeout_s = self._config.read_timeout_s * _SLOW
        await self._ask(lambda m, md: m.compact(revision, timeout_s, md))

    async def divide(self, administrator: str, parts: Mapping[str, bytes]) -> None:
        """Switch etcd's authentication on, with these users. The administrator may repeat it. Raises StoreError.

        Args:
            administrator: the user that may open everything and compact. Users are common names of certificates.
            parts: by user, the prefix of the only keys that it may open. Raises ValueError if a prefix is empty.
        """
        for user, prefix in parts.items():
            if not prefix.strip(b"/"):
                raise ValueError(f"{user}: an empty prefix would open everything")
        timeout_s = self._config.read_timeout_s * _SLOW
        await self._ask(lambda m, md: m.divide(administrator, parts, timeout_s, md))

    async def members(self) -> list[MemberStatus]:
        return list(await asyncio.gather(*map(self._status, self._members)))

    @asynccontextmanager
    async def watch(self, start: bytes, end: bytes, *, after: int) -> AsyncIterator[EtcdWatch]:
        self._renew()
        member = self._members[self._current]
        token, metadata = self._tokens[member.endpoint], None
        try:
            metadata = await token.metadata()
            async with member.watch(start, end, after, metadata) as stream:
                yield stream
        except WatchTokenRefused:
            if metadata is not None:
                token.on_token_refused(metadata)
            raise
        except Disconnected:
            self._leave(member)
            raise
        except Unavailable as error:
            if metadata is not None:
                raise  # an error of the caller's own
            self._leave(member)
            raise Disconnected(str(error)) from error

    async def close(self) -> None:
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        for member in self._members:
            await member.close()

    def _create_connections(self) -> list[MemberConnection]:
        credentials = self._tls.current if self._tls is not None else None
        return [MemberConnection(endpoint, credentials) for endpoint in self._config.endpoints]

    def _renew(self) -> None:
        """Switch to connections with the current certificates; calls under way on the old ones may finish."""
        if self._tls is None or not self._tls.has_changed():
            return
        old, self._members = self._members, self._create_connections()
        self._tokens = {member.endpoint: self._token_for(member) for member in self._members}
        task = asyncio.create_task(_close_later(old), name="old connections to etcd")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _ask(self, call: Callable[[MemberConnection, Metadata], Awaitable[T]]) -> T:
        """Ask the current member; one that certainly did nothing is left for the next, and each is asked once."""
        self._renew()
        first, count = self._current, len(self._members)
        errors: list[Unavailable] = []
        for i in range(count):
            member = self._members[(first + i) % count]
            try:
                return await self._call_with_token(member, call)
            except UnknownOutcome:
                self._leave(member)
                raise
            except Unavailable as error:
                self._leave(member)
                errors.append(error)
        # A member that says what is wrong explains more than one that does not answer.
        raise next((error for error in errors if isinstance(error, Answered)), errors[-1])

    async def _call_with_token(
        self, member: MemberConnection, call: Callable[[MemberConnection, Metadata], Awaitable[T]]
    ) -> T:
        """Call with a token, and with a new one if that was refused: nothing was done in that case."""
        token = self._tokens[member.endpoint]
        metadata = await token.metadata()
        try:
            return await call(member, metadata)
        except TokenRefused:
            token.on_token_refused(metadata)
        metadata = await token.metadata()
        try:
            return await call(member, metadata)
        except TokenRefused as error:
            token.on_token_refused(metadata)
            raise Answered(str(error)) from error

    def _token_for(self, member: MemberConnection) -> Token:
        user, password, timeout_s = self._config.user, self._config.password, self._config.read_timeout_s
        return Token((lambda: member.authenticate(user, password, timeout_s)) if user else None)

    async def _status(self, member: MemberConnection) -> MemberStatus:
        timeout_s = self._config.read_timeout_s
        try:
            return await self._call_with_token(member, lambda m, md: m.status(timeout_s, md))
        except Answered as error:
            return MemberStatus(member.endpoint, error=str(error))
        except Unavailable as error:
            why = await self._config.find_cause(member.endpoint)
            told = f"etcd: cannot connect to {member.endpoint}: {why}" if why else str(error)
            return MemberStatus(member.endpoint, error=told)

    def _leave(self, member: MemberConnection) -> None:
        if self._members[self._current] is member and len(self._members) > 1:
            self._current = (self._current + 1) % len(self._members)
            log.warning("switching from etcd member %s to %s", member.endpoint, self._members[self._current].endpoint)


async def _close_later(members: Sequence[MemberConnection]) -> None:
    try:
        await asyncio.sleep(_DRAIN_S)
    finally:
        for member in members:
            await member.close()
