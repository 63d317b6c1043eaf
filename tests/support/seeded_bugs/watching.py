"""Bugs in watches: lost, doubled and split events, wrong beginnings, wrong tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pytest

from hq.memory import fanout
from hq.memory.fanout import Fanout
from hq.memory.history import History, VersionEvents, WatchedEvent
from hq.memory.query import Query
from hq.memory.watcher import Delivery, Watcher
from hq.registry.watch_messages import EVENTS, SYNCED, WatchMessage
from hq.registry.watches import Watches
from tests.support.seeded_bugs import scenes
from tests.support.seeded_bugs.bug import bug

Patch = pytest.MonkeyPatch


@bug("Every fifth step is not handed out to watchers.", "COMPLETE", scenes.calm)
def fifth_step_dropped(patch: Patch) -> None:
    publish, number = Fanout.publish, count(1)

    def lossy(self: Fanout, step: VersionEvents) -> None:
        if next(number) % 5:
            publish(self, step)

    patch.setattr(Fanout, "publish", lossy)


@bug("An event is delivered twice.", "UNIQUE", scenes.calm)
def event_doubled(patch: Patch) -> None:
    push = Watcher.push

    def twice(self: Watcher, delivery: Delivery) -> None:
        push(self, delivery)
        push(self, delivery)

    patch.setattr(Watcher, "push", twice)


@bug("Two steps are delivered in the wrong order.", "ORDERED", scenes.calm)
def steps_swapped(patch: Patch) -> None:
    publish = Fanout.publish
    waiting: dict[Fanout, VersionEvents] = {}

    def newest_first(self: Fanout, step: VersionEvents) -> None:
        older = waiting.pop(self, None)
        if older is None:
            waiting[self] = step
        else:
            publish(self, step)
            publish(self, older)

    patch.setattr(Fanout, "publish", newest_first)


@bug("The events of one version come one by one, each with a token.", "WHOLE", scenes.calm)
def version_split(patch: Patch) -> None:
    def messages(self: Watches, query: Query, deliveries: Sequence[Delivery]) -> list[WatchMessage]:
        return [
            WatchMessage(EVENTS, self._source_at(delivery.version), [event], self._token(query, delivery.version))
            for delivery in deliveries
            for event in delivery.events
        ]

    patch.setattr(Watches, "_messages", messages)


@bug("SYNCED comes before the snapshot.", "EXPLICIT", scenes.calm)
def synced_too_early(patch: Patch) -> None:
    snapshot = Watches._snapshot

    def hasty(self: Watches, query: Query, watcher: Watcher) -> Iterator[WatchMessage | None]:
        messages = list(snapshot(self, query, watcher))
        yield from sorted(messages, key=lambda message: message is None or message.kind != SYNCED)

    patch.setattr(Watches, "_snapshot", hasty)


@bug("A watch that is resumed begins one step too late.", "COMPLETE", scenes.calm)
def resumed_too_late(patch: Patch) -> None:
    since = History.since

    def later(self: History, version: int, size_bytes: int) -> list[VersionEvents] | None:
        steps = since(self, version, size_bytes)
        return steps[1:] if steps else steps

    patch.setattr(History, "since", later)


@bug("A watch that is resumed begins with a snapshot.", "RESUMABLE", scenes.calm)
def resumed_with_a_snapshot(patch: Patch) -> None:
    unbroken = Watches._unbroken
    patch.setattr(Watches, "_unbroken", lambda self, query, _, *rest: unbroken(self, query, None, *rest))


@bug("A watcher is not told that an instance no longer passes its filter.", "COMPLETE", scenes.calm)
def left_is_not_said(patch: Patch) -> None:
    def encode(query: Query, event: WatchedEvent) -> bytes:
        if event.after is not None:
            return event.put if query.matches(event.after) else b""
        return event.encoded_removal() if event.before is not None and query.matches(event.before) else b""

    patch.setattr(fanout, "encode", encode)


@bug("A bookmark's token is one version ahead of what was told.", "COMPLETE", scenes.calm)
def bookmark_ahead(patch: Patch) -> None:
    bookmark = Watches._bookmark

    def ahead(self: Watches, query: Query) -> WatchMessage:
        told = bookmark(self, query)
        version = self._fanout.version + 1
        return told._replace(token=self._token(query, version), source=told.source._replace(version=version))

    patch.setattr(Watches, "_bookmark", ahead)


@bug("After a restore of the store watches go on as if nothing had happened.", "EXPLICIT", scenes.restored)
def watches_survive_a_restore(patch: Patch) -> None:
    patch.setattr(Fanout, "lose_all", lambda self, reason: None)
