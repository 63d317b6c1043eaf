"""Expiries among many replicas that write heartbeats all the time: soon, and never over a report."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hq.liveness.deadlines import LivenessTimes
from hq.liveness.expiries import Expiries, ExpiryOutcome
from hqpb.storage.v1 import storage_pb2
from store.memory import MemoryStore
from store.port import Batch, Commit, Compare, WatchStream, Write
from tests.support.faulty_store import FaultyStore
from tests.support.simulation import Agent, Running, Simulation
from tests.support.virtual_time import in_virtual_time

TIMEOUT_S, INTERVAL_S = 60.0, 18.0


class FarStore(FaultyStore):
    """A store that is some milliseconds away, each way."""

    one_way_s = 0.015

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        await asyncio.sleep(self.one_way_s)
        commit = await self.store.commit(guards, writes, timeout_s)
        await asyncio.sleep(self.one_way_s)
        return commit

    @asynccontextmanager
    async def watch(self, start: bytes, end: bytes, *, after: int) -> AsyncIterator[WatchStream]:
        async with self.store.watch(start, end, after=after) as stream:
            yield _Far(stream, self.one_way_s)


class _Far:
    """A watch in which every batch comes `late_s` later."""

    def __init__(self, stream: WatchStream, late_s: float) -> None:
        self._stream, self._late_s = stream, late_s

    async def __aiter__(self) -> AsyncIterator[Batch]:
        loop = asyncio.get_running_loop()
        under_way: asyncio.Queue[tuple[float, Batch]] = asyncio.Queue()

        async def send() -> None:
            async for batch in self._stream:
                under_way.put_nowait((loop.time() + self._late_s, batch))

        sending = asyncio.create_task(send())
        try:
            while True:
                arrives_at, batch = await under_way.get()
                await asyncio.sleep(arrives_at - loop.time())
                yield batch
        finally:
            sending.cancel()


async def write_batches(simulation: Simulation, store: MemoryStore, a_second: float) -> None:
    """Write batches of heartbeats of no agent at random moments, as 48 replicas do."""
    value = storage_pb2.BeatBatch(batch_id=1).SerializeToString()
    while True:
        await asyncio.sleep(simulation.rng.expovariate(a_second))
        key = f"/hq/v1/beats/replica-x{simulation.rng.randrange(48)}".encode()
        await store.commit((), (Write((), ((key, value),)),), 1)


async def until_due(simulation: Simulation, agent: Agent) -> float:
    """Wait until 2 s before the agent's deadline; return the deadline."""
    due_s = agent.last_report + TIMEOUT_S + LivenessTimes().flush_s
    await asyncio.sleep(due_s - 2 - simulation.now)
    return due_s


@pytest.mark.parametrize("silent", [1, pytest.param(300, marks=pytest.mark.long)])
@in_virtual_time
async def test_240_batches_a_second_30_ms_away_make_an_expiry_hardly_later(silent: int) -> None:
    """Plain retries would be minutes late: only one in 1,300 falls into 30 ms without a batch."""
    far = FarStore(MemoryStore(), random.Random(1))
    async with Simulation(timeout_s=TIMEOUT_S, interval_s=INTERVAL_S, connect=lambda: far) as simulation:
        await simulation.start_replica()
        await simulation.add_agents(silent, 2)  # too few nodes for the guard
        for agent in simulation.agents:
            agent.fall_silent()
        due_s = await until_due(simulation, max(simulation.agents, key=lambda agent: agent.last_report))
        writing = asyncio.create_task(write_batches(simulation, far.store, 240))
        while len(simulation.expiries()) < silent:
            await asyncio.sleep(0.05)
        writing.cancel()
        assert simulation.now - due_s < 3


@pytest.mark.long
@in_virtual_time
async def test_many_revisions_expire_after_one_knock() -> None:
    """With a knock for each, a fifth of 200,000 revisions would take minutes: knocks are as rare as batches."""
    async with Simulation(timeout_s=TIMEOUT_S, interval_s=INTERVAL_S) as simulation:
        replica = (await simulation.start_replica()).registry.replica
        await simulation.add_agents(600, 2)  # too few nodes for the guard
        for agent in simulation.agents:
            agent.fall_silent()
        replica.tracker.start(replica.cache.entries(), "all at once")
        await asyncio.sleep(TIMEOUT_S + 3)
        assert len(simulation.expiries()) == 600
        assert simulation.expiries()[-1].at_s - simulation.expiries()[0].at_s < 0.5


