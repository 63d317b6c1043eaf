"""The guard and the operators' orders over simulated hours: what is held, for how long, and how it goes ahead."""

from __future__ import annotations

import asyncio

import pytest

from hq.registry.preconditions import Precondition
from hqpb.v1 import admin_pb2, service_pb2
from tests.support.simulation import Agent, Simulation
from tests.support.virtual_time import run_virtually

NO_DEMAND = Precondition()
RELEASE, FORCE = service_pb2.GUARD_OVERRIDE_KIND_RELEASE, service_pb2.GUARD_OVERRIDE_KIND_FORCE


async def settled(simulation: Simulation, replicas: int = 1, agents: int = 40, nodes: int = 10) -> None:
    for _ in range(replicas):
        await simulation.start_replica()
    await simulation.add_agents(agents, nodes)
    await asyncio.sleep(200)


def silence(agents: list[Agent]) -> list[Agent]:
    for agent in agents:
        agent.fall_silent()
    return agents


def silences_s(simulation: Simulation, agents: list[Agent]) -> list[float]:
    """For how long each agent was silent when it was expired, in seconds."""
    return [expiry.at_s - agent.last_report for agent in agents for expiry in simulation.expiries(agent)]


async def order(simulation: Simulation, kind: int, seconds: float) -> service_pb2.GuardState:
    admin = simulation.any_registry().admin
    return await admin.order_guard(kind, round(seconds * 1000), "ann", "drill", simulation.now + 5)


async def suspend(simulation: Simulation, node: str, seconds: float) -> admin_pb2.Suspension:
    admin = simulation.any_registry().admin
    return await admin.suspend(node, round(seconds * 1000), "ann", "new disks", simulation.now + 5)


def test_when_30_percent_fall_silent_expiries_wait_for_one_timeout_and_then_go_ahead() -> None:
    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation, replicas=3)
            silent = silence(simulation.agents[:12])
            await asyncio.sleep(620)
            assert simulation.expiries() == []
            for replica in simulation.replicas:
                guard = replica.registry.admin.guard()
                assert (guard.holding, guard.expected, guard.silent) == (True, 40, 12)
                assert 1 <= guard.waiting <= 12
                assert guard.until.ToMilliseconds() > guard.since.ToMilliseconds()
            await asyncio.sleep(700)
            assert len(silences_s(simulation, silent)) == 12
            assert max(silences_s(simulation, silent)) <= 1_260
            assert simulation.false_expiries() == []
            verdicts = {t.condition.receipt.guard_verdict for t in simulation.any_registry().admin.transitions("", 100)}
            assert all("held for 600 s already" in verdict for verdict in verdicts)

    run_virtually(main)


@pytest.mark.long
def test_an_agent_that_returns_while_the_guard_holds_stays_ready() -> None:
    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation)
            silent = silence(simulation.agents[:12])
            await asyncio.sleep(650)
            for agent in silent:
                agent.silent = False
            await asyncio.sleep(400)
            assert simulation.changes == []
            assert not simulation.any_registry().admin.guard().holding

    run_virtually(main)


@pytest.mark.long
def test_after_a_release_silent_agents_expire_at_their_deadline() -> None:
    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation, replicas=3)
            silent = silence(simulation.agents[:12])
            await asyncio.sleep(390)
            state = await order(simulation, RELEASE, 3_600)
            assert state.override.by == "ann"
            await asyncio.sleep(300)
            assert len(silences_s(simulation, silent)) == 12
            assert max(silences_s(simulation, silent)) <= 660

    run_virtually(main)


@pytest.mark.long
def test_a_force_holds_even_one_expiry_until_it_ends() -> None:
    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation, replicas=2)
            await order(simulation, FORCE, 1_000)
            silent = silence(simulation.agents[:1])
            await asyncio.sleep(900)
            assert simulation.expiries() == []
            assert all(r.registry.admin.guard().holding for r in simulation.replicas)
            await asyncio.sleep(200)
            assert len(silences_s(simulation, silent)) == 1

    run_virtually(main)


