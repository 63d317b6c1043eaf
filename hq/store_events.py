"""Passes the events of the store's ordered stream to the parts that they concern. The sink of the follower.

For one batch, in this order: the committer (did it bring a write of unknown outcome?), the cache, liveness, history and
watches, then fences: whoever waits for a fence finds everything before it in place.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from itertools import groupby

from google.protobuf.message import DecodeError

from hq import keys as k
from hq.epoch_trust import EpochTrust
from hq.liveness.heartbeats import Heartbeats
from hq.liveness.orders import Orders
from hq.liveness.presence import Presence
from hq.liveness.refusals import PublishedRefusals
from hq.liveness.tracker import Tracker
from hq.loading import Loading
from hq.memory.cache import Cache
from hq.memory.decoder import Quarantined
from hq.memory.entry import Event
from hq.memory.fanout import Fanout
from hq.memory.history import History, VersionEvents, WatchedEvent
from serving.clock import Clock
from serving.process import long_lived
from store.commit import Committer
from store.compaction import Compactor
from store.epoch import Epoch
from store.fence import Fence
from store.keys import word_of
from store.port import Batch, KeyChange, Record

log = logging.getLogger(__name__)

_PEERS_KEPT = 1_000
_LIVE_S = 60.0  # a live replica is seen every few seconds
_MANY = 200  # records: a page of a large listing
_SUSPEND = "suspend/"


class StoreEvents:
    """Routes each event by the kind of its key.

    Attributes:
        peers: when each replica was last heard from, on the injected clock.
    """

    _epoch: Epoch
    _trust: EpochTrust
    _committer: Committer
    _fence: Fence
    _compactor: Compactor
    _tracker: Tracker
    _orders: Orders
    _heartbeats: Heartbeats
    _published: PublishedRefusals
    _presence: Presence

    def __init__(
        self, names: k.HqKeys, clock: Clock, cache: Cache, history: History, fanout: Fanout, loading: Loading
    ) -> None:
        self._names, self._clock, self._loading = names, clock, loading
        self._cache, self._history, self._fanout = cache, history, fanout
        self._orders_at: dict[str, int] = {}  # versions of the records below ops/
        self.peers: OrderedDict[str, float] = OrderedDict()
        self._knowing: dict[str, bytes] = {}  # fields that each replica says it acts on

    def connect_store(self, epoch: Epoch, committer: Committer, fence: Fence, compactor: Compactor) -> None:
        """Connect the parts that read and write beside the follower; they need it, so they are made after it."""
        self._epoch, self._committer, self._fence, self._compactor = epoch, committer, fence, compactor

    def connect_liveness(
        self,
        trust: EpochTrust,
        tracker: Tracker,
        orders: Orders,
        heartbeats: Heartbeats,
        published: PublishedRefusals,
        presence: Presence,
    ) -> None:
        """Connect the parts that judge silence and epochs."""
        self._trust, self._tracker, self._orders = trust, tracker, orders
        self._heartbeats, self._published, self._presence = heartbeats, published, presence

    def reset(self) -> None:
        is_first = not self._loading.loaded.is_set()
        if not is_first:
            self._epoch.remember(self._trust.standing().remembered_holdings().to_bytes())
            self._trust.strangers.clear()
        self._loading.restart()
        self._fence.forget()
        self._cache.reset()
        self._committer.forget()
        self._tracker.reset()
        self._presence.reset()
        self._orders.reset()
        self._orders_at.clear()
        self._knowing.clear()
        self._history.reset(0)
        self._fanout.lose_all("the store has a new history")
        if not is_first:
            log.warning("reading everything again: the store has a new history")

    def load(self, records: list[Record]) -> None:
        with long_lived() if len(records) >= _MANY else nullcontext():
            others = self._cache.load(records)
        for name, record in others:
            if name.kind == k.OPS:
                self._take_order(KeyChange(record.key, record.value, record.created, record.modified), name, live=False)
            elif name.kind == k.COMPACTION:
                self._compactor.on_compaction_mark(record)
            elif name.kind == k.SILENCE:
                self._take_silence(KeyChange(record.key, record.value, record.created, record.modified), name)
            elif name.kind == k.KNOWS:
                self._knowing[name.rest] = record.value
            elif name.kind == k.RESTORE:
                self._loading.restoring = True

    def on_listing_complete(self, revision: int) -> None:
        self._cache.advance(revision)
        if self._tracker.replay is not None:
            self._tracker.replay.restart(revision)
        self._history.reset(revision)
        self._fanout.version = self._fanout.changed = revision

    def apply(self, batch: Batch, *, collapsed: bool) -> None:
        self._committer.observe(batch, collapsed=collapsed)
        if collapsed:
            # Even if nothing differs in the end: watchers at other replicas saw what came and went in between.
            self._history.reset(batch.revision)
            self._apply_version(batch, collapsed=True)
            because = "the store's history was compacted past this replica's position"
            self._tracker.restart(because)
            if self._tracker.replay is not None:
                self._tracker.replay.restart(batch.revision)
            return
        # Version by version: a heartbeat is judged by the status that was current at its place in the store's order.
        for version, changes in groupby(batch.changes, key=lambda change: change.revision):
            self._apply_version(Batch(version, list(changes)), collapsed=False)

    def _apply_version(self, batch: Batch, *, collapsed: bool) -> None:
        events = self._cache.apply(batch, collapsed=collapsed)
        if (replay := self._tracker.replay) is not None:
            replay.version = batch.revision
            for event in events:
                replay.observe(event)
        self._tell(batch.revision, events, collapsed=collapsed)
        self._fanout.version = batch.revision
        for change in batch.changes:
            self._apply_other(change, collapsed=collapsed)

    def _tell(self, version: int, events: list[Event], *, collapsed: bool) -> None:
        """Tell liveness and watches of the events."""
        if self._loading.loaded.is_set():
            for event in events:
                self._tracker.observe(event)
        if events:
            step = VersionEvents(version, [WatchedEvent(event) for event in events], collapsed)
            self._history.add(step)
            self._fanout.publish(step)
            self._fanout.forget(self._history.complete_after)

    def connection(self, up: bool) -> None:
        log.info("the watch on the store is %s", "open" if up else "closed")

    def version_of(self, key: bytes) -> int | None:
        kind, rest = self._names.name(key)
        if kind == k.OPS:
            return self._orders_at.get(rest, 0)
        return self._cache.stored_version(kind, rest)

    def mend(self, changes: list[KeyChange], revision: int) -> None:
        """Apply corrections as events of that version. Deadlines do not restart, and open watches continue."""
        events = self._cache.apply(Batch(revision, changes), collapsed=True)
        self._tell(revision, events, collapsed=False)
        for change in changes:
            self._apply_other(change, collapsed=True)

    def keys(self) -> Iterable[bytes]:
        yield from self._cache.keys()
        yield from (self._names.of(k.OPS, name) for name in self._orders_at)
        if self._loading.restoring:
            yield self._names.restore

    def _apply_other(self, change: KeyChange, *, collapsed: bool) -> None:
        """Apply a change that is not of an instance: heartbeats, fences, orders, marks."""
        name = self._names.name(change.key)
        if name.kind in (k.SPEC, k.STATUS, k.SECRETS):
            return
        if change.value is None:
            self._cache.quarantine.release(*name)
            if name.kind == k.KNOWS:
                self._knowing.pop(name.rest, None)
        if name.kind == k.OPS:
            self._take_order(change, name, live=not collapsed)  # in a gap an order may have been given long ago
        elif name.kind == k.RESTORE:
            self._loading.restoring = change.value is not None
        elif change.value is not None:
            self._apply_word(change, name, change.value)

    def _apply_word(self, change: KeyChange, name: k.Name, value: bytes) -> None:
        """Apply a replica's record about itself, or about something that it did for all."""
        if name.kind == k.FENCE:
            self._saw_peer(name.rest)
            self._fence.on_fence_key(change.key, word_of(value), change.revision)
        elif name.kind in (k.HEARTBEATS, k.HEARING):
            part = self._heartbeats if name.kind == k.HEARTBEATS else self._published
            self._saw_peer(name.rest)
            self._take(change, name, lambda: part.observe(name.rest, value))
        elif name.kind == k.SILENCE:
            self._take_silence(change, name)
        elif name.kind == k.KNOWS:
            self._knowing[name.rest] = value
        elif name.kind == k.MENDED:
            # The memory of some process was wrong: clients that resumed here may hold what they got there.
            self._history.reset(change.revision)
            self._fanout.lose_resumed("the memory of a replica differed from the store until here")
        elif name.kind == k.COMPACTION:
            self._compactor.on_compaction_mark(Record(change.key, value, change.created, change.revision))

    def _take_silence(self, change: KeyChange, name: k.Name) -> None:
        self._take(change, name, lambda: self._presence.observe(name.rest, change.value or b"", change.revision))

    def _take_order(self, change: KeyChange, name: k.Name, *, live: bool) -> None:
        live = live and self._loading.loaded.is_set()
        if change.value is None:
            self._orders_at.pop(name.rest, None)
        else:
            self._orders_at[name.rest] = change.revision
        if self._tracker.replay is not None and name.rest.startswith(_SUSPEND):
            self._tracker.replay.record_order(name.rest.removeprefix(_SUSPEND))
        self._take(change, name, lambda: self._orders.take(name.rest, change.value, live=live))

    def _take(self, change: KeyChange, name: k.Name, take: Callable[[], None]) -> None:
        """Take a record in, or put it into quarantine."""
        try:
            take()
            self._cache.quarantine.release(*name)
        except DecodeError as error:
            self._cache.quarantine.put(Quarantined(*name, change.revision, str(error), served_from_older=False))

    def unaware_of(self, field: bytes) -> list[str]:
        """The replicas seen lately that do not say that they act on a field of specs."""
        since = self._clock.now() - _LIVE_S
        live = (replica for replica, at in self.peers.items() if at > since)
        return [replica for replica in live if field not in self._knowing.get(replica, b"").split()]

    def _saw_peer(self, replica: str) -> None:
        if not self._loading.loaded.is_set():  # a replay: this may have been written long ago
            return
        self.peers[replica] = self._clock.now()
        self.peers.move_to_end(replica)
        while len(self.peers) > _PEERS_KEPT:
            self.peers.popitem(last=False)
