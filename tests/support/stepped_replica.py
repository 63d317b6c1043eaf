"""A replica that stands still between the calls of a test: no task runs, the test hands it each change."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from hq.api.answers import Answers
from hq.config import ReplicaConfig
from hq.memory.query import Query
from hq.registry.registry import Registry
from hq.registry.watches import Watches
from hq.replica import Replica
from hqpb.v1 import service_pb2 as pb
from serving.clock import ManualClock
from store.memory import MemoryStore
from store.port import Batch, Record
from tests.support.store_histories import World

PLAIN = pb.ReadOptions()


class SteppedReplica:
    """A replica and what reads it; `settings` are bounds of ReplicaConfig.

    Attributes:
        held_back: changes that the store has and the replica has not; a fence brings them.
        answers: makes messages of what reads and watches give.
    """

    def __init__(self, name: str = "replica-1", **settings: Any) -> None:
        config = replace(ReplicaConfig(cluster="test", replica=name), **settings)
        self.clock = ManualClock()
        self.replica = Replica(config, MemoryStore(), self.clock, random.Random(1))
        self.registry = Registry(self.replica, random.Random(1))
        self.freshness, self.reads = self.registry.freshness, self.registry.reads
        # Nothing pending: a bookmark at once. So the test never waits, however a watch goes.
        r = self.replica
        self.watches = Watches(r.cache, r.history, r.fanout, r.fence, r.loading, self.freshness, bookmark_s=0.0)
        self.answers = Answers(1 << 20)
        self.held_back: list[Batch] = []
        self.replica.fence.wait_for_fence = self._passed  # type: ignore[method-assign]

    def list(self, records: list[Record], version: int) -> None:
        """The store was read, from nothing."""
        self.replica.events.reset()
        self.held_back.clear()
        self.replica.events.load(records)
        self.replica.events.on_listing_complete(version)
        self.replica.epoch.current = self.replica.cache.epoch
        self.replica.loading.loaded.set()

    def apply(self, batch: Batch, *, collapsed: bool = False) -> None:
        """What the watch of the store brought."""
        if batch.changes:
            self.replica.events.apply(batch, collapsed=collapsed)

    def catch_up(self, count: int | None = None) -> None:
        """Some of what is held back arrives."""
        while self.held_back and count != 0:
            self.apply(self.held_back.pop(0))
            count = None if count is None else count - 1

    async def find(
        self, wanted: pb.InstanceFilter, page_size: int = 0, token: str = "", read: pb.ReadOptions = PLAIN
    ) -> pb.FindInstancesResponse:
        found = await self.reads.find(Query(wanted), page_size, token, read, None)
        return pb.FindInstancesResponse.FromString((await self.answers.find_answer(found, ())).proto())

    async def watch(
        self, wanted: pb.InstanceFilter, token: str = ""
    ) -> AsyncGenerator[pb.WatchInstancesResponse, None]:
        """The messages as a client gets them."""
        async with aclosing(self.watches.watch(Query(wanted), token)) as messages:
            async for message in messages:
                yield pb.WatchInstancesResponse.FromString(self.answers.watch(message).proto())

    async def _passed(self) -> int:
        self.catch_up()
        return self.replica.cache.version


def loaded(world: World, **settings: Any) -> SteppedReplica:
    """A replica that has read everything of a world."""
    still = SteppedReplica(**settings)
    still.list(world.records(), world.version)
    return still
