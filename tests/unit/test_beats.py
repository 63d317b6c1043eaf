"""Beats over replicas in virtual time: what they cost, who hears them, what becomes of those that were lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from hq.errors import StoreUnavailable
from hq.liveness.beats import Beat
from hq.registry.registry import Registry
from hq.replica import Replica
from hq.store import keys as k
from hq.store.memory import MemoryStore
from hq.store.port import Batch, Change, Commit, Compare, Write
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.scenes import instance
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time

NAMES = k.Keys()


class Reporter:
    """An agent that the test calls."""

    def __init__(self, simulation: Simulation, instance_id: str = "a", revision: str = "r1") -> None:
        self.simulation, self.instance_id, self.revision = simulation, instance_id, revision
        self.incarnation = self.uid = self.sequence = 0

    async def begin(self, registry: Registry) -> Reporter:
        deadline = self.simulation.now + 5
        begun = await registry.reports.begin(self.instance_id, self.revision, "node-1", deadline)
        self.incarnation, self.uid = begun.incarnation, begun.uid
        return self

    def request(self, message: str = "") -> pb.ReportStatusRequest:
        self.sequence += 1
        status = model.RevisionStatus(id=self.revision, incarnation=self.incarnation, sequence=self.sequence)
        status.ready.status = model.CONDITION_STATUS_TRUE
        status.ready.message = message
        return pb.ReportStatusRequest(instance_id=self.instance_id, uid=self.uid, node="node-1", revision=status)

    async def report(self, registry: Registry, message: str = "") -> None:
        await registry.reports.report(self.request(message), self.simulation.now + 5)


async def ready(simulation: Simulation, registry: Registry, instance_id: str = "a") -> Reporter:
    """An instance that is ready, and its agent."""
    made = instance(instance_id)
    await registry.writes.create(made, "", simulation.now + 5, validate_only=False)
    reporter = await Reporter(simulation, instance_id).begin(registry)
    await reporter.report(registry)
    return reporter


def beat_of(replica: Replica, instance_id: str = "a", position: int = 0) -> Beat:
    entry = replica.cache.get(instance_id)
    assert entry is not None
    return Beat(entry.traits.uid, entry.status_version, position)


async def batches(store: MemoryStore) -> list[Change]:
    """Every batch of beats ever stored."""
    _, head = await store.get(b"")
    found: list[Change] = []
    async with store.watch(NAMES.beats, k.prefix_end(NAMES.beats), after=0) as stream:
        try:
            async with asyncio.timeout(1):
                async for batch in stream:
                    found += batch.changes
        except TimeoutError:
            assert all(change.revision <= head for change in found)
    return found


@in_virtual_time
async def test_a_current_beat_is_acknowledged_and_every_replica_has_heard_it() -> None:
    async with Simulation() as simulation:
        replicas = [(await simulation.start_replica()).registry for _ in range(3)]
        reporter = await ready(simulation, replicas[0])
        await asyncio.sleep(100)
        await reporter.report(replicas[1])
        await replicas[2].replica.fence.passed()
        for registry in replicas:
            [key] = registry.replica.watchman.tracker.deadlines._heard
            silence_s = registry.replica.watchman.tracker.deadlines.silence_s(key, simulation.now)
            assert silence_s is not None
            assert silence_s < 1
            entry = registry.replica.cache.get("a")
            assert entry is not None
            assert entry.marks[0].heard_by == "replica-2"


@in_virtual_time
async def test_ten_thousand_reports_that_say_nothing_new_leave_every_status_record_as_it_was() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        reporters = [await ready(simulation, registry, f"i-{n}") for n in range(100)]
        before = {n: registry.replica.cache.stored_versions(f"i-{n}") for n in range(100)}
        written = registry.replica.committer.writes
        for _ in range(100):
            await asyncio.gather(*(reporter.report(registry) for reporter in reporters))
        assert {n: registry.replica.cache.stored_versions(f"i-{n}") for n in range(100)} == before
        assert registry.replica.committer.writes == written
        assert registry.replica.beats.sent == 10_000


@in_virtual_time
async def test_there_are_at_most_five_batches_a_second_and_a_beat_takes_at_most_24_bytes() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        for n in range(100):
            await ready(simulation, registry, f"i-{n}")
        beats, began, flushed = registry.replica.beats, simulation.now, registry.replica.beats.flushes
        sent = []
        for n in range(5_000):  # 1,000 a second
            beat = beat_of(registry.replica, f"i-{n % 100}")._replace(status_version=1 << 34)
            sent.append(asyncio.ensure_future(beats.send([beat])))
            await asyncio.sleep(0.001)
        await asyncio.gather(*sent)
        passed_s = simulation.now - began
        assert beats.flushes - flushed <= passed_s * 5 + 1
        found = (await batches(simulation.store))[-beats.flushes + flushed :]
        assert sum(len(change.key) + len(change.value or b"") for change in found) <= 24 * 5_000
        times = [storage_pb2.BeatBatch.FromString(change.value or b"").unix_ms for change in found]
        assert min(b - a for a, b in pairwise(times)) >= 199


@in_virtual_time
async def test_while_nobody_beats_nothing_is_written() -> None:
    async with Simulation() as simulation:
        await simulation.start_replica()
        await asyncio.sleep(3_600)
        assert await batches(simulation.store) == []


@in_virtual_time
async def test_an_outdated_beat_renews_nobody_and_its_sender_is_told() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        reporter = await ready(simulation, registry)
        old = beat_of(registry.replica)
        await reporter.report(registry, "changed")
        await asyncio.sleep(50)
        assert await registry.replica.beats.send([old]) == [False]
        assert await registry.replica.beats.send([old._replace(uid=1)]) == [False]
        assert await registry.replica.beats.send([beat_of(registry.replica, position=1)]) == [False]
        [key] = registry.replica.watchman.tracker.deadlines._heard
        assert (registry.replica.watchman.tracker.deadlines.silence_s(key, simulation.now) or 0) >= 50


@in_virtual_time
async def test_a_report_repeated_at_a_replica_that_is_behind_never_swallows_a_change() -> None:
    """The change was acknowledged elsewhere; the report says again what it said before the change."""
    async with Simulation() as simulation:
        here, there = await simulation.start_replica(), await simulation.start_replica()
        reporter = await ready(simulation, here.registry)
        await there.registry.replica.fence.passed()
        here.link.hold_watch()
        await reporter.report(there.registry, "changed")
        again = asyncio.ensure_future(reporter.report(here.registry))
        await asyncio.sleep(1)
        assert not again.done()
        here.link.release_watch()
        await again
        await there.registry.replica.fence.passed()
        entry = there.registry.replica.cache.get("a")
        assert entry is not None
        assert entry.status().revision[0].ready.message == ""
        assert entry.marks[0].sequence == reporter.sequence
        assert here.registry.replica.beats.outdated == there.registry.replica.beats.outdated == 1


@in_virtual_time
async def test_a_replica_that_stays_behind_says_unavailable_instead_of_swallowing() -> None:
    async with Simulation() as simulation:
        here = await simulation.start_replica()
        reporter = await ready(simulation, here.registry)
        here.link.hold_watch()
        with pytest.raises(StoreUnavailable):
            await reporter.report(here.registry)


@in_virtual_time
async def test_a_beat_that_waits_while_another_reporter_takes_over_is_refused() -> None:
    async with Simulation() as simulation:
        here, there = await simulation.start_replica(), await simulation.start_replica()
        reporter = await ready(simulation, here.registry)
        await there.registry.replica.fence.passed()
        here.link.hold_watch()
        await Reporter(simulation).begin(there.registry)
        late = asyncio.ensure_future(reporter.report(here.registry))
        await asyncio.sleep(0.5)
        here.link.release_watch()
        with pytest.raises(Exception, match="another reporter took this revision over"):
            await late


@in_virtual_time
async def test_the_beat_of_a_revision_that_another_one_replaces_is_written_when_the_record_changed() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        made = instance("a", revisions=("r1", "r2"))
        await registry.writes.create(made, "", simulation.now + 5, validate_only=False)
        old = await Reporter(simulation, "a", "r1").begin(registry)
        new = await Reporter(simulation, "a", "r2").begin(registry)
        await old.report(registry)
        for n in range(20):
            await asyncio.gather(old.report(registry), new.report(registry, f"step {n}"))
        entry = registry.replica.cache.get("a")
        assert entry is not None
        assert [revision.ready.message for revision in entry.status().revision] == ["", "step 19"]
        assert [mark.ready for mark in entry.marks] == [True, True]
        assert entry.marks[1].sequence == 20


@in_virtual_time
async def test_callers_who_left_while_they_waited_are_not_flushed() -> None:
    """Their agents have reported elsewhere or fallen silent: a beat sent now would be older than it looks."""
    async with Simulation() as simulation:
        running = await simulation.start_replica()
        beats = running.registry.replica.beats
        await ready(simulation, running.registry)
        first = asyncio.ensure_future(beats.send([beat_of(running.registry.replica)]))
        await asyncio.sleep(0.05)
        gone = asyncio.ensure_future(beats.send([beat_of(running.registry.replica)]))
        await asyncio.sleep(0.05)
        gone.cancel()
        stays = asyncio.ensure_future(beats.send([beat_of(running.registry.replica)]))
        assert [await first, await stays] == [[True], [True]]
        assert beats.sent == 2


class SlowMember(MemoryStore):
    """A store whose first batch of beats lies with a slow member: it is not answered, and arrives when told."""

    def __init__(self) -> None:
        super().__init__()
        self.deliver = asyncio.Event()
        self.late: asyncio.Task[Commit] | None = None

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        if writes[0].puts and writes[0].puts[0][0].startswith(NAMES.beats) and self.late is None:
            self.late = asyncio.ensure_future(self._arrive(guards, writes, timeout_s))
            return await asyncio.shield(self.late)
        return await super().commit(guards, writes, timeout_s)

    async def _arrive(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        await self.deliver.wait()
        return await super().commit(guards, writes, timeout_s)


@in_virtual_time
async def test_a_batch_without_an_answer_never_arrives_after_the_replica_went_on() -> None:
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
async def test_while_the_store_does_not_answer_beats_fail_at_once_and_none_is_kept_for_later() -> None:
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
        sent = running.registry.replica.beats.sent
        running.link.mend()
        await asyncio.sleep(60)
        assert running.registry.replica.beats.sent == sent
        await reporter.report(running.registry)


@in_virtual_time
async def test_beats_of_another_epoch_are_not_sent_for_their_versions_mean_nothing_there() -> None:
    async with Simulation() as simulation:
        running = await simulation.start_replica()
        replica = running.registry.replica
        await ready(simulation, running.registry)
        first = asyncio.ensure_future(replica.beats.send([beat_of(replica)]))
        await asyncio.sleep(0.05)
        second = asyncio.ensure_future(replica.beats.send([beat_of(replica)]))
        await asyncio.sleep(0.05)
        replica.epoch.current = "another"
        assert await first == [True]
        with pytest.raises(StoreUnavailable, match="replaced"):
            await second


@in_virtual_time
async def test_draining_waits_for_what_was_sent_and_for_nothing_else() -> None:
    async with Simulation() as simulation:
        replica = (await simulation.start_replica()).registry.replica
        await ready(simulation, simulation.any_registry())
        await replica.beats.drain()
        sent = [asyncio.ensure_future(replica.beats.send([beat_of(replica)])) for _ in range(10)]
        await asyncio.sleep(0)
        await replica.beats.drain()
        await asyncio.sleep(0)
        assert [await beat for beat in sent] == [[True]] * 10


@in_virtual_time
async def test_a_batch_that_cannot_be_read_is_set_aside_and_the_next_one_clears_it() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        reporter = await ready(simulation, registry)
        key = NAMES.of(k.BEATS, "replica-1")
        await simulation.store.commit((), [Write((), ((key, b"\xff\xff"),))], 1)
        await registry.replica.fence.passed()
        assert [record.key for record in registry.admin.quarantine()] == ["beats/replica-1"]
        await reporter.report(registry)
        assert registry.admin.quarantine() == []


@in_virtual_time
async def test_a_beat_and_a_later_change_in_one_message_of_the_watch_are_taken_in_order() -> None:
    """A catch-up brings many versions at once. The beat was current when it was stored, and its sender was told so."""
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        replica = registry.replica
        await ready(simulation, registry)
        await asyncio.sleep(100)
        entry, version = replica.cache.get("a"), replica.cache.version
        assert entry is not None
        batch = storage_pb2.BeatBatch(uid=[entry.traits.uid], status_version=[entry.status_version], position=[0])
        record = entry.stored()[1].record
        changes = [
            Change(NAMES.of(k.BEATS, "other"), batch.SerializeToString(), version + 1, version + 1),
            Change(NAMES.status("a"), record.SerializeToString(), entry.spec_created, version + 2),
        ]
        replica.apply(Batch(version + 2, changes), collapsed=False)
        assert replica.beats.outdated == 0
        [key] = replica.watchman.tracker.deadlines._heard
        assert replica.watchman.tracker.deadlines.silence_s(key, simulation.now) == 0
