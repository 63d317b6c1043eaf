"""Refused reports where parts meet: callers that give up, replicas that still read, names that no node has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from hq.config import ReplicaConfig
from hq.liveness.deadlines import LivenessTimes
from hq.liveness.refusals import Refusals
from hq.liveness.tracker import Tracker
from hq.memory.statuses import HEARTBEAT_TIMEOUT, REPORTS_REFUSED
from hq.process.prober import Prober
from hq.replica import Replica
from hqpb.v1 import service_pb2 as pb
from serving.clock import ManualClock
from serving.errors import StoreUnavailable
from serving.limiting.admission import Admission
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from store.memory import MemoryStore
from store.port import Batch, Commit, Compare, KeyChange, UnknownOutcome, Write
from tests.support.cache_entries import KEYS, Feed, mark, spec_value, status_value
from tests.support.simulation import Running, Simulation
from tests.support.virtual_time import VirtualClock, in_virtual_time

TIMEOUT_S, LATE_S = 600.0, 20.0


def hang(running: Running) -> None:
    """Make the replica answer no report in time, as if too many waited for the store."""

    async def take(report: pb.ReportStatusRequest, deadline: float, field: str) -> None:
        await asyncio.sleep(60)

    running.registry.reports._take = take  # type: ignore[method-assign]


@pytest.mark.parametrize("patience_s", [10.0, 1.0])
@in_virtual_time
async def test_only_a_caller_that_waits_until_its_deadline_counts_as_refused(
    patience_s: float,
) -> None:
    async with Simulation() as simulation:
        running = await simulation.start_replica()
        await simulation.add_agents(4, 2)
        await asyncio.sleep(400)
        heard_at = {agent.key: agent.last_report for agent in simulation.agents}
        hang(running)
        for agent in simulation.agents:
            honest = agent._report

            async def report(honest=honest) -> None:  # type: ignore[no-untyped-def]
                async with asyncio.timeout(patience_s):
                    await honest()

            agent._report = report  # type: ignore[method-assign]
        await asyncio.sleep(2 * TIMEOUT_S + LATE_S)
        is_refused = patience_s == simulation.call_s
        for expiry in simulation.expiries():
            entry = running.registry.replica.cache.get(expiry.key.instance_id)
            assert entry is not None
            assert entry.status().ready.reason == (REPORTS_REFUSED if is_refused else HEARTBEAT_TIMEOUT)
            assert (expiry.at_s - heard_at[expiry.key] >= 2 * TIMEOUT_S) == is_refused
        assert len(simulation.expiries()) == 4


@pytest.mark.long
@in_virtual_time
async def test_unanswered_heartbeats_delay_expiries_no_longer_than_the_door_may() -> None:
    """Each batch takes seconds to fail; expiries do not wait for it."""
    async with Simulation() as simulation:
        replica = (await simulation.start_replica()).registry.replica
        await simulation.add_agents(120, 2)  # too few nodes for the guard
        for agent in simulation.agents:
            agent.fall_silent()
        honest = simulation.store.commit

        async def commit(guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
            if any(b"/beats/" in key for write in writes for key, _ in write.puts):
                await asyncio.sleep(timeout_s)
                raise UnknownOutcome("no answer")
            return await honest(guards, writes, timeout_s)

        simulation.store.commit = commit  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailable):
            await replica.heartbeats.knock()
        replica.tracker.start(replica.cache.entries(), "all at once")
        await asyncio.sleep(2 * TIMEOUT_S + 60)
        assert len(simulation.expiries()) == 120
        assert simulation.expiries()[-1].at_s - simulation.expiries()[0].at_s < 10


def refusals_over(feed: Feed) -> Refusals:
    clock = ManualClock()
    return Refusals(feed.cache, Tracker(LivenessTimes(), clock), clock)


def test_a_replica_that_has_listed_and_still_replays_names_the_nodes_whose_reports_it_refuses() -> None:
    feed = Feed()
    feed(spec=spec_value("a", node_name="n1"), status=status_value(mark()))
    refusals = refusals_over(feed)
    report = pb.ReportStatusRequest(instance_id="a", uid=1, node="n1")
    report.revision.id, report.revision.incarnation = "r", 7
    refusals.report(report, "NOT_LOADED")
    assert refusals.take_news() == ([], ["n1"])


def test_impossible_names_of_nodes_are_not_kept_or_passed_on() -> None:
    """Otherwise a name of a megabyte would keep the replica's record out of the store."""
    refusals, rubbish = refusals_over(Feed()), "x" * 1_000_000
    refusals.heard_from("10.0.0.1", rubbish)
    refusals.report(pb.ReportStatusRequest(instance_id="a", node=rubbish), "NOT_LOADED")
    assert refusals.nodes_of("10.0.0.1") == []
    assert refusals.take_news() == ([], [])


@pytest.mark.parametrize("kind", ["hearing", "beats"])
def test_a_record_that_cannot_be_read_leaves_quarantine_when_it_is_deleted(kind: str) -> None:
    replica = Replica(ReplicaConfig(), MemoryStore(), ManualClock(), random.Random(1))
    key = KEYS.of(kind, "replica-gone")
    replica.events.apply(Batch(5, [KeyChange(key, b"\xff\xff\xff", 5, 5)]), collapsed=False)
    assert [record.kind for record in replica.cache.quarantine.all()] == [kind]
    replica.events.apply(Batch(6, [KeyChange(key, None, 0, 6)]), collapsed=False)
    assert replica.cache.quarantine.all() == []


@in_virtual_time
async def test_the_door_is_shut_if_its_listener_never_admitted_a_call() -> None:
    replica = Replica(ReplicaConfig(), MemoryStore(), VirtualClock(), random.Random(1))
    door = replica.liveness.reachability.door
    full = Admission(Limits(max_calls=0), replica.clock)
    listening: asyncio.Future[Addresses] = asyncio.get_running_loop().create_future()
    listening.set_result(Addresses("127.0.0.1:1", ""))
    probing = asyncio.create_task(Prober(door, replica.clock, 600.0, full, is_encrypted=False).run(listening))
    for _ in range(20):
        await asyncio.sleep(1)
        door.look(replica.clock.now())
    probing.cancel()
    assert door.is_shut
    assert "agents' listener" in door.why
