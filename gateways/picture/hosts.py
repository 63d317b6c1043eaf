"""Addresses of hosts given by name: resolved in the background, keeping the last good ones.

A host is usually an address already. A name is looked up when first requested, and periodically while in use.
A failed lookup changes nothing: the last result stays.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Collection
from types import TracebackType
from typing import Final, Self

log = logging.getLogger(__name__)

Resolve = Callable[[str], Awaitable[Collection[str]]]
"""All addresses of a name. Raises OSError."""

REFRESH_S: Final = 30.0
MOST_NAMES: Final = 100_000
_AT_ONCE: Final = 16
_PATIENCE_S: Final = 5.0
_UNUSED_ROUNDS: Final = 10  # a name not requested for this many rounds is dropped


async def system_resolve(name: str) -> Collection[str]:
    """Resolve a name with the machine's resolver. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(where[0]) for *_, where in found]


class _ResolvedName:
    """The addresses of one name; empty: not resolved yet."""

    __slots__ = ("addresses", "has_failed", "is_pending", "unused")

    def __init__(self) -> None:
        self.addresses: tuple[str, ...] = ()
        self.is_pending, self.has_failed, self.unused = True, False, 0


class HostResolver:
    """Hosts' addresses. A context manager; in the block names are resolved.

    Attributes:
        refused: names over the bound, which are not looked up.
    """

    def __init__(self, resolve: Resolve = system_resolve, refresh_s: float = REFRESH_S) -> None:
        self._resolve, self._refresh_s = resolve, refresh_s
        self.refused = 0
        self._literal: dict[str, tuple[str, ...]] = {}
        self._names: dict[str, _ResolvedName] = {}
        self._tell: Callable[[Collection[str]], None] = lambda _: None
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_open = False

    @property
    def names(self) -> int:
        """How many hosts are names."""
        return len(self._names)

    @property
    def unresolved(self) -> int:
        """How many of these names have no address."""
        return sum(not one.addresses for one in self._names.values())

    def on_change(self, tell: Callable[[Collection[str]], None]) -> None:
        """Call this with hosts whose addresses have changed."""
        self._tell = tell

    def addresses(self, host: str) -> tuple[str, ...] | None:
        """Addresses in order; empty: it has none; None: the first resolution is under way."""
        if (found := self._literal.get(host)) is not None:
            return found
        if host in self._names:
            name = self._names[host]
            name.unused = 0
            return None if name.is_pending and not name.addresses else name.addresses
        return self._first_seen(host)

    async def __aenter__(self) -> Self:
        self._is_open = True
        self._start(self._keep())
        for host in self._names:
            self._start(self._look_up([host]))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _first_seen(self, host: str) -> tuple[str, ...] | None:
        try:
            literal = (str(ipaddress.ip_address(host)),)
        except ValueError:
            return self._new_name(host)
        if len(self._literal) >= MOST_NAMES:
            self._literal.clear()
        self._literal[host] = literal
        return literal

    def _new_name(self, host: str) -> tuple[str, ...] | None:
        if len(self._names) >= MOST_NAMES or not host:
            self.refused += 1
            return ()
        self._names[host] = _ResolvedName()
        if self._is_open:
            self._start(self._look_up([host]))
        return None

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._refresh_s)
            for host, name in [*self._names.items()]:
                name.unused += 1
                if name.unused > _UNUSED_ROUNDS:
                    del self._names[host]
            await self._look_up([*self._names])

    async def _look_up(self, hosts: Collection[str]) -> None:
        changed = [host for host, moved in zip(hosts, await self._all(hosts), strict=True) if moved]
        if changed:
            self._tell(changed)

    async def _all(self, hosts: Collection[str]) -> list[bool]:
        return await asyncio.gather(*(self._one(host) for host in hosts))

    async def _one(self, host: str) -> bool:
        """Look up a host; return whether its addresses changed."""
        name = self._names.get(host)
        if name is None:
            return False
        try:
            async with self._slots, asyncio.timeout(_PATIENCE_S):
                found = tuple(sorted({str(ipaddress.ip_address(one)) for one in await self._resolve(host)}))
        except (OSError, TimeoutError, UnicodeError, ValueError) as error:
            return self._record_failure(host, name, error)
        name.has_failed = False
        before, name.addresses = (name.addresses, name.is_pending), found or name.addresses
        name.is_pending = False
        return before != (name.addresses, False)

    def _record_failure(self, host: str, name: _ResolvedName, error: Exception) -> bool:
        if not name.has_failed:
            kept = f"keeping {', '.join(name.addresses)}" if name.addresses else "instances there are left out"
            log.warning("host %s cannot be resolved: %s; %s", host, str(error) or "no answer in time", kept)
        name.has_failed = True
        was_pending, name.is_pending = name.is_pending, False
        return was_pending
