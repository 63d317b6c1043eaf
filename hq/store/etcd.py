"""The store on etcd v3: a session over several members.

Any member serves. A member that fails is left for the next one; reads are repeated there at once, writes never are
(their outcome may be unknown, which only the writer can settle: see commit.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import grpc

from hq.store.etcd_rpc import EtcdWatch, Member, Metadata, TokenRefused
from hq.store.port import (
    Commit,
    Compare,
    Disconnected,
    MemberStatus,
    Page,
    Record,
    Unavailable,
    UnknownOutcome,
    Write,
)

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EtcdConfig:
    """Where etcd is and how to speak with it.

    Attributes:
        endpoints: host:port of the members, any order.
        ca, cert, key: files in PEM form; ca alone: TLS without a client certificate; none: plain text.
        user, password: for etcd's own authentication; empty: none.
        read_timeout_s: for one try at one member.
    """

    endpoints: tuple[str, ...]
    ca: str = ""
    cert: str = ""
    key: str = ""
    user: str = ""
    password: str = ""
    read_timeout_s: float = 3.0

    def credentials(self) -> grpc.ChannelCredentials | None:
        """For TLS; None for plain text."""
        if not self.ca:
            return None
        read = {name: Path(path).read_bytes() for name, path in (("cert", self.cert), ("key", self.key)) if path}
        return grpc.ssl_channel_credentials(Path(self.ca).read_bytes(), read.get("key"), read.get("cert"))


class EtcdStore:
    """The port `Store` on etcd 3.4 or newer."""

    def __init__(self, config: EtcdConfig) -> None:
        self._config = config
        credentials = config.credentials()
        self._members = [Member(endpoint, credentials) for endpoint in config.endpoints]
        self._current = 0
        self._tokens: dict[str, str] = {}

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        member = self._members[self._current]
        try:
            return await self._authenticated(
                member, lambda metadata: member.commit(guards, writes, timeout_s, metadata)
            )
        except (UnknownOutcome, Unavailable):
            self._leave(member)
            raise

    async def get(self, key: bytes, *, revision: int = 0) -> tuple[Record | None, int]:
        page = await self._read(lambda m, t, md: m.range(key, None, revision, 0, t, md))
        return (page.records[0] if page.records else None), page.revision

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int) -> Page:
        return await self._read(lambda m, t, md: m.range(start, end, revision, limit, t * 10, md))

    async def newest(self, start: bytes, end: bytes) -> tuple[int, int, int]:
        return await self._read(lambda m, t, md: m.newest(start, end, t * 10, md))

    async def compact(self, revision: int) -> None:
        await self._read(lambda m, t, md: m.compact(revision, t * 10, md))

    async def members(self) -> list[MemberStatus]:
        asked = (self._status(member) for member in self._members)
        return list(await asyncio.gather(*asked))

    @asynccontextmanager
    async def watch(self, start: bytes, end: bytes, *, after: int) -> AsyncIterator[EtcdWatch]:
        member = self._members[self._current]
        try:
            metadata = await self._metadata(member)
            async with member.watch(start, end, after, metadata) as stream:
                yield stream
        except TokenRefused as error:
            self._tokens.pop(member.endpoint, None)
            raise Disconnected(str(error)) from error
        except Disconnected:
            self._leave(member)
            raise

    async def close(self) -> None:
        for member in self._members:
            await member.close()

    def leave_current(self) -> None:
        """Go on with the next member: the current one gives no sign of life although its connection stands."""
        self._leave(self._members[self._current])

    async def _read(self, call: Callable[[Member, float, Metadata], Awaitable[T]]) -> T:
        """Ask the current member, then each other one once."""
        left = len(self._members)
        while True:
            member = self._members[self._current]
            try:
                return await self._ask(member, call)
            except Unavailable:
                self._leave(member)
                left -= 1
                if not left:
                    raise

    async def _ask(self, member: Member, call: Callable[[Member, float, Metadata], Awaitable[T]]) -> T:
        return await self._authenticated(member, lambda metadata: call(member, self._config.read_timeout_s, metadata))

    async def _authenticated(self, member: Member, call: Callable[[Metadata], Awaitable[T]]) -> T:
        """Call with a token, and with a new one if that has expired: nothing was done in that case."""
        try:
            return await call(await self._metadata(member))
        except TokenRefused:
            self._tokens.pop(member.endpoint, None)
        try:
            return await call(await self._metadata(member))
        except TokenRefused as error:
            raise Unavailable(str(error)) from error

    async def _metadata(self, member: Member) -> Metadata:
        if not self._config.user:
            return ()
        if member.endpoint not in self._tokens:
            user, password = self._config.user, self._config.password
            self._tokens[member.endpoint] = await member.authenticate(user, password, self._config.read_timeout_s)
        return (("token", self._tokens[member.endpoint]),)

    async def _status(self, member: Member) -> MemberStatus:
        try:
            return await self._authenticated(member, lambda md: member.status(self._config.read_timeout_s, md))
        except Unavailable as error:
            return MemberStatus(member.endpoint, error=str(error))

    def _leave(self, member: Member) -> None:
        if self._members[self._current] is member and len(self._members) > 1:
            self._current = (self._current + 1) % len(self._members)
            log.warning("leaving etcd member %s for %s", member.endpoint, self._members[self._current].endpoint)
