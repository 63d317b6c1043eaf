"""The endpoints of one service at one named port, in order, and the subscribers to their changes."""

from __future__ import annotations

import asyncio
import inspect
import logging
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from hqclient.discovery.endpoint import Endpoint, EndpointChanges, Key, KnownInstance, endpoint
from hqclient.discovery.roster import Delta


class EndpointList:
    """The endpoints that the roster's instances have for one service, port and revision.

    Attributes:
        generation: increases with every change of the endpoints.
    """

    def __init__(self, service: str, port: str, revision: str = "") -> None:
        self.service, self.port, self.revision = service, port, revision
        self.generation = 0
        self._by_key: dict[Key, Endpoint] = {}
        self._order: list[Key] = []
        self._endpoints: tuple[Endpoint, ...] | None = ()
        self._without_port: set[Key] = set()

    def __repr__(self) -> str:
        return f"EndpointList({self.service}:{self.port}, {len(self._by_key)} endpoints)"

    def __len__(self) -> int:
        return len(self._by_key)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Endpoints in order of their keys."""
        if self._endpoints is None:
            self._endpoints = tuple(self._by_key[key] for key in self._order)
        return self._endpoints

    @property
    def without_port(self) -> int:
        """Ready instances that are left out because they have no port of that name, or no host."""
        return len(self._without_port)

    def show(self, delta: Delta) -> EndpointChanges:
        """Apply a step of the roster. The result is false if it changed nothing here."""
        added, removed, changed = [], [], []
        for key in sorted(delta.changes):
            before, after = self._by_key.get(key), self._endpoint_for(key, delta.changes[key][1])
            if before == after:
                continue
            self._place(key, after)
            if before is None and after is not None:
                added.append(after)
            elif after is None and before is not None:
                removed.append(before)
            elif before is not None and after is not None:
                changed.append((before, after))
        collapsed = delta.collapsed or bool(delta.resync)
        return EndpointChanges(
            self.service, tuple(added), tuple(removed), tuple(changed), delta.resync, collapsed=collapsed
        )

    def _endpoint_for(self, key: Key, instance: KnownInstance | None) -> Endpoint | None:
        """The endpoint, if the instance is of this service and has one; counts instances without the port."""
        self._without_port.discard(key)
        if instance is None or instance.service != self.service:
            return None
        if self.revision and self.revision not in instance.revisions:
            return None
        made = endpoint(instance, self.port, self.revision)
        if made is None:
            self._without_port.add(key)
        return made

    def _place(self, key: Key, after: Endpoint | None) -> None:
        self.generation += 1
        self._endpoints = None
        if after is None:
            del self._by_key[key]
            del self._order[bisect_left(self._order, key)]
            return
        if key not in self._by_key:
            insort(self._order, key)
        self._by_key[key] = after


def difference(service: str, before: Mapping[Key, Endpoint], after: tuple[Endpoint, ...]) -> EndpointChanges:
    """The single step from one list to another, whatever happened in between."""
    now = {e.key: e for e in after}
    return EndpointChanges(
        service,
        tuple(e for e in after if e.key not in before),
        tuple(e for key, e in before.items() if key not in now),
        tuple((before[key], e) for key, e in now.items() if key in before and before[key] != e),
    )


Callback = Callable[[EndpointChanges], Awaitable[None] | None]

MOST_PENDING = 1000
_log = logging.getLogger(__name__)


class Subscription:
    """Calls a function with each step. A function that is slower than the changes gets them collapsed into one step.

    The first call has all existing endpoints as added, so that no change is missed between listing and subscribing.
    """

    def __init__(self, listing: EndpointList, callback: Callback) -> None:
        self._listing, self._callback = listing, callback
        self._pending: deque[EndpointChanges] = deque()
        self._overrun = self._ended = False
        self._shown: dict[Key, Endpoint] = {}
        self._wake = asyncio.Event()
        if listing.endpoints:
            self.put_changes(difference(listing.service, {}, listing.endpoints))
        self._task = asyncio.create_task(self._run(), name=f"tell changes of {listing.service}")

    def put_changes(self, changes: EndpointChanges) -> None:
        """Queue one more step."""
        if len(self._pending) >= MOST_PENDING:
            self._overrun = True
            self._pending.clear()
        if not self._overrun:
            self._pending.append(changes)
        self._wake.set()

    def end(self) -> None:
        """Make no more calls; a running call is cancelled, unless it is the one that called `end`."""
        self._ended = True
        if self._task is not asyncio.current_task():
            self._task.cancel()

    async def close(self) -> None:
        """End, and return when the last call has ended."""
        self.end()
        if self._task is not asyncio.current_task():
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while not self._ended:
            changes = self._next()
            if changes is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            self._follow(changes)
            await self._call(changes)

    def _next(self) -> EndpointChanges | None:
        if self._overrun:
            self._overrun = False
            return replace(difference(self._listing.service, self._shown, self._listing.endpoints), collapsed=True)
        return self._pending.popleft() if self._pending else None

    def _follow(self, changes: EndpointChanges) -> None:
        for removed in changes.removed:
            del self._shown[removed.key]
        self._shown.update((e.key, e) for e in changes.added)
        self._shown.update((after.key, after) for _, after in changes.changed)

    async def _call(self, changes: EndpointChanges) -> None:
        try:
            outcome = self._callback(changes)
            if inspect.isawaitable(outcome):
                await outcome
        except Exception:
            # One caller's mistake must not cost the others their addresses.
            _log.exception("a callback for changes of %s failed; it is called again for the next", changes.service)
