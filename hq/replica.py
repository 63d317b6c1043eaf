"""The parts of one replica, put together and run."""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from pathlib import Path
from typing import Final

from hq import checkpoint
from hq import keys as k
from hq.config import ReplicaConfig
from hq.epoch_trust import EpochTrust, UnknownInstances
from hq.liveness.heartbeats import Heartbeats
from hq.liveness.liveness import Liveness, liveness_times
from hq.liveness.presence import Presence
from hq.liveness.refusals import PublishedRefusals
from hq.liveness.tracker import Tracker
from hq.loading import CatchUp, Loading, wait_for_watch
from hq.memory.cache import Cache
from hq.memory.fanout import Fanout
from hq.memory.history import History
from hq.store_events import StoreEvents
from serving.clock import Clock
from serving.errors import ServiceError
from serving.storage.errors import to_service_error
from store.commit import Committer
from store.compaction import Compactor
from store.epoch import Epoch
from store.fence import Fence, FenceTimes
from store.follow import StoreFollower
from store.port import Store
from store.proof import Proof
from store.session import WriterSession

log = logging.getLogger(__name__)

_RESTORING_POLL_S: Final = 0.2
_RETRY_S: Final = 0.05


class Replica:
    """The parts of one replica, each an attribute. `run` runs them; if one fails, it ends with that error."""

    def __init__(self, config: ReplicaConfig, store: Store, clock: Clock, rng: random.Random) -> None:
        self.config, self.store, self.clock, self.rng = config, store, clock, rng
        self.key_names = names = k.HqKeys(config.prefix)
        self.cache = cache = Cache(names)
        self.history = History(config.history_bytes)
        self.fanout = Fanout(config.watch_buffer_bytes)
        self.loading = Loading()
        me, timeout_s = config.replica, config.liveness_timeout_s
        self.events = StoreEvents(names, clock, cache, self.history, self.fanout, self.loading)
        self.epoch = epoch = Epoch(store, names, rng)
        self.follower = StoreFollower(store, names, self.events, epoch, rng)
        times = FenceTimes(idle_s=min(3.0, timeout_s / 3))
        self.fence = Fence(store, names, me, epoch, self.follower, clock, rng, times, to_service_error)
        self.session = WriterSession(store, names, me, epoch, rng, partial(wait_for_watch, cache))
        self.committer = Committer(store, names, me, epoch, self.session, clock, rng, errors=to_service_error)
        self.compactor = Compactor(store, names, me, epoch, clock, rng, config.compact_every_s, k.PER_REPLICA)
        self.tracker = tracker = Tracker(liveness_times(config), clock)
        self.proof = Proof(
            store, names, me, epoch, self.follower, self.events, self.fence, clock, rng, lambda: len(self.events.peers)
        )
        parts = store, names, me, epoch, self.session, cache, tracker, clock, rng
        self.heartbeats = Heartbeats(*parts, batches_per_s=config.heartbeat_batches_per_s)
        self.liveness = Liveness(config, cache, names, tracker, self.heartbeats, self.fence, self.committer, clock, rng)
        self.published = PublishedRefusals(store, names, me, epoch, self.liveness.refusals, clock, rng, timeout_s)
        self.catch_up = CatchUp(cache, self.fence, self.loading)
        orders, strangers = self.liveness.orders, UnknownInstances(config.report_interval_s / 2, timeout_s)
        self.trust = EpochTrust(cache, orders, strangers, self.committer, self.catch_up, names, clock)
        self.events.connect_store(epoch, self.committer, self.fence, self.compactor)
        guard, reachability = self.liveness.guard, self.liveness.reachability
        marked_at = partial(getattr, self.compactor, "marked_at")
        parts_of_silence = cache, tracker, guard, orders, reachability, clock, rng, marked_at
        self.presence = Presence(store, names, me, epoch, *parts_of_silence)
        self.events.connect_liveness(self.trust, tracker, orders, self.heartbeats, self.published, self.presence)

    async def run(self) -> None:
        """Follow, write and judge for ever."""
        if path := self.config.checkpoint:
            self.follower.kept = checkpoint.find_checkpoint(
                Path(path), self.cache, self.history, self.key_names.prefix, self.presence.recall
            )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.follower.run(), name="follower")
            tasks.create_task(self.fence.run(), name="fence")
            tasks.create_task(self.proof.run(), name="proof")
            tasks.create_task(self.committer.run(), name="committer")
            tasks.create_task(self.heartbeats.run(), name="heartbeats")
            tasks.create_task(self.published.run(), name="published refusals")
            tasks.create_task(self.presence.run(), name="presence")
            tasks.create_task(self.compactor.run(), name="compactor")
            tasks.create_task(self._finish_loading_each_time(), name="loading")
            tasks.create_task(self.liveness.sweep.run(), name="sweep")

    def save(self) -> None:
        """Write the checkpoint, if one is configured; call it when `run` has ended."""
        if (path := self.config.checkpoint) and self.loading.loaded.is_set():
            if self.fence.proven_at is not None:
                self.tracker.away(self.fence.proven_at)
            silence, footing = self.presence.keep(), self.follower.footing()
            checkpoint.save(Path(path), self.cache, self.history, self.key_names.prefix, footing, silence)

    async def _finish_loading_each_time(self) -> None:
        while True:
            await self.loading.unloaded.wait()
            if self.loading.restoring:
                await asyncio.sleep(_RESTORING_POLL_S)
            else:
                await self._finish_loading()
                await self.trust.believe_what_came_back(self.loading, f"replica {self.config.replica}")

    async def _finish_loading(self) -> None:
        """After a listing: replay what came since, prove it with a fence, and start to measure silence."""
        try:
            await self.fence.wait_for_fence()
        except ServiceError as error:
            log.info("not loaded yet: %s", error)
            await asyncio.sleep(_RETRY_S)  # a closed fence fails at once, every time
            return
        loading = self.loading
        if self.follower.applied and not loading.loaded.is_set() and not loading.restoring:
            self.presence.start("this replica has just started and may have missed heartbeats")
            loading.finish()
            log.info("loaded %d instances at version %d", len(self.cache), self.cache.version)
