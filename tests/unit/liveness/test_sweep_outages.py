"""HQ over simulated hours: outages never expire who reports, and true silence is expired in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.support.simulation import Simulation
from tests.support.virtual_time import VirtualLoop, run_virtually

QUIET_S = 680.0  # after something: whoever it might have cost its life would have been expired by now
AGENTS, NODES = 15, 3  # too few for the guard, which would only hide false expiries


def simulated(scene: Callable[[Simulation], Awaitable[None]], replicas: int = 1, seed: int = 1) -> Simulation:
    """Run the scene after replicas and agents have settled."""

    async def main() -> Simulation:
        async with Simulation(seed) as simulation:
            for _ in range(replicas):
                await simulation.start_replica()
            await simulation.add_agents(AGENTS, NODES)
            await asyncio.sleep(200)  # each has reported twice
            await scene(simulation)
        return simulation

    return run_virtually(main)


@pytest.mark.parametrize("outages_s", [(1, 5, 6, 170), pytest.param((30, 30, 700, 700, 1_800), marks=pytest.mark.long)])
def test_an_outage_of_the_store_expires_nobody(outages_s: tuple[float, ...]) -> None:
    async def scene(simulation: Simulation) -> None:
        for outage_s in outages_s:
            await simulation.outage(outage_s)
            await asyncio.sleep(QUIET_S)

    assert simulated(scene).changes == []


@pytest.mark.long
@pytest.mark.parametrize("outage_s", [60, 1_800])
def test_an_outage_of_the_store_under_five_replicas_expires_nobody(outage_s: float) -> None:
    async def scene(simulation: Simulation) -> None:
        await simulation.outage(outage_s)
        await asyncio.sleep(QUIET_S)

    assert simulated(scene, replicas=5, seed=int(outage_s)).changes == []


@pytest.mark.long
def test_outages_that_come_again_and_again_expire_nobody() -> None:
    async def scene(simulation: Simulation) -> None:
        for _ in range(30):
            await simulation.outage(simulation.rng.uniform(1, 90))
            await asyncio.sleep(simulation.rng.uniform(5, 60))

    assert simulated(scene).changes == []


@pytest.mark.long
def test_a_replica_that_crashes_and_comes_back_expires_nobody() -> None:
    async def scene(simulation: Simulation) -> None:
        for down_s in (1, 60, 1_800):
            await simulation.stop_replica(simulation.replicas[0])
            await asyncio.sleep(down_s)
            await simulation.start_replica()
            await asyncio.sleep(QUIET_S)

    assert simulated(scene).changes == []


@pytest.mark.long
def test_replicas_replaced_one_after_the_other_expire_nobody() -> None:
    async def scene(simulation: Simulation) -> None:
        for _ in range(3):
            await simulation.stop_replica(simulation.replicas[0])
            await asyncio.sleep(20)
            await simulation.start_replica()
            await asyncio.sleep(100)
        await asyncio.sleep(600)

    assert simulated(scene, replicas=3).changes == []


@pytest.mark.long
def test_a_crash_during_an_outage_expires_nobody() -> None:
    async def scene(simulation: Simulation) -> None:
        for replica in simulation.replicas:
            replica.link.cut()
        await asyncio.sleep(400)
        await simulation.stop_replica(simulation.replicas[0])
        for replica in simulation.replicas:
            replica.link.mend()
        await simulation.start_replica()
        await asyncio.sleep(QUIET_S)

    assert simulated(scene, replicas=2).changes == []


@pytest.mark.parametrize("cut_off", [1, pytest.param(3, marks=pytest.mark.long)])
def test_replicas_cut_off_from_the_store_expire_nobody(cut_off: int) -> None:
    async def scene(simulation: Simulation) -> None:
        await simulation.outage(900, simulation.replicas[:cut_off])
        await asyncio.sleep(700)

    assert simulated(scene, replicas=3).changes == []


def test_a_machine_that_was_suspended_expires_nobody() -> None:
    async def scene(simulation: Simulation) -> None:
        for jump_s in (4, 60, 1_800):
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.jump(jump_s)
            await asyncio.sleep(QUIET_S)

    assert simulated(scene).changes == []


@pytest.mark.long
def test_a_watch_that_is_held_back_expires_nobody() -> None:
    async def scene(simulation: Simulation) -> None:
        simulation.replicas[0].link.hold_watch()
        await asyncio.sleep(QUIET_S)
        simulation.replicas[0].link.release_watch()
        await asyncio.sleep(700)

    assert simulated(scene, replicas=2).changes == []


@pytest.mark.parametrize("replicas", [1, 5])
def test_true_silence_is_expired_between_ten_and_eleven_minutes(replicas: int) -> None:
    async def scene(simulation: Simulation) -> None:
        for agent in simulation.agents[:5]:
            await asyncio.sleep(30)
            agent.fall_silent()
        await asyncio.sleep(700)

    simulation = simulated(scene, replicas)
    assert len(simulation.changes) == 5
    for agent in simulation.agents[:5]:
        [expiry] = simulation.expiries(agent)
        assert 600 <= expiry.at_s - agent.last_report <= 660


@pytest.mark.long
def test_a_clock_a_day_off_changes_nothing() -> None:
    async def main() -> Simulation:
        async with Simulation() as simulation:
            for off_s in (0, 86_400, -86_400):
                await simulation.start_replica(clock_off_s=off_s)
            await simulation.add_agents(AGENTS, NODES)
            simulation.agents[0].fall_silent()
            await asyncio.sleep(2_000)
        return simulation

    simulation = run_virtually(main)
    [expiry] = simulation.changes
    assert expiry.key == simulation.agents[0].key
    assert 600 <= expiry.at_s - simulation.agents[0].last_report <= 660


@pytest.mark.parametrize("outage_s", [30, 1_800])
def test_an_outage_delays_an_expiry_by_at_most_its_length_and_one_chance_to_report(
    outage_s: float,
) -> None:
    async def scene(simulation: Simulation) -> None:
        simulation.agents[0].fall_silent()
        await asyncio.sleep(200)
        await simulation.outage(outage_s)
        await asyncio.sleep(QUIET_S)

    simulation = simulated(scene)
    [expiry] = simulation.changes
    assert expiry.key == simulation.agents[0].key
    assert 600 + outage_s <= expiry.at_s - simulation.agents[0].last_report <= 660 + outage_s + 190


def test_with_short_gaps_all_the_time_true_silence_is_expired_all_the_same() -> None:
    async def scene(simulation: Simulation) -> None:
        simulation.agents[0].fall_silent()
        for _ in range(150):
            await simulation.outage(8)
            await asyncio.sleep(12)
            if simulation.expiries():
                break

    simulation = simulated(scene)
    [expiry] = simulation.changes
    assert expiry.key == simulation.agents[0].key


def test_an_agent_that_comes_back_is_ready_with_its_first_report() -> None:
    async def scene(simulation: Simulation) -> None:
        agent = simulation.agents[0]
        agent.fall_silent()
        await asyncio.sleep(700)
        assert len(simulation.expiries(agent)) == 1
        agent.silent = False
        await asyncio.sleep(200)
        assert [change.expired for change in simulation.changes] == [True, False]
        agent.silent = True

    simulated(scene, replicas=2)
