"""One subscriber to the changes of a listing: called in order, never twice for one step, never from two places."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace

from hqclient.discovery.changes import EndpointChanges
from hqclient.discovery.endpoint import Endpoint, Key
from hqclient.discovery.listing import Listing, difference

Callback = Callable[[EndpointChanges], Awaitable[None] | None]

MOST_PENDING = 1000
_log = logging.getLogger(__name__)


class Subscription:
    """Calls a function with each step. One that is slower than the changes gets them collapsed into one.

    The first call has everything that is there as added, so that nothing lies between looking and subscribing.
    """

    def __init__(self, listing: Listing, callback: Callback) -> None:
        self._listing, self._callback = listing, callback
        self._pending: deque[EndpointChanges] = deque()
        self._overrun = self._ended = False
        self._shown: dict[Key, Endpoint] = {}
        self._wake = asyncio.Event()
        if listing.endpoints:
            self.put(difference(listing.service, {}, listing.endpoints))
        self._task = asyncio.create_task(self._run(), name=f"tell changes of {listing.service}")

    def put(self, changes: EndpointChanges) -> None:
        """One more step."""
        if len(self._pending) >= MOST_PENDING:
            self._overrun = True
            self._pending.clear()
        if not self._overrun:
            self._pending.append(changes)
        self._wake.set()

    def end(self) -> None:
        """Call no more; a call under way is cancelled, unless it is the one that asks."""
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
        for endpoint in changes.removed:
            del self._shown[endpoint.key]
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
