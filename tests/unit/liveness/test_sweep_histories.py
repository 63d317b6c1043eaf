"""Random simulated hours of cuts, crashes, pauses and silences: nobody is expired wrongly, and the silent all are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest

from serving.errors import ServiceError
from tests.support.simulation import Simulation, Times
from tests.support.virtual_time import VirtualLoop, run_virtually

AGENTS, NODES = 12, 3  # too few for the guard, which would only hide false expiries


async def cut_some(simulation: Simulation) -> None:
    some = simulation.rng.sample(simulation.replicas, simulation.rng.randint(1, len(simulation.replicas)))
    await simulation.outage(simulation.rng.choice([2, 8, 40, 200, 900]), some)


async def hold_back_a_watch(simulation: Simulation) -> None:
    link = simulation.rng.choice(simulation.replicas).link
    link.hold_watch()
    await asyncio.sleep(simulation.rng.choice([1, 10, 300]))
    link.release_watch()


async def crash_one(simulation: Simulation) -> None:
    await simulation.stop_replica(simulation.rng.choice(simulation.replicas))
    await asyncio.sleep(simulation.rng.choice([1, 100, 700]))
    await simulation.start_replica(clock_off_s=simulation.rng.choice([0, 86_400, -86_400]))


async def suspend_the_machine(simulation: Simulation) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.jump(simulation.rng.choice([3, 30, 1_000]))


async def silence_one(simulation: Simulation) -> None:
    reporting = [agent for agent in simulation.agents if not agent.silent]
    if len(reporting) > 6:
        simulation.rng.choice(reporting).fall_silent()


async def change_times(simulation: Simulation) -> None:
    """Histories of agents that report or are silent, through replicas that may be cut off from the store."""
    for agent in simulation.rng.sample(simulation.agents, 3):
        with suppress(ServiceError):
            await simulation.change_times(agent, simulation.rng.choice(TIMES))


DEEDS = [cut_some, hold_back_a_watch, crash_one, suspend_the_machine, silence_one]
TIMES: list[Times] = [None, (20.0, 60.0), (60.0, 240.0), (900.0, 2_700.0)]


async def play(simulation: Simulation, deeds: Sequence[Callable[[Simulation], Awaitable[None]]]) -> None:
    for _ in range(12):
        await simulation.rng.choice(deeds)(simulation)
        await asyncio.sleep(simulation.rng.choice([0.3, 4, 50, 400]))


def check(simulation: Simulation) -> None:
    assert simulation.false_expiries() == []
    expired = [change.key for change in simulation.changes]
    assert sorted(expired) == sorted(agent.key for agent in simulation.agents if agent.silent)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 5))])
def test_in_any_history_exactly_the_silent_agents_are_expired(seed: int) -> None:
    async def main() -> Simulation:
        async with Simulation(seed) as simulation:
            for _ in range(1 + seed % 3):
                await simulation.start_replica()
            await simulation.add_agents(AGENTS, NODES)
            await play(simulation, DEEDS)
            await asyncio.sleep(900)
        return simulation

    check(run_virtually(main))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 8))])
def test_with_changing_times_exactly_the_silent_agents_are_expired(seed: int) -> None:
    async def main() -> Simulation:
        async with Simulation(seed) as simulation:
            for _ in range(1 + seed % 3):
                await simulation.start_replica()
            await asyncio.sleep(5)  # each says that it knows such times
            await simulation.add_agents(AGENTS, NODES, TIMES)
            before = [agent.interval_s for agent in simulation.agents]
            await play(simulation, [*DEEDS, *[change_times] * len(DEEDS)])
            await asyncio.sleep(3_700)
            assert [agent.interval_s for agent in simulation.agents] != before
        return simulation

    check(run_virtually(main))