@pytest.mark.long
def test_a_sweep_obeys_an_order_acknowledged_before_its_knock() -> None:
    """Even if the order comes between the first look and the knock: the sweep looks again."""

    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation)
            [agent] = silence(simulation.agents[:1])
            replica = simulation.replicas[0].registry.replica
            sweep, knock = replica.liveness.sweep, replica.heartbeats.knock
            orders = 0

            async def knock_after_an_order() -> None:
                nonlocal orders
                if not orders:
                    orders += 1
                    await order(simulation, FORCE, 100)
                await knock()

            replica.heartbeats.knock = knock_after_an_order  # type: ignore[method-assign]
            while not orders:
                await asyncio.sleep(1)
            await asyncio.sleep(60)
            assert simulation.expiries() == []
            assert sweep.verdict.hold
            await asyncio.sleep(60)
            assert len(simulation.expiries(agent)) == 1

    run_virtually(main)


def test_an_order_shows_before_the_next_sweep_and_so_does_its_end() -> None:
    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation, replicas=1)
            ordered = await order(simulation, FORCE, 0.3)
            assert (ordered.holding, "operator's order" in ordered.verdict) == (True, True)
            await asyncio.sleep(0.4)
            after = simulation.any_registry().admin.guard()
            assert (after.holding, "operator's order" in after.verdict) == (False, False)

    run_virtually(main)


@pytest.mark.long
def test_agents_under_planned_work_do_not_expire_and_do_not_make_the_guard_hold() -> None:
    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation, replicas=2)
            for node in ("node-1", "node-2", "node-3"):
                await suspend(simulation, node, 1_500)
            at_work = silence([a for a in simulation.agents if a.node in ("node-1", "node-2", "node-3")])
            elsewhere = silence([a for a in simulation.agents if a.node == "node-4"][:1])
            await asyncio.sleep(700)
            assert [expiry.key for expiry in simulation.expiries()] == [elsewhere[0].key]
            assert silences_s(simulation, elsewhere)[0] <= 660
            assert simulation.any_registry().admin.guard().expected == 28
            await asyncio.sleep(700)
            for agent in at_work:
                agent.silent = False  # they come back before the work is over
            await asyncio.sleep(800)
            assert len(simulation.changes) == 1

    run_virtually(main)


@pytest.mark.long
def test_silence_after_planned_work_expires_one_timeout_later() -> None:
    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation)
            await suspend(simulation, "node-1", 1_000)
            began = simulation.now
            at_work = silence([a for a in simulation.agents if a.node == "node-1"])
            await asyncio.sleep(1_700)
            expiries = simulation.expiries()
            assert {expiry.key for expiry in expiries} == {agent.key for agent in at_work}
            assert all(1_600 <= expiry.at_s - began <= 1_660 for expiry in expiries)

    run_virtually(main)


def test_instances_that_are_deleted_are_no_reason_to_hold() -> None:
    async def main() -> None:
        async with Simulation() as simulation:
            await settled(simulation)
            gone, [silent] = silence(simulation.agents[:20]), silence(simulation.agents[20:21])
            for agent in gone:
                writes = simulation.any_registry().writes
                await writes.delete(agent.key.instance_id, NO_DEMAND, simulation.now + 5)
            await asyncio.sleep(700)
            assert [expiry.key for expiry in simulation.expiries()] == [silent.key]
            assert simulation.any_registry().replica.liveness.guard.holds == 0

    run_virtually(main)


@pytest.mark.long
def test_after_a_hold_three_replicas_together_keep_to_the_rate_of_one() -> None:
    async def main() -> None:
        async with Simulation(timeout_s=60, interval_s=18) as simulation:
            await settled(simulation, replicas=3, agents=320, nodes=10)
            silent = silence(simulation.agents[:250])
            await asyncio.sleep(150)
            expiries = [expiry.at_s for expiry in simulation.expiries()]
            assert len(expiries) == len(silent) == 250
            for at_s in expiries:
                # One second's worth and the rate, and what two of them write before either has seen the other's.
                assert sum(at_s <= other < at_s + 1 for other in expiries) <= 130
            assert 3 <= max(expiries) - min(expiries) <= 15

    run_virtually(main)


@pytest.mark.long
def test_hundreds_of_due_expiries_are_written_in_one_sweep() -> None:
    async def main() -> None:
        async with Simulation(timeout_s=60, interval_s=18, guard_share=1.0) as simulation:
            await settled(simulation, agents=250, nodes=10)
            sweep = simulation.any_registry().replica.liveness.sweep
            await order(simulation, FORCE, 100)
            silence(simulation.agents[:230])
            await asyncio.sleep(100)
            before = simulation.now
            while not simulation.expiries():
                await asyncio.sleep(0.5)
            await asyncio.sleep(1)
            assert len(simulation.expiries()) == 230
            assert simulation.now - before < 5
            assert sweep.waiting == 0

    run_virtually(main)
