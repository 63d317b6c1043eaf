"""What a sweep writes: exact expiries with their receipts, and nothing that stands in the way of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hq import keys as k
from hq.liveness.deadlines import RevisionKey
from hq.liveness.expiries import Expiries, ExpiryOutcome
from hq.memory.statuses import HEARTBEAT_TIMEOUT
from hq.registry.registry import Registry
from hq.replica import Replica
from hqpb.v1 import instance_pb2 as model
from serving.errors import TooLarge
from store.port import Commit, NoSpace, Write
from tests.support.faulty_store import faulty
from tests.support.sample_instances import instance
from tests.support.simulated_agents import Reporter
from tests.support.simulation import Agent, Simulation
from tests.support.store_link import Link
from tests.support.virtual_time import in_virtual_time

NAMES = k.HqKeys()


def between_look_and_write(expiries: Expiries, happens: Callable[[], Awaitable[object]]) -> None:
    """Run `happens` after an expiry was made and before it is stored."""
    commit = expiries._commit

    async def after_it(*expiry: Any) -> ExpiryOutcome:
        await happens()
        return await commit(*expiry)

    expiries._commit = after_it  # type: ignore[method-assign, assignment]


@asynccontextmanager
async def one_silent_agent() -> AsyncIterator[tuple[Simulation, Agent, Replica, Registry]]:
    """An agent that is silent from now on, a replica, and the registry of another."""
    async with Simulation(timeout_s=60, interval_s=18) as simulation:
        replica = (await simulation.start_replica()).registry.replica
        other = (await simulation.start_replica()).registry
        await simulation.add_agents(1, 1)
        [agent] = simulation.agents
        agent.fall_silent()
        yield simulation, agent, replica, other


def condition(simulation: Simulation, key: RevisionKey) -> model.Condition:
    entry = simulation.any_registry().replica.cache.get(key.instance_id)
    assert entry is not None
    return entry.status().revision[0].ready


@pytest.mark.long
@in_virtual_time
async def test_an_expiry_records_the_last_report_and_the_decision_with_its_version() -> None:
    async with Simulation() as simulation:
        for _ in range(3):
            await simulation.start_replica()
        await simulation.add_agents(1, 1)
        simulation.agents[0].fall_silent()
        await asyncio.sleep(700)
        found = condition(simulation, simulation.agents[0].key)
        assert (found.status, found.reason) == (model.CONDITION_STATUS_FALSE, HEARTBEAT_TIMEOUT)
        names = {running.registry.replica.config.replica for running in simulation.replicas}
        assert {found.receipt.heard_by, found.receipt.decided_by} <= names
        assert 600 <= found.receipt.silence.ToSeconds() <= 660
        assert found.receipt.last_heartbeat_time.ToMilliseconds() > 0
        assert found.receipt.guard_verdict.startswith("not holding: ")
        assert 0 < found.receipt.decided_at_version < simulation.any_registry().replica.cache.version


@in_virtual_time
async def test_the_instance_of_an_unreadable_status_record_expires_all_the_same() -> None:
    """Its last good state is served until its agent is silent; the expiry also writes a good record."""
    async with Simulation() as simulation:
        await simulation.start_replica()
        await simulation.add_agents(2, 2)
        broken = simulation.agents[0]
        broken.fall_silent()
        key = NAMES.status(broken.key.instance_id)
        simulation.changes.clear()
        await simulation.store.commit((), [Write((), ((key, b"\xff\xff\xff"),))], 1)
        await asyncio.sleep(700)
        registry = simulation.any_registry()
        assert condition(simulation, broken.key).reason == HEARTBEAT_TIMEOUT
        assert registry.admin.quarantine() == []
        assert condition(simulation, simulation.agents[1].key).status == model.CONDITION_STATUS_TRUE


@in_virtual_time
async def test_a_status_record_that_cannot_be_read_is_written_anew_by_its_agents_next_heartbeat() -> None:
    async with Simulation() as simulation:
        replica = (await simulation.start_replica()).registry.replica
        await simulation.add_agents(1, 1)
        [agent] = simulation.agents
        key = NAMES.status(agent.key.instance_id)
        await simulation.store.commit((), [Write((), ((key, b"\xff\xff\xff"),))], 1)
        await replica.fence.wait_for_fence()
        assert [record.key for record in simulation.any_registry().admin.quarantine()] == [
            f"status/{agent.key.instance_id}"
        ]
        await asyncio.sleep(200)
        assert simulation.any_registry().admin.quarantine() == []
        await asyncio.sleep(1500)
        assert condition(simulation, agent.key).status == model.CONDITION_STATUS_TRUE


@pytest.mark.parametrize("absurd", [-(1 << 63), 1 << 62])
def test_times_out_of_range_do_not_stop_a_replica_from_expiring_the_silent(absurd: int) -> None:
    @in_virtual_time
    async def play() -> None:
        async with Simulation() as simulation:
            replica = (await simulation.start_replica()).registry.replica
            await simulation.add_agents(1, 1)
            [agent] = simulation.agents
            agent.fall_silent()
            entry = replica.cache.get(agent.key.instance_id)
            assert entry is not None
            record = entry.status_record()
            record.revision[0].heard_unix_ms = absurd
            status = entry.status()
            status.revision.add(id="r0").ready.last_transition_time.seconds = absurd
            record.status = status.SerializeToString()
            record.revision.add(id="r0")
            put = (NAMES.status(agent.key.instance_id), record.SerializeToString())
            await simulation.store.commit((), [Write((), (put,))], 1)
            await asyncio.sleep(700)
            assert condition(simulation, agent.key).reason == HEARTBEAT_TIMEOUT

    play()


@pytest.mark.long
@in_virtual_time
async def test_an_instance_that_cannot_be_expired_does_not_block_others() -> None:
    async with Simulation(timeout_s=60, interval_s=18, guard_share=1.0) as simulation:
        expiries = (await simulation.start_replica()).registry.replica.liveness.sweep._expiries
        await simulation.add_agents(150, 3)
        commit = expiries._commit
        stuck = {agent.key.instance_id for agent in simulation.agents[:120]}

        async def refuse_most(instance_id: str, *expiry: Any) -> ExpiryOutcome:
            return ExpiryOutcome.CHANGED if instance_id in stuck else await commit(instance_id, *expiry)

        expiries._commit = refuse_most  # type: ignore[method-assign, assignment]
        for agent in simulation.agents:
            agent.fall_silent()
        await asyncio.sleep(70)
        assert len(simulation.expiries()) == 30


@in_virtual_time
async def test_a_report_that_comes_between_the_look_and_the_write_prevents_the_expiry() -> None:
    async with one_silent_agent() as (simulation, agent, replica, other):
        expiries = replica.liveness.sweep._expiries

        async def report() -> None:
            await other.reports.begin(agent.key.instance_id, "r1", agent.node, simulation.now + 5)
            await replica.fence.wait_for_fence()

        between_look_and_write(expiries, report)
        assert await expiries.write([agent.key], "test") == {agent.key: ExpiryOutcome.CHANGED}
        assert simulation.expiries() == []


@in_virtual_time
async def test_heartbeats_of_others_make_an_expiry_look_again_at_most_twice() -> None:
    async with Simulation(timeout_s=60, interval_s=18) as simulation:
        replica = (await simulation.start_replica()).registry.replica
        await simulation.add_agents(2, 1)
        silent, reporting = simulation.agents
        silent.fall_silent()
        expiries = replica.liveness.sweep._expiries
        commit, outcomes = expiries._commit, list[ExpiryOutcome]()

        async def after_a_heartbeat(*expiry: Any) -> ExpiryOutcome:
            await reporting._report()
            outcomes.append(await commit(*expiry))
            return outcomes[-1]

        expiries._commit = after_a_heartbeat  # type: ignore[method-assign, assignment]
        await asyncio.sleep(75)
        assert outcomes == [
            ExpiryOutcome.OVERTAKEN,
            ExpiryOutcome.OVERTAKEN,
            ExpiryOutcome.VOIDED,
            ExpiryOutcome.EXPIRED,
        ]
        assert [expiry.key for expiry in simulation.expiries()] == [silent.key]


@in_virtual_time
async def test_planned_work_that_is_announced_between_the_look_and_the_write_prevents_the_expiry() -> None:
    async with one_silent_agent() as (simulation, agent, replica, other):
        expiries = replica.liveness.sweep._expiries

        async def order() -> None:
            await other.admin.suspend(agent.node, 100_000, "me", "planned work", simulation.now + 5)

        between_look_and_write(expiries, order)
        assert await expiries.write([agent.key], "test") == {agent.key: ExpiryOutcome.OVERTAKEN}
        assert simulation.expiries() == []


@in_virtual_time
async def test_an_instance_that_is_deleted_between_the_look_and_the_write_stays_deleted() -> None:
    async with Simulation(timeout_s=60, interval_s=18) as simulation:
        replica = (await simulation.start_replica()).registry.replica
        expiries = replica.liveness.sweep._expiries
        assert await expiries.write([RevisionKey("gone", "r1")], "test") == {
            RevisionKey("gone", "r1"): ExpiryOutcome.CHANGED
        }


@in_virtual_time
async def test_both_revisions_of_an_instance_are_expired_in_one_write() -> None:
    async with Simulation(timeout_s=60, interval_s=18) as simulation:
        registry = (await simulation.start_replica()).registry
        await simulation.add_agents(1, 1)
        replica = registry.replica
        simulation.agents[0].fall_silent()
        keys = [RevisionKey("i-0", "r1"), RevisionKey("i-0", "r2")]
        version = replica.cache.version
        assert set((await replica.liveness.sweep._expiries.write(keys, "test")).values()) == {ExpiryOutcome.EXPIRED}
        await replica.fence.wait_for_fence()
        entry = replica.cache.get("i-0")
        assert entry is not None
        assert [mark.expired for mark in entry.marks] == [True, True]
        assert entry.status_version > version


class FullLink(Link):
    """The way to a store whose space may be used up: it takes no puts and answers everything else."""

    full = False

    async def commit(self, guards: object, writes: object, timeout_s: float) -> Commit:
        if self.full:
            raise NoSpace("the store's space is used up")
        return await super().commit(guards, writes, timeout_s)  # type: ignore[arg-type]


@pytest.mark.long
@in_virtual_time
async def test_a_store_that_was_full_for_long_expires_nobody_when_it_takes_writes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.support.simulation.Link", FullLink)
    async with Simulation() as simulation:
        for _ in range(2):
            await simulation.start_replica()
        await simulation.add_agents(6, 2)
        await asyncio.sleep(10)
        FullLink.full = True
        await asyncio.sleep(1_200)
        FullLink.full = False
        await asyncio.sleep(700)
        assert simulation.changes == []


@in_virtual_time
@pytest.mark.long
async def test_an_expiry_that_the_store_refuses_does_not_stand_in_the_way_of_others() -> None:
    async with Simulation(guard_share=1.0) as simulation:
        simulation.store = store = faulty()  # type: ignore[assignment]
        await simulation.start_replica()
        await simulation.add_agents(150, 3)
        first = {NAMES.status(agent.key.instance_id) for agent in simulation.agents[:120]}
        for agent in simulation.agents[:120]:
            agent.fall_silent()
        await asyncio.sleep(10)
        for agent in simulation.agents[120:]:
            agent.fall_silent()
        store.poisonous = lambda write: any(key in first for key, _ in write.puts)
        await asyncio.sleep(700)
        assert len(simulation.expiries()) == 30


async def refused_sizes(agent: Reporter, registry: Registry) -> list[int]:
    """Report at the largest size that is accepted; return the sizes that were refused."""
    refused = list[int]()
    for size in (60_000, 20_000, 7_000, 2_000, 700, 200, 0):
        report = agent.request()
        for at in range(0, size, 4_000):
            report.revision.container.add(name=f"c{at}").state.waiting.message = "x" * min(4_000, size - at)
        try:
            await registry.reports.report(report, agent.simulation.now + 5)
            break
        except TooLarge:
            refused.append(size)
    return refused


@pytest.mark.long
@in_virtual_time
async def test_whatever_agents_report_their_expiry_can_be_stored() -> None:
    """A status record has to fit into a transaction of the store, after an expiry too."""
    async with Simulation(guard_share=1.0) as simulation:
        registry = (await simulation.start_replica()).registry
        revisions = tuple(f"r{n}" for n in range(40))
        made = instance("large", revisions=revisions)
        await registry.writes.create(made, "", simulation.now + 5, validate_only=False)
        agents = [await Reporter(simulation, "large", revision).begin(registry) for revision in revisions]
        refused = [size for agent in agents for size in await refused_sizes(agent, registry)]
        assert refused
        await asyncio.sleep(700)
        entry = registry.replica.cache.get("large")
        assert entry is not None
        assert not entry.traits.ready
