"""Liveness at the stated amounts: a thousand agents, twenty outages of HQ, etcd or both, and silence among them.

Virtual time plays hours in seconds; over a real etcd the same plays take minutes, with short timeouts. Agents live on
two nodes where no expiry may be hidden by the guard, which wants three; on ten where the guard itself is looked at.
"""

from __future__ import annotations

import asyncio

import pytest

from hqpb.v1 import service_pb2 as pb
from tests.support.outages import drawn, of_one_replica_s_way, of_the_store
from tests.support.simulation import Agent, Simulation
from tests.support.virtual_time import run_virtually

TIMEOUT_S, LATEST_S, INTERVAL_S = 600.0, 660.0, 180.0


async def settled(simulation: Simulation, agents: int, nodes: int) -> None:
    for _ in range(3):
        await simulation.start_replica()
    await simulation.add_agents(agents, nodes)
    await asyncio.sleep(TIMEOUT_S + INTERVAL_S)
    assert simulation.expiries() == []


def silence(simulation: Simulation, count: int) -> list[Agent]:
    """Some that still speak fall silent."""
    chosen = [agent for agent in simulation.agents if not agent.silent][:count]
    for agent in chosen:
        agent.fall_silent()
    return chosen


def silences_s(simulation: Simulation, agents: list[Agent]) -> list[float]:
    """For how long each was silent when it was expired; each was expired once."""
    expiries = [simulation.expiries(agent) for agent in agents]
    assert [len(each) for each in expiries] == [1] * len(agents)
    return [expiry.at_s - agent.last_report for agent, (expiry,) in zip(agents, expiries, strict=True)]


def play_outages(agents: int, outages: int, seed: int, longest_s: float = 1_800.0) -> None:
    async def main() -> None:
        async with Simulation(seed) as simulation:
            await settled(simulation, agents, nodes=2)
            in_time: list[Agent] = []
            during: list[Agent] = []
            for number, (outage, seconds) in enumerate(drawn(simulation.rng, outages, 1.0, longest_s)):
                if number % 5 == 2:
                    during += silence(simulation, 1)
                await outage(simulation, seconds)
                await asyncio.sleep(TIMEOUT_S + 2 * INTERVAL_S)
                if number % 5 == 4:
                    in_time += silence(simulation, 1)
                    await asyncio.sleep(LATEST_S + 10)
            await asyncio.sleep(2 * TIMEOUT_S)
            assert simulation.false_expiries() == []
            assert len(simulation.changes) == len(in_time) + len(during)
            assert all(TIMEOUT_S <= each <= LATEST_S for each in silences_s(simulation, in_time))
            # Silent through an outage: later by that and a chance to be heard after it, not for ever.
            assert all(each >= TIMEOUT_S for each in silences_s(simulation, during))

    run_virtually(main)


@pytest.mark.long
def test_through_five_outages_ten_agents_have_no_false_expiry_and_every_true_one_in_time() -> None:
    play_outages(agents=10, outages=5, seed=1, longest_s=300.0)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.night) for seed in (2, 3))])
def test_through_twenty_outages_a_thousand_agents_have_no_false_expiry_and_every_true_one_in_time(seed: int) -> None:
    play_outages(agents=1_000, outages=20, seed=seed)


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_replica_cut_off_for_longer_than_a_short_timeout_expires_nobody_who_asks_elsewhere(seed: int) -> None:
    async def main() -> None:
        async with Simulation(seed, timeout_s=10.0, interval_s=3.0) as simulation:
            for _ in range(3):
                await simulation.start_replica()
            await simulation.add_agents(30, 2)
            await asyncio.sleep(20.0 + simulation.rng.uniform(0, 3))
            await of_one_replica_s_way(simulation, 15.0)
            await asyncio.sleep(20.0)
            assert simulation.expiries() == []

    run_virtually(main)


def play_guard(agents: int, *, released: bool) -> None:
    """A third of the agents dies with its nodes, while etcd is away: is that HQ's fault or theirs?"""

    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation, agents, nodes=10)
            silent = silence(simulation, agents // 3)
            await of_the_store(simulation, 60)
            await asyncio.sleep(TIMEOUT_S + INTERVAL_S)
            registry = simulation.any_registry()
            assert registry.admin.guard().holding
            assert simulation.expiries() == []
            latest_s = LATEST_S + 60 + INTERVAL_S + 60 + TIMEOUT_S
            if released:
                # An agent may have fallen silent right before its next report was due.
                latest_s = INTERVAL_S + 60 + (TIMEOUT_S + INTERVAL_S) + 60
                kind = pb.GUARD_OVERRIDE_KIND_RELEASE
                await registry.admin.order_guard(kind, 3_600_000, "ann", "they are gone", simulation.now + 5)
                await asyncio.sleep(60)
            else:
                await asyncio.sleep(TIMEOUT_S)
            assert max(silences_s(simulation, silent)) <= latest_s
            assert simulation.false_expiries() == []

    run_virtually(main)


@pytest.mark.long
@pytest.mark.parametrize("released", [False, True], ids=["bounded", "released"])
def test_the_guard_holds_a_third_of_all_expiries_for_one_timeout_or_until_it_is_released(released: bool) -> None:
    play_guard(45, released=released)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("released", [False, True], ids=["bounded", "released"])
def test_the_guard_holds_hundreds_of_expiries_for_one_timeout_or_until_it_is_released(released: bool) -> None:
    play_guard(1_000, released=released)


def play_short_gaps(agents: int, gap_s: float, pause_s: float) -> list[float]:
    """Gaps all the time; the silences of five that are expired all the same, within two hours."""

    async def main() -> list[float]:
        async with Simulation() as simulation:
            await settled(simulation, agents, nodes=2)
            silent = silence(simulation, 5)
            ends = simulation.now + 7_200
            while simulation.now < ends and len(simulation.expiries()) < len(silent):
                await simulation.outage(gap_s)
                await asyncio.sleep(pause_s)
            assert simulation.false_expiries() == []
            return silences_s(simulation, silent)

    return run_virtually(main)


@pytest.mark.long
@pytest.mark.parametrize(("gap_s", "pause_s"), [(8, 12)])
def test_gaps_all_the_time_never_postpone_an_expiry_for_ever(gap_s: float, pause_s: float) -> None:
    # What counts is the time in which HQ was there to hear: a gap takes away itself and some seconds around it.
    assert max(play_short_gaps(10, gap_s, pause_s)) <= 4 * TIMEOUT_S


@pytest.mark.long
@pytest.mark.timeout(900)
def test_among_a_thousand_agents_gaps_all_the_time_never_postpone_an_expiry_for_ever() -> None:
    assert max(play_short_gaps(1_000, 8, 12)) <= 4 * TIMEOUT_S
