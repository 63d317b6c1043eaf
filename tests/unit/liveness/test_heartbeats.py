"""Heartbeats over replicas in virtual time: what they cost, and which replicas hear them."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from hq.liveness.deadlines import RevisionKey
from hqpb.storage.v1 import storage_pb2
from serving.errors import StoreUnavailable
from tests.support.sample_instances import instance
from tests.support.simulated_agents import Reporter, batches, heartbeat_of, ready
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_current_heartbeat_is_acknowledged_and_every_replica_has_heard_it() -> None:
    async with Simulation() as simulation:
        replicas = [(await simulation.start_replica()).registry for _ in range(3)]
        reporter = await ready(simulation, replicas[0])
        await asyncio.sleep(100)
        await reporter.report(replicas[1])
        await replicas[2].replica.fence.wait_for_fence()
        for registry in replicas:
            [key] = registry.replica.tracker.deadlines._heard
            silence_s = registry.replica.tracker.deadlines.silence_s(key, simulation.now)
            assert silence_s is not None
            assert silence_s < 1
            entry = registry.replica.cache.get("a")
            assert entry is not None
            assert entry.marks[0].heard_by == "replica-2"


@pytest.mark.long
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
        assert registry.replica.heartbeats.sent == 10_000


@pytest.mark.long
@in_virtual_time
async def test_there_are_at_most_fifty_batches_a_second_and_a_heartbeat_takes_at_most_24_bytes() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        for n in range(100):
            await ready(simulation, registry, f"i-{n}")
        heartbeats, began, flushed = registry.replica.heartbeats, simulation.now, registry.replica.heartbeats.flushes
        sent = []
        for n in range(5_000):  # 1,000 a second
            heartbeat = heartbeat_of(registry.replica, f"i-{n % 100}")._replace(status_version=1 << 34)
            sent.append(asyncio.ensure_future(heartbeats.send([heartbeat])))
            await asyncio.sleep(0.001)
        await asyncio.gather(*sent)
        passed_s = simulation.now - began
        assert heartbeats.flushes - flushed <= passed_s * 50 + 1
        found = (await batches(simulation.store))[-heartbeats.flushes + flushed :]
        assert sum(len(change.key) + len(change.value or b"") for change in found) <= 24 * 5_000
        times = [storage_pb2.BeatBatch.FromString(change.value or b"").unix_ms for change in found]
        assert min(b - a for a, b in pairwise(times)) >= 19


@pytest.mark.long
@in_virtual_time
async def test_while_nobody_reports_nothing_is_written() -> None:
    async with Simulation() as simulation:
        await simulation.start_replica()
        await asyncio.sleep(3_600)
        assert await batches(simulation.store) == []


@in_virtual_time
async def test_an_outdated_heartbeat_renews_nothing_and_is_refused() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        reporter = await ready(simulation, registry)
        old = heartbeat_of(registry.replica)
        await reporter.report(registry, "changed")
        await asyncio.sleep(50)
        assert await registry.replica.heartbeats.send([old]) == [False]
        assert await registry.replica.heartbeats.send([old._replace(uid=1)]) == [False]
        assert await registry.replica.heartbeats.send([heartbeat_of(registry.replica, position=1)]) == [False]
        [key] = registry.replica.tracker.deadlines._heard
        assert (registry.replica.tracker.deadlines.silence_s(key, simulation.now) or 0) >= 50


@in_virtual_time
async def test_a_report_repeated_at_a_replica_that_is_behind_is_not_taken_for_a_heartbeat() -> None:
    """Another replica acknowledged a change; the report repeats the state before that change."""
    async with Simulation() as simulation:
        here, there = await simulation.start_replica(), await simulation.start_replica()
        reporter = await ready(simulation, here.registry)
        await there.registry.replica.fence.wait_for_fence()
        here.link.hold_watch()
        await reporter.report(there.registry, "changed")
        again = asyncio.ensure_future(reporter.report(here.registry))
        await asyncio.sleep(1)
        assert not again.done()
        here.link.release_watch()
        await again
        await there.registry.replica.fence.wait_for_fence()
        entry = there.registry.replica.cache.get("a")
        assert entry is not None
        assert entry.status().revision[0].ready.message == ""
        assert entry.marks[0].sequence == reporter.sequence
        assert here.registry.replica.heartbeats.outdated == there.registry.replica.heartbeats.outdated == 1


@in_virtual_time
async def test_a_replica_that_stays_behind_answers_reports_with_unavailable() -> None:
    async with Simulation() as simulation:
        here = await simulation.start_replica()
        reporter = await ready(simulation, here.registry)
        here.link.hold_watch()
        with pytest.raises(StoreUnavailable):
            await reporter.report(here.registry)


@in_virtual_time
async def test_a_heartbeat_that_waits_while_another_reporter_takes_over_is_refused() -> None:
    async with Simulation() as simulation:
        here, there = await simulation.start_replica(), await simulation.start_replica()
        reporter = await ready(simulation, here.registry)
        await there.registry.replica.fence.wait_for_fence()
        here.link.hold_watch()
        await Reporter(simulation).begin(there.registry)
        late = asyncio.ensure_future(reporter.report(here.registry))
        await asyncio.sleep(0.5)
        here.link.release_watch()
        with pytest.raises(Exception, match="another reporter has taken over this revision"):
            await late


@in_virtual_time
async def test_a_heartbeat_of_the_old_revision_survives_changes_by_the_new_one() -> None:
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
async def test_an_identical_report_renews_its_revision_whatever_came_in_between() -> None:
    """An agent may count only its changes: writing the stored report once more would not renew its deadline."""
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        made = instance("a", revisions=("r1", "r2"))
        await registry.writes.create(made, "", simulation.now + 5, validate_only=False)
        reporter = await Reporter(simulation, "a", "r1").begin(registry)
        other = await Reporter(simulation, "a", "r2").begin(registry)
        report = reporter.request()
        for n in range(10):
            report.unsettled = n % 2 == 1
            # The other one's change makes the heartbeat outdated while it is under way.
            reporting = asyncio.ensure_future(registry.reports.report(report, simulation.now + 5))
            await asyncio.gather(other.report(registry, f"step {n}"), reporting)
            await asyncio.sleep(150)
            silence_s = registry.replica.tracker.deadlines.silence_s(RevisionKey("a", "r1"), simulation.now)
            assert silence_s is not None
            assert silence_s <= 151
        assert simulation.expiries() == []
