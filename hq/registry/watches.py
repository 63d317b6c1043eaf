"""Watches: a snapshot, then everything that changes, resumable at any replica; a break is always announced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TypeVar
from zlib import crc32

from hq.loading import Loading
from hq.memory.cache import Cache
from hq.memory.fanout import Fanout, deliveries
from hq.memory.history import History
from hq.memory.query import Query
from hq.memory.watcher import Alarm, Delivery, Watcher
from hq.registry import continuation, watch_messages
from hq.registry.source import Freshness, Source
from hq.registry.watch_messages import (
    BOOKMARK,
    EVENTS,
    RESYNC,
    SNAPSHOT,
    SYNCED,
    WatchMessage,
    bookmarks,
    in_messages,
    in_portions,
)
from serving.calls.methods import Push, never_pushed
from serving.errors import ShuttingDown, invalid
from serving.limiting.turns import Turns
from store.fence import Fence

T = TypeVar("T")

_BOOKMARK_S = 5.0
_OF_FEW, _OF_MANY = 4, 16  # how many requests the start of a watch counts as: of a few instances, of any number
_PHASES = 500  # staggers the bookmarks of different connections: 50,000 at once would block the loop for half a second
# A message to one reader costs some 40 µs. Where a change goes to many, each of them waits a little after a message, so
# that changes come in batches: at most a third of the time goes into messages, however many watch and change.
_FEW, _PAUSE_S, _LONGEST_PAUSE_S = 10, 0.00012, 1.0


class _Lost(Exception):
    """Continuity is broken; str() says why."""


class Watches:
    """The watching call. `bookmark_s`: how often an idle watch hears that it missed nothing; it may ask for less."""

    def __init__(
        self,
        cache: Cache,
        history: History,
        fanout: Fanout,
        fence: Fence,
        loading: Loading,
        freshness: Freshness,
        bookmark_s: float = _BOOKMARK_S,
    ) -> None:
        self._cache, self._history, self._fanout, self._fence = cache, history, fanout, fence
        self._loading, self._freshness, self._bookmark_s = loading, freshness, bookmark_s
        self._turns = Turns()
        self._alarms: dict[tuple[float, int], Alarm] = {}  # by the time between two bookmarks, and the phase

    def watch(self, query: Query, token: str, push: Push = never_pushed) -> AsyncGenerator[WatchMessage, None]:
        """`rendered_messages` without rendering."""
        return self.rendered_messages(query, token, lambda message: message, push=push)

    async def rendered_messages(
        self,
        query: Query,
        token: str,
        show: Callable[[WatchMessage], T],
        bookmark_s: int = 0,
        peer: str = "",
        push: Push = never_pushed,
    ) -> AsyncGenerator[T, None]:
        """Messages without end, as `show` makes them.

        ShuttingDown ends them after a last bookmark, or while this replica loads again.

        `bookmark_s`: at least this many seconds between two bookmarks; all watches of one `peer` get theirs together.
        `push` may send an encoded bookmark while the reader of this generator waits for its next message, at a
        fraction of the cost of resuming the generator. It returns False if it cannot now.

        Raises:
            InvalidRequest: it is not a token, or one of another filter.
            NotLoaded: this replica has not read the store yet.
            StoreUnavailable: the token is ahead of this replica, and the store cannot be asked.
        """
        # Starting takes several times as long as a lookup, and after a restart thousands start.
        weight = _OF_FEW if 0 < len(query.ids) <= _FEW else _OF_MANY
        if not self._turns.enter(weight):
            await self._turns.next(weight)
        self._loading.check()
        if self._fanout.closing.is_set():
            raise _shutting_down()
        held = continuation.resume_token(token) if token else None
        if held and held.filter_digest != query.digest:
            raise invalid("resume_token", "belongs to another filter: watch with the filter it came from")
        pace_s = max(self._bookmark_s, bookmark_s)
        phase = crc32(peer.encode()) % _PHASES
        alarm = self._alarms.get((pace_s, phase))
        if alarm is None:
            alarm = self._alarms[pace_s, phase] = Alarm(pace_s, phase / _PHASES, self._push_bookmarks)
        while True:
            try:
                async with aclosing(self._unbroken(query, held, alarm, push)) as messages:
                    async for message in messages:
                        yield show(message)
            except _Lost as lost:
                self._fanout.resyncs += 1
                yield show(WatchMessage(RESYNC, self._freshness.source(), [], reason=str(lost)))
            held = None
            await self._loaded_again()

    async def _loaded_again(self) -> None:
        """Return when this replica has read everything. Raises ShuttingDown: it shuts down first."""
        closing = self._fanout.closing
        waits = [asyncio.ensure_future(event.wait()) for event in (self._loading.loaded, closing)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if closing.is_set():
            raise _shutting_down()

    async def _unbroken(
        self, query: Query, held: continuation.ResumeToken | None, alarm: Alarm, push: Push
    ) -> AsyncGenerator[WatchMessage, None]:
        """One unbroken run: from a token or a snapshot, until it breaks."""
        if held:
            async with aclosing(self._replay_messages(query, held)) as messages:
                async for message in messages:
                    yield message
        # Nothing is awaited between the end of the replay, or the start of a snapshot, and this subscription.
        # Only the watcher holds the snapshot, so that both are freed together, however long the reader stalls.
        watcher = self._fanout.subscribe(query, None if held else in_messages(self._cache.matching(query)))
        watcher.reader = query.digest, push
        try:
            if held:
                yield self._bookmark(query)
            else:
                for part in self._snapshot(query, watcher):
                    if part is not None:
                        yield part
                    else:
                        await asyncio.sleep(0)
                    self._check(watcher)
            # Not one more nested generator: it would cost every watch memory, and every message a step.
            while True:
                for message in await self._news(query, watcher, alarm):
                    yield message
                    self._check(watcher)
                await self._pace_delivery(message)
        finally:
            self._fanout.unsubscribe(query, watcher)

    async def _replay_messages(
        self, query: Query, held: continuation.ResumeToken
    ) -> AsyncGenerator[WatchMessage, None]:
        """Yield the changes after the token, up to this replica's version at the end of the replay.

        Read from the history piece by piece: a reader slower than the changes eventually finds its next piece gone.
        """
        generation = self._fanout.generation
        await self._wait_for_token(held)
        yield WatchMessage(SYNCED, self._source_at(held.version), [], continuation.resumption(*held))
        at = held.version
        while True:
            self._check_generation(generation)
            reached, messages = self._past(query, at)
            if reached == at:
                return
            at = reached
            for message in messages:
                yield message
                self._check_generation(generation)
            if not messages:
                await asyncio.sleep(0)

    def _past(self, query: Query, at: int) -> tuple[int, list[WatchMessage]]:
        """Some changes after a version, and the version they lead to. No reader keeps the steps themselves alive."""
        steps = self._history.since(at, watch_messages.MESSAGE_BYTES)
        if steps is None:
            raise _Lost("the token, or this watch, is older than the history in memory")
        return (steps[-1].version, self._messages(query, deliveries(query, steps))) if steps else (at, [])

    def _snapshot(self, query: Query, watcher: Watcher) -> Iterator[WatchMessage | None]:
        """The current instances, while the watcher collects changes. None: the caller lets the event loop run."""
        source, token = self._freshness.source(), self._token(query, self._fanout.version)
        while (events := next(watcher.snapshot, None)) is not None:
            yield WatchMessage(SNAPSHOT, source, events) if events else None
        self._fanout.on_snapshot_sent(watcher)
        yield WatchMessage(SYNCED, source, [], token)

    async def _news(self, query: Query, watcher: Watcher, alarm: Alarm) -> list[WatchMessage]:
        """Wait for changes, or for the time of a bookmark. Returns what to send."""
        if not self._fanout.closing.is_set():
            await watcher.wait(alarm)
        self._check(watcher)
        return self._messages(query, watcher.take(watch_messages.MESSAGE_BYTES)) or [self._bookmark(query)]

    async def _pace_delivery(self, sent: WatchMessage) -> None:
        """After changes that many watch, wait a little, so that the next ones come as a batch. Raises ShuttingDown."""
        fanout = self._fanout
        if fanout.closing.is_set():
            raise _shutting_down()
        if sent.kind == EVENTS and fanout.reach > _FEW:
            await asyncio.sleep(min(fanout.reach * _PAUSE_S, _LONGEST_PAUSE_S))

    def _messages(self, query: Query, deliveries: Sequence[Delivery]) -> list[WatchMessage]:
        """Whole versions in one message, unless the last of them alone is too large."""
        if not deliveries:
            return []
        *whole, last = deliveries
        if last.size_bytes <= watch_messages.MESSAGE_BYTES:
            return [self._events(query, deliveries)]
        messages = [self._events(query, whole)] if whole else []
        *parts, rest = in_portions(last.events)
        source = self._source_at(last.version)
        messages += [WatchMessage(EVENTS, source, part, collapsed=last.collapsed) for part in parts]
        return [*messages, self._events(query, [Delivery(last.version, rest, last.collapsed)])]

    def _events(self, query: Query, deliveries: Sequence[Delivery]) -> WatchMessage:
        last = deliveries[-1]
        events = [event for delivery in deliveries for event in delivery.events]
        token = self._token(query, last.version)
        return WatchMessage(EVENTS, self._source_at(last.version), events, token, collapsed=last.collapsed)

    async def _wait_for_token(self, held: continuation.ResumeToken) -> None:
        """Return when this replica has reached the token. A token that stays ahead is from a history that is gone."""
        if held.epoch != self._cache.epoch:
            raise _Lost(f"the token is of epoch {held.epoch}, the current one is {self._cache.epoch}")
        if held.version > self._fanout.version:
            await self._fence.wait_for_fence()
            if held.version > self._fanout.version:
                raise _Lost("the token is newer than the store")

    def _push_bookmarks(self, asleep: list[Watcher]) -> list[Watcher]:
        """Push a bookmark to each; return those that cannot take one now."""
        digests = [watcher.reader[0] for watcher in asleep]
        tokens = continuation.resumptions(self._cache.epoch, digests, self._fanout.version)
        made = bookmarks(self._freshness.source(), tokens)
        return [watcher for watcher, bookmark in zip(asleep, made, strict=True) if not watcher.reader[1](bookmark)]

    def _bookmark(self, query: Query) -> WatchMessage:
        return WatchMessage(BOOKMARK, self._freshness.source(), [], self._token(query, self._fanout.version))

    def _check_generation(self, generation: int) -> None:
        """Call after every wait: what was read before must not be sent with a current token."""
        if self._fanout.generation != generation:
            raise _Lost("the store has a new history")

    def _check(self, watcher: Watcher) -> None:
        if watcher.lost:
            raise _Lost(watcher.lost)

    def _source_at(self, version: int) -> Source:
        source = self._freshness.source()
        return source if source.version == version else source._replace(version=version)

    def _token(self, query: Query, version: int) -> str:
        return continuation.resumption(self._cache.epoch, query.digest, version)


def _shutting_down() -> ShuttingDown:
    return ShuttingDown("this replica is shutting down: resume at another one", 0.1)
