"""Silence outlives restarts: replicas that restart faster than the timeout expire exactly the dead."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.simulation import Running, Simulation
from tests.support.virtual_time import in_virtual_time, run_virtually

LIFE_S, TIMEOUT_S, GRACE_S = 540.0, 600.0, 190.0
TICK_S = 15.0  # what may pass until the record is written


async def restart(simulation: Simulation, down_s: float = 1.0) -> Running:
    """Crash all replicas, and start one again after `down_s`."""
    for running in list(simulation.replicas):
        await simulation.stop_replica(running)
    await asyncio.sleep(down_s)
    return await simulation.start_replica()


@pytest.mark.parametrize("down_s", [1.0, 3_000.0])
def test_replicas_that_restart_every_nine_minutes_expire_only_the_silent_agent(down_s: float) -> None:
    async def main() -> tuple[Simulation, float, float]:
        async with Simulation(compact_every_s=300.0) as simulation:
            await simulation.start_replica()
            await simulation.add_agents(8, 3)
            dead = simulation.agents[0]
            dead.fall_silent()
            began, presence_s = simulation.now, 0.0
            for _ in range(4):
                await asyncio.sleep(LIFE_S)
                presence_s += LIFE_S
                if simulation.expiries(dead):
                    break
                await restart(simulation, down_s)
            await asyncio.sleep(5)
            return (
                simulation,
                simulation.expiries(dead)[0].at_s - began if simulation.expiries(dead) else 0.0,
                presence_s,
            )

    simulation, expired_s, _ = run_virtually(main)
    assert simulation.false_expiries() == []
    assert 0 < expired_s - down_s <= TIMEOUT_S + GRACE_S + TICK_S, "one restart costs an interval and a retry at most"


@pytest.mark.long
@in_virtual_time
async def test_replicas_that_live_hardly_longer_than_an_interval_and_a_retry_expire_the_dead() -> None:
    async with Simulation(compact_every_s=300.0) as simulation:
        await simulation.start_replica()
        await simulation.add_agents(8, 3)
        dead = simulation.agents[0]
        dead.fall_silent()
        for _ in range(12):
            await asyncio.sleep(GRACE_S + 2 * TICK_S)
            await restart(simulation)
        assert simulation.expiries(dead)
        assert simulation.false_expiries() == []


@in_virtual_time
async def test_time_without_hq_does_not_count_as_silence() -> None:
    async with Simulation(compact_every_s=300.0) as simulation:
        await simulation.start_replica()
        await simulation.add_agents(8, 3)
        dead = simulation.agents[0]
        dead.fall_silent()
        await asyncio.sleep(300)
        await restart(simulation, down_s=3_000.0)
        await asyncio.sleep(GRACE_S + 20)
        assert simulation.expiries() == []
        await asyncio.sleep(TIMEOUT_S - 300)
        assert [expiry.key for expiry in simulation.expiries()] == [dead.key]


@in_virtual_time
async def test_a_start_goes_on_with_the_hold_of_the_guard() -> None:
    async with Simulation(compact_every_s=300.0) as simulation:
        await simulation.start_replica()
        await simulation.add_agents(20, 5)
        for agent in simulation.agents[:10]:
            agent.fall_silent()
        await asyncio.sleep(500)
        assert simulation.any_registry().admin.guard().holding
        await restart(simulation)
        await asyncio.sleep(TIMEOUT_S - 70)
        assert {expiry.key for expiry in simulation.expiries()} == {agent.key for agent in simulation.agents[:10]}


@in_virtual_time
async def test_a_start_remembers_how_much_the_door_has_excused() -> None:
    async with Simulation(compact_every_s=300.0) as simulation:
        running = await simulation.start_replica()
        await simulation.add_agents(4, 3)
        running.registry.replica.liveness.reachability.door.used_s = 250.0
        await asyncio.sleep(2 * TICK_S)
        running = await restart(simulation)
        assert 200 < running.registry.replica.liveness.reachability.door.used_s <= 250


@in_virtual_time
async def test_a_report_heard_in_the_replay_counts() -> None:
    """The agent reports, and the replica ends before its record of silences includes that."""
    async with Simulation(compact_every_s=300.0) as simulation:
        running = await simulation.start_replica()
        await simulation.add_agents(4, 3)
        late = simulation.agents[0]
        late.fall_silent()
        await asyncio.sleep(500)
        late.silent = False
        while late.last_report < late.silent_since + 500:
            await asyncio.sleep(0.05)
        late.fall_silent()
        heard = late.last_report
        await simulation.stop_replica(running)
        await simulation.start_replica()
        await asyncio.sleep(TIMEOUT_S - 20)
        assert simulation.now - heard < TIMEOUT_S
        assert not simulation.expiries()


@in_virtual_time
async def test_heartbeats_after_a_checkpoint_are_not_lost_by_starting_from_it(tmp_path: Path) -> None:
    async with Simulation(compact_every_s=300.0, checkpoint=str(tmp_path / "checkpoint")) as simulation:
        first, second = [await simulation.start_replica() for _ in range(2)]
        await simulation.add_agents(4, 3)
        late = simulation.agents[0]
        late.fall_silent()
        await asyncio.sleep(500)
        await simulation.stop_replica(first)
        first.registry.replica.save()
        late.silent = False
        while late.last_report < late.silent_since + 500:
            await asyncio.sleep(0.05)
        late.fall_silent()
        await simulation.stop_replica(second)
        await simulation.start_replica()
        await asyncio.sleep(TIMEOUT_S - 20)
        assert not simulation.expiries()


@in_virtual_time
async def test_nothing_is_stored_while_nobody_is_silent() -> None:
    async with Simulation(compact_every_s=300.0) as simulation:
        await simulation.start_replica()
        await simulation.add_agents(4, 3)
        await asyncio.sleep(1_000)
        assert not [
            change.key
            for batch in simulation.store._log
            for change in batch.changes
            if change.key.startswith(b"/hq/v1/silence/")
        ]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
def test_under_any_short_lives_exactly_the_silent_agents_expire(seed: int) -> None:
    async def main() -> Simulation:
        async with Simulation(seed, compact_every_s=300.0) as simulation:
            rng = simulation.rng
            for _ in range(1 + seed % 2):
                await simulation.start_replica()
            await simulation.add_agents(8, 3)
            for agent in rng.sample(simulation.agents, 2):
                agent.fall_silent()
            for _ in range(10):
                await asyncio.sleep(rng.uniform(50, 560))
                if rng.random() < 0.3:
                    await simulation.outage(rng.choice([2, 40, 300]))
                await simulation.stop_replica(rng.choice(simulation.replicas))
                await asyncio.sleep(rng.choice([0.5, 20, 700]))
                await simulation.start_replica(clock_off_s=rng.choice([0, 86_400, -86_400]))
            await asyncio.sleep(TIMEOUT_S + GRACE_S)
        return simulation

    simulation = run_virtually(main)
    assert simulation.false_expiries() == []
    assert {agent.key for agent in simulation.agents if agent.silent} == {c.key for c in simulation.expiries()}
