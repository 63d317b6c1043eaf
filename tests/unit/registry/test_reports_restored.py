"""Agents after a restore of the store: one that began after the backup is not fenced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hq.errors import Fenced, NotBegun
from hq.liveness.deadlines import RevisionKey
from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from store.memory import MemoryStore
from tests.support.backups import restored, saved
from tests.support.sample_instances import instance
from tests.support.simulated_agents import Reporter
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time

Meanwhile = Callable[[Simulation, Registry], Awaitable[object]]


async def taken_back(simulation: Simulation, registry: Registry, since: Callable[[], Awaitable[object]]) -> None:
    """Make a backup, run `since`, and restore the backup."""
    file = await saved(simulation.store)
    await since()
    await restored(simulation.store, file, replace=True)
    await asyncio.sleep(5)
    assert registry.replica.loading.loaded.is_set()


async def two_agents(simulation: Simulation, registry: Registry) -> list[Reporter]:
    """Agents of the two revisions of one instance; both have reported."""
    made = instance("a", revisions=("r1", "r2", "r3"))
    await registry.writes.create(made, "", simulation.now + 5, validate_only=False)
    agents = [Reporter(simulation, "a", revision) for revision in ("r1", "r2")]
    for agent in agents:
        await agent.begin(registry)
        await agent.report(registry)
    await Reporter(simulation, "a", "r3").begin(registry)
    return agents


async def begin_anew(agents: list[Reporter], registry: Registry) -> None:
    for agent in agents:
        agent.sequence = 0
        await agent.begin(registry)
        await agent.report(registry)


async def nothing(_: Simulation, __: Registry) -> None:
    """Does nothing meanwhile."""


async def a_revision_goes(simulation: Simulation, registry: Registry) -> None:
    await registry.writes.delete_revision("a", "r3", Precondition(), simulation.now + 5)


async def all_are_silent(simulation: Simulation, registry: Registry) -> None:
    await asyncio.sleep(700)
    assert len(simulation.expiries()) == 2


@pytest.mark.parametrize("meanwhile", [nothing, a_revision_goes, all_are_silent])
def test_an_agent_that_began_after_the_backup_must_begin_again_and_not_stop(meanwhile: Meanwhile) -> None:
    """FENCED would make it stop its processes: a restore would stop whatever was started since the backup."""

    @in_virtual_time
    async def play() -> None:
        async with Simulation() as simulation:
            registry = (await simulation.start_replica()).registry
            agents = await two_agents(simulation, registry)
            await taken_back(simulation, registry, lambda: begin_anew(agents, registry))
            await meanwhile(simulation, registry)
            for agent in agents:
                with pytest.raises(NotBegun):
                    await agent.report(registry)
                await begin_anew([agent], registry)

    play()


@in_virtual_time
async def test_an_agent_that_began_after_a_snapshot_of_etcd_must_begin_again_too() -> None:
    async with Simulation() as simulation:
        replica = await simulation.start_replica()
        registry, before = replica.registry, replica.registry.replica.epoch.current
        agents = await two_agents(simulation, registry)
        store, snapshot = simulation.store, MemoryStore()
        snapshot._revision = store._revision
        snapshot._live = store._past_state(store._revision)
        snapshot._log = list(store._log)
        await begin_anew(agents, registry)
        await asyncio.sleep(5)
        replica.link._store = snapshot
        store.disconnect()
        await asyncio.sleep(5)
        assert registry.replica.epoch.current != before
        for agent in agents:
            with pytest.raises(NotBegun):
                await agent.report(registry)
            await begin_anew([agent], registry)


@in_virtual_time
async def test_an_agent_that_has_reported_since_before_the_backup_goes_on_as_if_nothing_had_happened() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        agents = await two_agents(simulation, registry)
        await taken_back(simulation, registry, lambda: agents[0].report(registry, "news"))
        await agents[0].report(registry, "news")
        await agents[0].report(registry, "more news")


@in_virtual_time
async def test_an_agent_that_begins_after_a_restore_fences_earlier_ones() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        first, _ = agents = await two_agents(simulation, registry)
        await taken_back(simulation, registry, lambda: begin_anew(agents, registry))
        await Reporter(simulation, "a", "r1").begin(registry)
        with pytest.raises(Fenced):
            await first.report(registry)


@in_virtual_time
async def test_forgetting_a_reporter_renews_no_deadline() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        first, _ = agents = await two_agents(simulation, registry)
        await taken_back(simulation, registry, lambda: begin_anew(agents, registry))
        await asyncio.sleep(100)
        deadlines = registry.replica.tracker.deadlines
        before = deadlines.deadline(RevisionKey("a", "r2"))
        await begin_anew([first], registry)
        assert deadlines.deadline(RevisionKey("a", "r2")) == before
