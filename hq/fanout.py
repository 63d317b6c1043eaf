"""Watchers, their buffers, and the cut that keeps a slow one from costing anything but itself.

A change is matched once per distinct filter and encoded once, however many watch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hq.history import Step, WatchedEvent
from hq.query import Query


class Delivery(NamedTuple):
    """The encoded events of one version, for one filter; shared by all its watchers."""

    version: int
    events: list[bytes]
    size_bytes: int
    collapsed: bool


class Watcher:
    """What one stream has still to send.

    Attributes:
        lost: why continuity is lost; empty: it is not. A lost watcher holds and gets nothing.
    """

    __slots__ = ("_max_bytes", "_pending", "_pending_bytes", "_woken", "lost")

    def __init__(self, max_bytes: int) -> None:
        self.lost = ""
        self._pending: deque[Delivery] = deque()
        self._pending_bytes = 0
        self._max_bytes = max_bytes
        self._woken = asyncio.Event()

    def push(self, delivery: Delivery) -> None:
        """Queue events, or give up on this watcher if it has too much to read already."""
        if self.lost:
            return
        self._pending_bytes += delivery.size_bytes
        if self._pending_bytes > self._max_bytes:
            self.lose(f"this reader fell behind by more than {self._max_bytes} bytes")
            return
        self._pending.append(delivery)
        self._woken.set()

    def lose(self, reason: str) -> None:
        """Continuity is broken: drop what is queued and say so to the reader."""
        self.lost = reason
        self._pending.clear()
        self._pending_bytes = 0
        self._woken.set()

    def wake(self) -> None:
        """Let the reader look around, e.g. because the replica shuts down."""
        self._woken.set()

    async def wait(self, timeout_s: float) -> None:
        """Return when there is something to send, or when the time is over."""
        if not self._pending and not self.lost:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._woken.wait()
            except TimeoutError:
                pass
        self._woken.clear()

    def take(self) -> list[Delivery]:
        """All that is queued, oldest first."""
        taken = list(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        return taken


class _Feed:
    """All watchers of one filter."""

    __slots__ = ("query", "watchers")

    def __init__(self, query: Query) -> None:
        self.query = query
        self.watchers: set[Watcher] = set()


class Fanout:
    """Hands each step to whom it concerns.

    Attributes:
        version: everything up to here was handed out.
        resyncs: how many watchers lost continuity; for metrics.
    """

    def __init__(self, buffer_bytes: int) -> None:
        self._buffer_bytes = buffer_bytes
        self._feeds: dict[str, _Feed] = {}
        # Feeds that name services hear of those only; all others hear of everything.
        self._by_service: dict[str, set[_Feed]] = {}
        self._general: set[_Feed] = set()
        self.version = 0
        self.resyncs = 0
        self.closing = False

    def __len__(self) -> int:
        return sum(len(feed.watchers) for feed in self._feeds.values())

    def subscribe(self, query: Query) -> Watcher:
        """A watcher that gets everything after `version` as it stands now."""
        feed = self._feeds.get(query.digest)
        if feed is None:
            feed = self._feeds[query.digest] = _Feed(query)
            for bucket in self._places(feed):
                bucket.add(feed)
        watcher = Watcher(self._buffer_bytes)
        feed.watchers.add(watcher)
        return watcher

    def unsubscribe(self, query: Query, watcher: Watcher) -> None:
        feed = self._feeds[query.digest]
        feed.watchers.discard(watcher)
        self.resyncs += bool(watcher.lost)
        if not feed.watchers:
            del self._feeds[query.digest]
            for bucket in self._places(feed):
                bucket.discard(feed)
            for service in feed.query.services:
                if not self._by_service[service]:
                    del self._by_service[service]

    def publish(self, step: Step) -> None:
        """Hand out the events of one version."""
        deliveries: dict[_Feed, list[bytes]] = {}
        if self._feeds:
            for event in step.events:
                for feed in self._concerned(event):
                    encoded = encode(feed.query, event)
                    if encoded:
                        deliveries.setdefault(feed, []).append(encoded)
        for feed, events in deliveries.items():
            delivery = Delivery(step.version, events, sum(map(len, events)), step.collapsed)
            for watcher in feed.watchers:
                watcher.push(delivery)
        self.version = step.version

    def lose_all(self, reason: str) -> None:
        """Nobody's continuity holds: the store's history is another one."""
        for watcher in self._watchers():
            watcher.lose(reason)

    def close(self) -> None:
        """The replica shuts down: let every stream end with a bookmark."""
        self.closing = True
        for watcher in self._watchers():
            watcher.wake()

    def _watchers(self) -> Iterator[Watcher]:
        for feed in self._feeds.values():
            yield from feed.watchers

    def _places(self, feed: _Feed) -> list[set[_Feed]]:
        services = feed.query.services
        return [self._by_service.setdefault(s, set()) for s in services] if services else [self._general]

    def _concerned(self, event: WatchedEvent) -> Iterable[_Feed]:
        if not self._by_service:
            return self._general
        services = {traits.service for traits in (event.before, event.after) if traits is not None}
        return self._general.union(*(self._by_service.get(service, ()) for service in services))


def encode(query: Query, event: WatchedEvent) -> bytes:
    """The event as a watcher with this filter sees it; empty: it does not."""
    if event.after is not None and query.matches(event.after):
        return event.put()
    if event.before is not None and query.matches(event.before):
        return event.delete() if event.after is None else event.left()
    return b""
