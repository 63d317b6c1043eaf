"""Who watches what: each step of the cache's history is handed to the watchers that it concerns.

A change is matched once per distinct filter and encoded once, however many watch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from hq.history import Step, WatchedEvent
from hq.query import Query
from hq.watcher import Delivery, Watcher


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
        reach: how many watchers the newest step went to that went to any.
        life: changes when nothing that was handed out before holds any more.
        resyncs: how often a watch was told that continuity is lost; for metrics.
        closing: set when watches are to end.
    """

    def __init__(self, buffer_bytes: int) -> None:
        self._buffer_bytes = buffer_bytes
        self._feeds: dict[str, _Feed] = {}
        # Feeds that name services hear of those only; all others hear of everything.
        self._by_service: dict[str, set[_Feed]] = {}
        self._general: set[_Feed] = set()
        self.version = 0
        self.reach = 0
        self.life = 0
        self.resyncs = 0
        self.closing = asyncio.Event()

    def __len__(self) -> int:
        return sum(len(feed.watchers) for feed in self._feeds.values())

    def subscribe(self, query: Query) -> Watcher:
        """A watcher that gets everything after `version` as it stands now."""
        feed = self._feeds.get(query.digest)
        if feed is None:
            feed = self._feeds[query.digest] = _Feed(query)
            for place in self._places(feed):
                place.add(feed)
        watcher = Watcher(self._buffer_bytes)
        feed.watchers.add(watcher)
        return watcher

    def unsubscribe(self, query: Query, watcher: Watcher) -> None:
        feed = self._feeds[query.digest]
        feed.watchers.discard(watcher)
        if feed.watchers:
            return
        del self._feeds[query.digest]
        for place in self._places(feed):
            place.discard(feed)
        for service in feed.query.services:
            if not self._by_service[service]:
                del self._by_service[service]

    def publish(self, step: Step) -> None:
        """Hand out the events of one version."""
        due: dict[_Feed, list[bytes]] = {}
        if self._feeds:
            for event in step.events:
                for feed in self._concerned(event):
                    encoded = encode(feed.query, event)
                    if encoded:
                        due.setdefault(feed, []).append(encoded)
        for feed, events in due.items():
            delivery = Delivery(step.version, events, sum(map(len, events)), step.collapsed)
            for watcher in feed.watchers:
                watcher.push(delivery)
        if due:
            self.reach = sum(len(feed.watchers) for feed in due)
        self.version = step.version

    def lose_all(self, reason: str) -> None:
        """Nobody's continuity holds: the store's history is another one."""
        self.life += 1
        for watcher in self._watchers():
            watcher.lose(reason)

    def close(self) -> None:
        """The replica shuts down: let every stream end with a bookmark."""
        self.closing.set()
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
        return event.put
    if event.before is not None and query.matches(event.before):
        return event.gone()
    return b""


def deliveries(query: Query, steps: Iterable[Step]) -> list[Delivery]:
    """What a watcher with this filter would have got."""
    found = []
    for step in steps:
        events = [encoded for event in step.events if (encoded := encode(query, event))]
        if events:
            found.append(Delivery(step.version, events, sum(map(len, events)), step.collapsed))
    return found
