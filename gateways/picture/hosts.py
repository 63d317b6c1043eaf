"""Addresses of hosts given by name: resolved in the background, keeping the last good ones.

A host is usually an address already. A name is looked up when first requested, and periodically while in use.
A failed lookup changes nothing: the last result stays.

Owners of services choose the names. The names of one service, whose name servers may never answer, have a share of the
lookups, and wait for one another only.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Final, Self
from weakref import WeakValueDictionary

log = logging.getLogger(__name__)

Resolve = Callable[[str], Awaitable[Collection[str]]]
"""All addresses of a name. Raises OSError."""

REFRESH_S: Final = 30.0
MOST_NAMES: Final = 100_000
_MOST_OF_ONE: Final = 50_000  # of one service
_AT_ONCE: Final = 16
_AT_ONCE_OF_ONE: Final = 4
_PATIENCE_S: Final = 5.0
_UNUSED_ROUNDS: Final = 10  # a name not requested for this many rounds is dropped


# The system's resolver may hold a thread for half a minute after nobody waits for it any more.
_threads: Final = ThreadPoolExecutor(8 * _AT_ONCE, "resolve")


async def system_resolve(name: str) -> Collection[str]:
    """Resolve a name with the machine's resolver. Raises OSError."""
    look_up = partial(socket.getaddrinfo, name, None, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_threads, look_up)
    return [str(where[0]) for *_, where in found]


class _ResolvedName:
    """The addresses of one name; empty: not resolved yet."""

    __slots__ = ("addresses", "has_failed", "is_pending", "looked_up_for", "service", "unused")

    def __init__(self, service: str) -> None:
        self.addresses: tuple[str, ...] = ()
        self.service = service  # the first to name it: it counts against its quota and uses its lookup slots
        self.looked_up_for: set[str] = set()
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
        self._of: Counter[str] = Counter()  # names by service
        self._tell: Callable[[Collection[str]], None] = lambda _: None
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._shares = WeakValueDictionary[str, asyncio.Semaphore]()
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
        """Call `tell` with hosts whose addresses have changed."""
        self._tell = tell

    def addresses(self, host: str, service: str = "") -> tuple[str, ...] | None:
        """Addresses in order; empty: it has none; None: the first resolution is under way."""
        if (found := self._literal.get(host)) is not None:
            return found
        if (name := self._names.get(host)) is not None:
            name.unused = 0
            if not name.is_pending or name.addresses:
                return name.addresses
            self._begin(host, name, service)  # not behind the names of the service that named it first
            return None
        return self._first_seen(host, service)

    async def __aenter__(self) -> Self:
        self._is_open = True
        self._start(self._keep())
        self._look_up_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _first_seen(self, host: str, service: str) -> tuple[str, ...] | None:
        try:
            literal = (str(ipaddress.ip_address(host)),)
        except ValueError:
            return self._new_name(host, service)
        if len(self._literal) >= MOST_NAMES:
            self._literal.clear()
        self._literal[host] = literal
        return literal

    def _new_name(self, host: str, service: str) -> tuple[str, ...] | None:
        if len(self._names) >= MOST_NAMES or self._of[service] >= _MOST_OF_ONE or not host:
            self.refused += 1
            return ()
        self._names[host] = name = _ResolvedName(service)
        self._of[service] += 1
        self._begin(host, name, service)
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
                    self._of[name.service] -= 1
                    if not self._of[name.service]:
                        del self._of[name.service]
            self._look_up_all()

    def _look_up_all(self) -> None:
        for host, name in self._names.items():
            self._begin(host, name, name.service)

    def _begin(self, host: str, name: _ResolvedName, service: str) -> None:
        """Look a host up in this service's share, unless that has begun or waits for its turn."""
        if self._is_open and service not in name.looked_up_for:
            name.looked_up_for.add(service)
            self._start(self._look_up(host, name, service))

    async def _look_up(self, host: str, name: _ResolvedName, service: str) -> None:
        share = self._shares.setdefault(service, asyncio.Semaphore(_AT_ONCE_OF_ONE))
        try:
            async with share, self._slots:
                has_changed = await self._resolve_name(host, name)
        finally:
            name.looked_up_for.discard(service)
        if has_changed:
            self._tell([host])

    async def _resolve_name(self, host: str, name: _ResolvedName) -> bool:
        """Look up a host; return whether its addresses changed."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
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
