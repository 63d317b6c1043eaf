"""A replica's memory in step with its store: where each event goes. The sink of the follower.

For one batch, in this order: the committer (did it bring a write of unknown outcome?), the cache, liveness, history and
watches, then fences: whoever waits for a fence finds everything before it in place.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby

from google.protobuf.message import DecodeError

from hq import keys as k
from hq.config import ReplicaConfig
from hq.epoch_trust import Census, Standing, Strangers, standing
from hq.errors import EpochDoubted
from hq.liveness.heartbeats import Heartbeats
from hq.liveness.liveness import Liveness, liveness_times
from hq.liveness.refusals import PublishedRefusals
from hq.liveness.tracker import Tracker
from hq.memory.cache import Cache
from hq.memory.decoder import Quarantined
from hq.memory.fanout import Fanout
from hq.memory.history import History, Step, WatchedEvent
from hqpb.storage.v1 import storage_pb2
from serving.clock import Clock
from serving.errors import NotLoaded, ServiceError
from serving.storage.errors import served
from store.commit import Committer
from store.compaction import Compactor
from store.epoch import Epoch
from store.fence import Fence, FenceTimes
from store.follow import Follower
from store.keys import word_of
from store.port import Batch, Change, Record, Store, Unavailable, Write
from store.session import Session

log = logging.getLogger(__name__)

_RESTORING_POLL_S = 0.2
_RETRY_S = 0.05
_SHOWN_S = 1.0
_RECOVERY_LOOK_S = 1.0
_CONFIRM_S = 5.0


class Replica:
    """The parts of one replica. `run` keeps them going; a part that dies ends it with its error.

    Attributes:
        loaded: set when everything was read and a fence proved it; cleared when the store turns out to be another one.
        restoring: a backup is being put back into the store; what is there is not everything.
        peers: by replica, when a sign of life of it was last seen, on the injected clock.
        strangers: instances that agents report to this replica and the store does not know.
    """

    def __init__(self, config: ReplicaConfig, store: Store, clock: Clock, rng: random.Random) -> None:
        self.config, self.store, self.clock, self.rng = config, store, clock, rng
        self.key_names = k.Keys(config.prefix)
        self.cache = Cache(self.key_names)
        self.history = History(config.history_bytes)
        self.fanout = Fanout(config.watch_buffer_bytes)
        self.loaded = asyncio.Event()
        self._unloaded = asyncio.Event()
        self._unloaded.set()
        self.restoring = False
        self.peers: OrderedDict[str, float] = OrderedDict()
        self.strangers = Strangers(config.report_interval_s / 2, config.liveness_timeout_s)
        names, me = self.key_names, config.replica
        self.epoch = Epoch(store, names, rng)
        self.follower = Follower(store, names, self, self.epoch, rng)
        idle_s = min(3.0, config.liveness_timeout_s / 3)
        self.fence = Fence(store, names, me, self.epoch, self.follower, clock, rng, FenceTimes(idle_s=idle_s), served)
        self.session = Session(store, names, me, self.epoch, rng, self._watched)
        self.committer = Committer(store, names, me, self.epoch, self.session, clock, rng, errors=served)
        tracker = Tracker(liveness_times(config), clock)
        self.heartbeats = Heartbeats(
            *(store, names, me, self.epoch, self.session, self.cache, tracker, clock, rng),
            batches_per_s=config.heartbeat_batches_per_s,
        )
        self.liveness = Liveness(
            config, self.cache, names, tracker, self.heartbeats, self.fence, self.committer, clock, rng
        )
        refusals, timeout_s = self.liveness.refusals, config.liveness_timeout_s
        self.hearing = PublishedRefusals(store, names, me, self.epoch, refusals, clock, rng, timeout_s)
        self.compactor = Compactor(store, names, me, self.epoch, clock, rng, config.compact_every_s, k.PER_REPLICA)

    async def run(self) -> None:
        """Follow, write and judge for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.follower.run(), name="follower")
            tasks.create_task(self.fence.run(), name="fence")
            tasks.create_task(self.committer.run(), name="committer")
            tasks.create_task(self.heartbeats.run(), name="beats")
            tasks.create_task(self.hearing.run(), name="hearing")
            tasks.create_task(self.compactor.run(), name="compactor")
            tasks.create_task(self._finish_loading_each_time(), name="loading")
            tasks.create_task(self.liveness.sweep.run(), name="sweep")

    async def _finish_loading_each_time(self) -> None:
        while True:
            await self._unloaded.wait()
            if self.restoring:
                await asyncio.sleep(_RESTORING_POLL_S)
            else:
                await self._finish_loading()
                await self._believe_what_came_back()

    async def _finish_loading(self) -> None:
        """After a listing: replay what came since, prove it with a fence, and start to measure silence."""
        try:
            await self.fence.passed()
        except ServiceError as error:
            log.info("not loaded yet: %s", error)
            await asyncio.sleep(_RETRY_S)  # a fence that has ended says so at once, for ever
            return
        if self.follower.applied and not self.loaded.is_set() and not self.restoring:
            self.liveness.tracker.start(
                self.cache.entries(), "this replica has just started and may have missed heartbeats"
            )
            self.loaded.set()
            self._unloaded.clear()
            log.info("loaded %d instances at version %d", len(self.cache), self.cache.version)

    async def _believe_what_came_back(self) -> None:
        """Until all is read anew: if most of what the epoch before held is here, write that down.

        Later it may shrink, and rightly.
        """
        while self.loaded.is_set() and self.standing().may_recover:
            if self.standing().is_recovered:
                with suppress(ServiceError):  # next time
                    reason = "at least half of the previous epoch's instances are present"
                    await self.confirm_epoch(f"replica {self.config.replica}", reason, self.clock.now() + _CONFIRM_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(_RECOVERY_LOOK_S):
                    await self._unloaded.wait()

    async def confirm_epoch(self, by: str, reason: str, deadline: float) -> None:
        """What this epoch holds is all there is: whoever doubted it believes it. Raises as `Committer.commit`."""
        record = storage_pb2.EpochConfirmation(
            epoch=self.cache.epoch, by=by, reason=reason, since_unix_ms=self.clock.wall_ms()
        )
        write = Write((), ((self.key_names.confirmed, record.SerializeToString()),))
        version = await self.committer.commit("ops/epoch", write, 0, deadline)
        await self.shown(version)
        log.warning("epoch %s confirmed by %r: %s", record.epoch, by, reason)

    def standing(self) -> Standing:
        """Whether what the store holds is believed, and what speaks for and against it."""
        now = Census(len(self.cache), self.cache.ready())
        confirmed, strangers = self.liveness.orders.confirmed, self.strangers.count(self.clock.now())
        return standing(now, self.cache.epoch_record, confirmed, strangers)

    def check_loaded(self) -> None:
        """Raises NotLoaded until reads can be served."""
        if not self.loaded.is_set():
            raise NotLoaded(f"{self.why_not_loaded()}; use another one or retry", 0.5)

    def check_trusted(self) -> None:
        """Raises EpochDoubted: the store may have lost what it held."""
        if doubt := self.standing().doubt():
            raise EpochDoubted(f"{doubt}: keep what you have until the store is restored or confirmed", 5.0)

    def why_not_loaded(self) -> str:
        """In words, for callers and operators."""
        if self.restoring:
            return "a backup is being restored, or that was interrupted: `hq restore` must be completed"
        return "this replica is still loading"

    async def proven(self) -> None:
        """Return when memory has everything that was acknowledged before this call.

        Raises StoreUnavailable, and NotLoaded: meanwhile the store became another one that is not read yet, or a backup
        is being put back into it, and what memory has is not everything.
        """
        await self.fence.passed()
        self.check_loaded()

    async def catch_up(self, version: int, timeout_s: float) -> None:
        """Return when memory is at a version, or when the time is over: the caller looks at what memory has then."""
        if self.cache.version >= version:
            return
        try:
            async with asyncio.timeout(max(0.0, timeout_s)):
                await self.cache.wait_for(version)
        except (TimeoutError, NotLoaded):
            pass

    async def shown(self, version: int) -> None:
        """Return when whoever wrote this version can read it here; soon in any case, for it is stored."""
        await self.catch_up(version, _SHOWN_S)

    async def _watched(self, version: int) -> None:
        """Return when everything up to a version has come through the watch. Raises Unavailable on a new epoch."""
        try:
            await self.cache.wait_for(version)
        except NotLoaded as error:
            raise Unavailable(str(error)) from error

    # --- the follower's sink ----------------------------------------------------------------------------------------

    def reset(self) -> None:
        first = not self.loaded.is_set()
        if not first:
            self.epoch.remember(self.standing().remembered().encoded())
            self.strangers.clear()
        self.loaded.clear()
        self._unloaded.set()
        self.restoring = False
        self.fence.forget()
        self.cache.reset()
        self.committer.forget()
        self.liveness.tracker.reset()
        self.liveness.orders.reset()
        self.history.reset(0)
        self.fanout.lose_all("the store has a new history")
        if not first:
            log.warning("reading everything again: the store has a new history")

    def load(self, records: list[Record]) -> None:
        for name, record in self.cache.load(records):
            if name.kind == k.OPS:
                self._take_order(Change(record.key, record.value, record.created, record.modified), name, live=False)
            elif name.kind == k.COMPACTION:
                self.compactor.seen(record)
            elif name.kind == k.RESTORE:
                self.restoring = True

    def listed(self, revision: int) -> None:
        self.cache.advance(revision)
        self.history.reset(revision)
        self.fanout.version = self.fanout.changed = revision

    def apply(self, batch: Batch, *, collapsed: bool) -> None:
        self.committer.observe(batch, collapsed=collapsed)
        if collapsed:
            # Also if nothing differs in the end: what came and went in between was seen by others' watchers.
            self.history.reset(batch.revision)
            self._apply_version(batch, collapsed=True)
            because = "the store's history was compacted past this replica's position"
            self.liveness.tracker.deadlines.restart(self.clock.now(), because)
            return
        # Version by version: a heartbeat is judged by the status that was current at its place in the store's order.
        for version, changes in groupby(batch.changes, key=lambda change: change.revision):
            self._apply_version(Batch(version, list(changes)), collapsed=False)

    def _apply_version(self, batch: Batch, *, collapsed: bool) -> None:
        events = self.cache.apply(batch, collapsed=collapsed)
        if self.loaded.is_set():
            for event in events:
                self.liveness.tracker.observe(event)
        if events:
            step = Step(batch.revision, [WatchedEvent(event) for event in events], collapsed)
            self.history.add(step)
            self.fanout.publish(step)
            self.fanout.forget(self.history.complete_after)
        self.fanout.version = batch.revision
        for change in batch.changes:
            self._apply_other(change, collapsed=collapsed)

    def connection(self, up: bool) -> None:
        log.info("the watch on the store is %s", "open" if up else "closed")

    def keys(self) -> Iterable[bytes]:
        yield from self.cache.keys()
        yield from (self.key_names.of(k.OPS, name) for name in self.liveness.orders.names())
        if self.restoring:
            yield self.key_names.restore

    def _apply_other(self, change: Change, *, collapsed: bool) -> None:
        """Everything that is no instance: heartbeats, fences, orders, marks."""
        name = self.key_names.name(change.key)
        if name.kind in (k.SPEC, k.STATUS, k.SECRETS):
            return
        if change.value is None:
            self.cache.quarantine.release(*name)
        if name.kind == k.FENCE and change.value is not None:
            self._saw_peer(name.rest)
            self.fence.seen(change.key, word_of(change.value), change.revision)
        elif name.kind in (k.BEATS, k.HEARING) and change.value is not None:
            part = self.heartbeats if name.kind == k.BEATS else self.hearing
            self._saw_peer(name.rest)
            self._take(change, name, lambda: part.observe(name.rest, change.value or b""))
        elif name.kind == k.OPS:
            self._take_order(change, name, live=not collapsed)  # in a gap it may have been given long ago
        elif name.kind == k.RESTORE:
            self.restoring = change.value is not None
        elif name.kind == k.COMPACTION and change.value is not None:
            self.compactor.seen(Record(change.key, change.value, change.created, change.revision))

    def _take_order(self, change: Change, name: k.Name, *, live: bool) -> None:
        live = live and self.loaded.is_set()
        self._take(change, name, lambda: self.liveness.orders.take(name.rest, change.value, live=live))

    def _take(self, change: Change, name: k.Name, take: Callable[[], None]) -> None:
        """Take a record in, or put it into quarantine."""
        try:
            take()
            self.cache.quarantine.release(*name)
        except DecodeError as error:
            self.cache.quarantine.put(Quarantined(*name, change.revision, str(error), served_from_older=False))

    def _saw_peer(self, replica: str) -> None:
        self.peers[replica] = self.clock.now()
        self.peers.move_to_end(replica)
        while len(self.peers) > 1_000:
            self.peers.popitem(last=False)
