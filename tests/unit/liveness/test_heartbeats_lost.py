"""Lost, late, outdated or unreadable heartbeats: none renews a deadline long after it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hq import keys as k
from hqpb.storage.v1 import storage_pb2
from serving.errors import StoreUnavailable
from store.memory import MemoryStore
from store.port import Batch, Commit, Compare, KeyChange, Write
from tests.support.simulated_agents import NAMES, batches, heartbeat_of, ready
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_heartbeats_of_callers_that_left_are_not_flushed() -> None:
    """Their agents reported elsewhere or fell silent: a heartbeat sent now would look newer than it is."""
    async with Simulation() as simulation:
        running = await simulation.start_replica()
        heartbeats = running.registry.replica.heartbeats
        await ready(simulation, running.registry)
        first = asyncio.ensure_future(heartbeats.send([heartbeat_of(running.registry.replica)]))
        await asyncio.sleep(0.005)
        gone = asyncio.ensure_future(heartbeats.send([heartbeat_of(running.registry.replica)]))
        await asyncio.sleep(0.005)
        gone.cancel()
        stays = asyncio.ensure_future(heartbeats.send([heartbeat_of(running.registry.replica)]))
        assert [await first, await stays] == [[True], [True]]
        assert heartbeats.sent == 2


class SlowMember(MemoryStore):
    """A store that does not answer the first batch of heartbeats; the batch takes place once `deliver` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.deliver = asyncio.Event()
        self.late: asyncio.Task[Commit] | None = None

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        if writes[0].puts and writes[0].puts[0][0].startswith(NAMES.heartbeats) and self.late is None:
            self.late = asyncio.ensure_future(self._arrive(guards, writes, timeout_s))
            return await asyncio.shield(self.late)
        return await super().commit(guards, writes, timeout_s)

    async def _arrive(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        await self.deliver.wait()
        return await super().commit(guards, writes, timeout_s)


@in_virtual_time
async def test_an_unanswered_batch_never_arrives_after_a_later_one() -> None:
    async with Simulation() as simulation:
        simulation.store = store = SlowMember()
        registry = (await simulation.start_replica()).registry
        reporter = await ready(simulation, registry)
        with pytest.raises(StoreUnavailable):
            await reporter.report(registry)
        await asyncio.sleep(1)
        await reporter.report(registry)
        heard = await batches(store)
        store.deliver.set()
        assert store.late is not None
        assert not (await store.late).guarded
        assert await batches(store) == heard


@in_virtual_time
async def test_while_the_store_does_not_answer_heartbeats_fail_at_once_and_none_is_kept_for_later() -> None:
    async with Simulation() as simulation:
        running = await simulation.start_replica()
        reporter = await ready(simulation, running.registry)
        running.link.cut()
        with pytest.raises(StoreUnavailable):
            await reporter.report(running.registry)
        began = simulation.now
        for _ in range(100):
            with pytest.raises(StoreUnavailable):
                await reporter.report(running.registry)
        assert simulation.now - began < 1
        await asyncio.sleep(600)
        sent = running.registry.replica.heartbeats.sent
        running.link.mend()
        await asyncio.sleep(60)
        assert running.registry.replica.heartbeats.sent == sent
        await reporter.report(running.registry)


@in_virtual_time
async def test_heartbeats_of_an_old_epoch_are_not_sent_into_a_new_one() -> None:
    async with Simulation() as simulation:
        running = await simulation.start_replica()
        replica = running.registry.replica
        await ready(simulation, running.registry)
        first = asyncio.ensure_future(replica.heartbeats.send([heartbeat_of(replica)]))
        await asyncio.sleep(0.005)
        second = asyncio.ensure_future(replica.heartbeats.send([heartbeat_of(replica)]))
        await asyncio.sleep(0.005)
        replica.epoch.current = "another"
        assert await first == [True]
        with pytest.raises(StoreUnavailable, match="replaced"):
            await second


@in_virtual_time
async def test_draining_waits_only_for_heartbeats_that_were_sent() -> None:
    async with Simulation() as simulation:
        replica = (await simulation.start_replica()).registry.replica
        await ready(simulation, simulation.any_registry())
        await replica.heartbeats.drain()
        sent = [asyncio.ensure_future(replica.heartbeats.send([heartbeat_of(replica)])) for _ in range(10)]
        await asyncio.sleep(0)
        await replica.heartbeats.drain()
        await asyncio.sleep(0)
        assert [await heartbeat for heartbeat in sent] == [[True]] * 10


@in_virtual_time
async def test_an_unreadable_batch_is_in_quarantine_until_the_next_one() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        reporter = await ready(simulation, registry)
        key = NAMES.of(k.HEARTBEATS, "replica-1")
        await simulation.store.commit((), [Write((), ((key, b"\xff\xff"),))], 1)
        await registry.replica.fence.wait_for_fence()
        assert [record.key for record in registry.admin.quarantine()] == ["beats/replica-1"]
        await reporter.report(registry)
        assert registry.admin.quarantine() == []


@in_virtual_time
async def test_a_heartbeat_and_a_later_change_in_one_message_of_the_watch_are_taken_in_order() -> None:
    """A catch-up brings many versions at once; the heartbeat was current when stored, and acknowledged."""
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        replica = registry.replica
        await ready(simulation, registry)
        await asyncio.sleep(100)
        entry, version = replica.cache.get("a"), replica.cache.version
        assert entry is not None
        batch = storage_pb2.BeatBatch(uid=[entry.traits.uid], status_version=[entry.status_version], position=[0])
        record = entry.stored_records()[1].record
        changes = [
            KeyChange(NAMES.of(k.HEARTBEATS, "other"), batch.SerializeToString(), version + 1, version + 1),
            KeyChange(NAMES.status("a"), record.SerializeToString(), entry.spec_created, version + 2),
        ]
        replica.events.apply(Batch(version + 2, changes), collapsed=False)
        assert replica.heartbeats.outdated == 0
        [key] = replica.tracker.deadlines._heard
        assert replica.tracker.deadlines.silence_s(key, simulation.now) == 0
