"""Who watches what: each step of the cache's history is handed to the watchers that it concerns.

A change costs the watchers that it concerns: it is matched once per distinct filter that names its instance, node,
service or one of its revisions, and encoded once, however many watch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from hq.memory.history import VersionEvents, WatchedEvent
from hq.memory.query import Query
from hq.memory.record import Traits
from hq.memory.watcher import Backlog, Delivery, Watcher

_SHARE = 16  # one watcher may leave unread a sixteenth of what all together may
_RELIEVED = 0.75  # cut off watchers until this share is left: finding who is behind means looking at all of them


class _FilterWatchers:
    """All watchers of one filter."""

    __slots__ = ("query", "watchers")

    def __init__(self, query: Query) -> None:
        self.query = query
        self.watchers: set[Watcher] = set()


class Fanout:
    """Hands each step to the watchers that it concerns.

    Attributes:
        version: everything up to here has been handed out.
        changed: version of the newest change of any instance, or the version at which this replica began.
        reach: how many watchers got the newest step that any watcher got.
        generation: changes when everything handed out before is void.
        resyncs: how often a watch was told that continuity is lost; for metrics.
        backlog: what was handed out and not read yet.
        closing: set when watches are to end.
    """

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes`: what all watchers together may leave unread."""
        self._max_bytes = max_bytes
        self._feeds: dict[str, _FilterWatchers] = {}
        # A feed is in one index, under each word that its filter names there.
        self._standing: tuple[dict[str, set[_FilterWatchers]], ...] = tuple({} for _ in _NAMED)
        self._general: set[_FilterWatchers] = set()  # feeds whose filters name none of `_NAMED` get everything
        self._snapshots: dict[Watcher, int] = {}  # being sent, with the version they began at; oldest first
        self._count = 0
        self.version = self.changed = 0
        self.reach = 0
        self.generation = 0
        self.resyncs = 0
        self.backlog = Backlog()
        self.closing = asyncio.Event()

    def __len__(self) -> int:
        return self._count

    def subscribe(self, query: Query, snapshot: Iterator[list[bytes]] | None = None) -> Watcher:
        """A watcher that gets everything after `version` as it stands now. `snapshot`: what to send first."""
        feed = self._feeds.get(query.digest)
        if feed is None:
            feed = self._feeds[query.digest] = _FilterWatchers(query)
            self._place(feed)
        watcher = Watcher(self.backlog, self._max_bytes // _SHARE, snapshot or iter(()))
        watcher.is_resumed = snapshot is None
        feed.watchers.add(watcher)
        self._count += 1
        if snapshot is not None:
            self._snapshots[watcher] = self.version
        return watcher

    def on_snapshot_sent(self, watcher: Watcher) -> None:
        """Note that a watcher's snapshot is sent."""
        self._snapshots.pop(watcher, None)

    def unsubscribe(self, query: Query, watcher: Watcher) -> None:
        watcher.drop()
        self.on_snapshot_sent(watcher)
        feed = self._feeds[query.digest]
        feed.watchers.remove(watcher)
        self._count -= 1
        if not feed.watchers:
            del self._feeds[query.digest]
            self._displace(feed)

    def publish(self, step: VersionEvents) -> None:
        """Hand out the events of one version."""
        due = self._due(step) if self._feeds else {}
        for feed, events in due.items():
            delivery = Delivery(step.version, events, step.collapsed)
            for watcher in feed.watchers:
                watcher.push(delivery)
        if due:
            self.reach = sum(len(feed.watchers) for feed in due)
        self.version = self.changed = step.version
        if self.backlog.size_bytes > self._max_bytes:
            self._relieve()

    def forget(self, version: int) -> None:
        """Break watches whose snapshot is older than this version: it would keep alive memory that nothing bounds."""
        while self._snapshots:
            watcher, since = next(iter(self._snapshots.items()))
            if since >= version:
                return
            del self._snapshots[watcher]
            watcher.lose("this watch's snapshot is older than the history in memory")

    def lose_all(self, reason: str) -> None:
        """Break every watch: the store has a new history."""
        self.generation += 1
        self._snapshots.clear()
        for watcher in self._watchers():
            watcher.lose(reason)

    def lose_resumed(self, reason: str) -> None:
        """Break the watches that went on from a token: what they had before came from another replica."""
        for watcher in self._watchers():
            if watcher.is_resumed:
                watcher.lose(reason)

    def close(self) -> None:
        """The replica shuts down: let every stream end with a bookmark."""
        self.closing.set()
        for watcher in self._watchers():
            watcher.wake()

    def _relieve(self) -> None:
        """All watchers together hold too much: cut off those that hold the most, not counting the newest step."""
        behind = [watcher for watcher in self._watchers() if watcher.is_behind(self.version)]
        for watcher in sorted(behind, key=lambda one: one.unread_bytes, reverse=True):
            watcher.lose(f"all watches together are behind by more than {self._max_bytes} bytes, this one the furthest")
            if self.backlog.size_bytes <= _RELIEVED * self._max_bytes:
                return

    def _watchers(self) -> Iterator[Watcher]:
        for feed in self._feeds.values():
            yield from feed.watchers

    def _place(self, feed: _FilterWatchers) -> None:
        for feeds, name in zip(self._standing, _NAMED, strict=True):
            if words := getattr(feed.query, name):
                for word in words:
                    feeds.setdefault(word, set()).add(feed)
                return
        self._general.add(feed)

    def _displace(self, feed: _FilterWatchers) -> None:
        for feeds, name in zip(self._standing, _NAMED, strict=True):
            if words := getattr(feed.query, name):
                for word in words:
                    feeds[word].remove(feed)
                    if not feeds[word]:
                        del feeds[word]
                return
        self._general.remove(feed)

    def _due(self, step: VersionEvents) -> dict[_FilterWatchers, list[bytes]]:
        """Which feeds get the step, and which encoded events."""
        due: dict[_FilterWatchers, list[bytes]] = {}
        for event in step.events:
            for feed in self._matching_feeds(event):
                encoded = encode(feed.query, event)
                if encoded:
                    due.setdefault(feed, []).append(encoded)
        return due

    def _matching_feeds(self, event: WatchedEvent) -> Iterable[_FilterWatchers]:
        """The feeds whose filter may match the instance as it was, or as it is."""
        found = self._general.copy()
        by_id, by_node, by_service, by_revision = self._standing
        states: set[Traits | None] = {event.before, event.after}
        for traits in states:
            if traits is not None:
                found.update(by_id.get(traits.id, ()), by_node.get(traits.node, ()), by_service.get(traits.service, ()))
                for revision in traits.revisions:
                    found.update(by_revision.get(revision, ()))
        return found


# Attributes of Query that a filter may name: its feed is in the index of the first that it does name.
_NAMED = ("ids", "nodes", "services", "revisions")


def encode(query: Query, event: WatchedEvent) -> bytes:
    """The event as a watcher with this filter sees it; empty: such a watcher does not see it."""
    if event.after is not None and query.matches(event.after):
        return event.put
    if event.before is not None and query.matches(event.before):
        return event.encoded_removal()
    return b""


def deliveries(query: Query, steps: Iterable[VersionEvents]) -> list[Delivery]:
    """Return the deliveries that a watcher with this filter would have got."""
    found, ids = [], query.ids
    for step in steps:
        events = []
        for event in step.events:
            # A cheap check first: when a replica goes away, thousands of watches of single instances come back at once.
            if ids and event.id not in ids:
                continue
            if encoded := encode(query, event):
                events.append(encoded)
        if events:
            found.append(Delivery(step.version, events, step.collapsed))
    return found