@asynccontextmanager
async def one_voided() -> AsyncIterator[tuple[Simulation, Agent, Expiries]]:
    """A silent agent whose last report the first step has voided, and the expiries of a replica that has seen it."""
    async with Simulation(timeout_s=TIMEOUT_S, interval_s=INTERVAL_S) as simulation:
        replica = (await simulation.start_replica()).registry.replica
        await simulation.start_replica()
        await simulation.add_agents(1, 1)
        [agent] = simulation.agents
        agent.fall_silent()
        expiries = replica.liveness.sweep._expiries
        assert await expiries.write([agent.key], "test", in_two_steps=True) == {agent.key: ExpiryOutcome.VOIDED}
        for running in simulation.replicas:
            await running.registry.replica.fence.wait_for_fence()
        yield simulation, agent, expiries


@in_virtual_time
async def test_the_first_step_changes_neither_readiness_nor_silence() -> None:
    async with one_voided() as (simulation, agent, _):
        for running in simulation.replicas:
            replica = running.registry.replica
            entry = replica.cache.get(agent.key.instance_id)
            assert entry is not None
            assert entry.traits.ready
            heard_s = replica.tracker.deadlines.silence_s(agent.key, simulation.now)
            assert heard_s == pytest.approx(simulation.now - agent.last_report, abs=1)
        assert simulation.changes == []


@in_virtual_time
async def test_a_report_after_the_first_step_prevents_the_second() -> None:
    async with one_voided() as (simulation, agent, expiries):
        commit = expiries._commit

        async def after_it(*expiry: Any) -> ExpiryOutcome:
            await agent._report()
            return await commit(*expiry)

        expiries._commit = after_it  # type: ignore[method-assign, assignment]
        assert await expiries.write([agent.key], "test", in_two_steps=True) == {agent.key: ExpiryOutcome.CHANGED}
        await asyncio.sleep(TIMEOUT_S - 1)
        assert simulation.changes == []


@in_virtual_time
async def test_a_voided_report_counts_when_it_is_sent_again() -> None:
    """With its old sequence: an agent whose answer was lost repeats it."""
    async with one_voided() as (simulation, agent, _):
        agent._sequence -= 1
        await asyncio.sleep(TIMEOUT_S / 2)
        await agent._report()
        for running in simulation.replicas:
            deadlines = running.registry.replica.tracker.deadlines
            await running.registry.replica.fence.wait_for_fence()
            assert (deadlines.silence_s(agent.key, simulation.now) or 0) < 1


@in_virtual_time
async def test_a_heartbeat_by_a_replica_that_has_not_seen_the_first_step_is_stored_as_a_status() -> None:
    async with Simulation(timeout_s=TIMEOUT_S, interval_s=INTERVAL_S) as simulation:
        sweeping, behind = await simulation.start_replica(), await simulation.start_replica()
        await simulation.add_agents(1, 1)
        [agent] = simulation.agents
        agent.fall_silent()
        expiries = sweeping.registry.replica.liveness.sweep._expiries
        behind.link.hold_watch()
        assert await expiries.write([agent.key], "test", in_two_steps=True) == {agent.key: ExpiryOutcome.VOIDED}
        agent._registry = behind.registry
        reporting = asyncio.create_task(agent._report())
        while not await batches_of(simulation, behind):
            await asyncio.sleep(0.1)
        await sweeping.registry.replica.fence.wait_for_fence()
        behind.link.release_watch()
        await reporting
        assert await expiries.write([agent.key], "test", in_two_steps=True) == {agent.key: ExpiryOutcome.VOIDED}
        assert simulation.changes == []


async def batches_of(simulation: Simulation, running: Running) -> bool:
    """Whether the replica has written heartbeats."""
    key = f"/hq/v1/beats/{running.registry.replica.config.replica}".encode()
    batch, _ = await simulation.store.get(key)
    return batch is not None and bool(storage_pb2.BeatBatch.FromString(batch.value).uid)
