"""Watches: a snapshot, then everything that changes, resumable at any replica; a break is always said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import NamedTuple

from hq import frames
from hq.entry import Entry
from hq.errors import ShuttingDown, invalid
from hq.fanout import Delivery, Watcher, encode
from hq.history import Step, put_event
from hq.query import Query
from hq.registry import tokens
from hq.registry.source import Freshness, Source
from hq.replica import Replica
from hqpb.v1 import service_pb2

SNAPSHOT, SYNCED, EVENTS, BOOKMARK, RESYNC = (
    service_pb2.WATCH_KIND_SNAPSHOT,
    service_pb2.WATCH_KIND_SYNCED,
    service_pb2.WATCH_KIND_EVENTS,
    service_pb2.WATCH_KIND_BOOKMARK,
    service_pb2.WATCH_KIND_RESYNC,
)
_MESSAGE_BYTES = 1 << 20
_BOOKMARK_S = 5.0


class Message(NamedTuple):
    """One message of a watch; `events` are encoded fields `events = 2`. `token` is empty inside a version."""

    kind: service_pb2.WatchKind
    source: Source
    events: list[bytes] = []  # noqa: RUF012  # never changed
    token: str = ""
    reason: str = ""
    collapsed: bool = False


class _Lost(Exception):
    """Continuity is broken; str() says why."""


class Watches:
    """The watching call. `bookmark_s`: so often an idle watch is told that nothing was missed."""

    def __init__(self, replica: Replica, freshness: Freshness, bookmark_s: float = _BOOKMARK_S) -> None:
        self._replica, self._freshness, self._bookmark_s = replica, freshness, bookmark_s

    async def watch(self, query: Query, token: str) -> AsyncIterator[Message]:
        """Messages without an end; ShuttingDown ends it after a last bookmark.

        Raises:
            InvalidRequest: the token is none, or belongs to another filter.
            NotLoaded: this replica has not read the store yet.
            StoreUnavailable: the token is ahead of this replica, and the store cannot be asked.
        """
        self._replica.check_loaded()
        held = tokens.resume_token(token) if token else None
        if held and held.filter_digest != query.digest:
            raise invalid("resume_token", "it belongs to another filter: watch with the filter that it came from")
        while True:
            try:
                async for message in self._unbroken(query, held):
                    yield message
            except _Lost as lost:
                yield Message(RESYNC, self._freshness.source(), reason=str(lost))
            held = None
            await self._replica.loaded.wait()

    async def _unbroken(self, query: Query, held: tokens.ResumeToken | None) -> AsyncIterator[Message]:
        """One life of continuity: from a token or a snapshot, until it breaks."""
        if held:
            await self._reached(held)
        # From here to the first await nothing can come in between: backlog and subscription fit together.
        fanout = self._replica.fanout
        missed = self._missed(held) if held else None
        entries = None if held else self._snapshot(query)
        version, source = fanout.version, self._freshness.source()
        watcher = fanout.subscribe(query)
        try:
            if entries is not None:
                for events in _in_messages(put_event(e.changed_at(), frames.body(e.frame())) for e in entries):
                    self._check(watcher)
                    yield Message(SNAPSHOT, source, events)
            yield Message(SYNCED, source, token=self._token(query, held.version if held else version))
            for step in missed or ():
                events = [encoded for event in step.events if (encoded := encode(query, event))]
                if events:
                    delivery = Delivery(step.version, events, sum(map(len, events)), step.collapsed)
                    for message in self._messages(query, [delivery]):
                        yield message
            async for message in self._live(query, watcher):
                yield message
        finally:
            fanout.unsubscribe(query, watcher)

    async def _live(self, query: Query, watcher: Watcher) -> AsyncIterator[Message]:
        fanout = self._replica.fanout
        while True:
            await watcher.wait(self._bookmark_s)
            self._check(watcher)
            deliveries = watcher.take()
            for message in self._messages(query, deliveries):
                yield message
                self._check(watcher)
            if not deliveries and self._replica.loaded.is_set():
                yield Message(BOOKMARK, self._freshness.source(), token=self._token(query, fanout.version))
            if fanout.closing:
                raise ShuttingDown("this replica shuts down: resume at another one", 0.1)

    def _messages(self, query: Query, deliveries: list[Delivery]) -> Iterator[Message]:
        """Whole versions, many to a message, unless one of them alone is too large."""
        source = self._freshness.source()
        events: list[bytes] = []
        size = 0
        for i, delivery in enumerate(deliveries):
            last = i == len(deliveries) - 1
            if delivery.size_bytes > _MESSAGE_BYTES:
                *parts, rest = _in_messages(delivery.events)
                for part in parts:
                    yield Message(EVENTS, source, events + part, collapsed=delivery.collapsed)
                    events = []
                events = events + rest
                size = _MESSAGE_BYTES
            else:
                events = events + delivery.events
                size += delivery.size_bytes
            if last or size >= _MESSAGE_BYTES or delivery.collapsed or deliveries[i + 1].collapsed:
                token = self._token(query, delivery.version)
                yield Message(EVENTS, source, events, token, collapsed=delivery.collapsed)
                events, size = [], 0

    def _snapshot(self, query: Query) -> list[Entry]:
        return [entry for entry in self._replica.cache.candidates(query) if query.matches(entry.traits)]

    def _missed(self, held: tokens.ResumeToken) -> list[Step]:
        steps = self._replica.history.since(held.version)
        if steps is None:
            raise _Lost("the token is older than the history in memory")
        return steps

    async def _reached(self, held: tokens.ResumeToken) -> None:
        """Return when this replica is where the token is. A token that stays ahead belongs to a past that is gone."""
        r = self._replica
        if held.epoch != r.epoch.current:
            raise _Lost(f"the token is of epoch {held.epoch}, the current one is {r.epoch.current}")
        if held.version > r.fanout.version:
            await r.fence.passed()
        if held.version > r.fanout.version:
            raise _Lost("the token is ahead of the store")

    def _check(self, watcher: Watcher) -> None:
        if watcher.lost:
            raise _Lost(watcher.lost)

    def _token(self, query: Query, version: int) -> str:
        return tokens.encode(tokens.ResumeToken(self._replica.epoch.current, query.digest, version))


def _in_messages(events: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Events in portions of about a message's size; no portion is empty."""
    portion: list[bytes] = []
    size = 0
    for event in events:
        portion.append(event)
        size += len(event)
        if size >= _MESSAGE_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
