"""Liveness through outages of a real etcd and of replicas, in real time: minutes, with a timeout of ten seconds.

Ten seconds are few on a loaded machine: an agent may get through to no replica for so long, and is expired by right. So
an expiry is judged by what was acknowledged: to the agent, and to others, which shows that HQ was there to hear.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from store.embedded import EmbeddedEtcd
from store.etcd import EtcdConfig, EtcdStore
from tests.support.etcd import OwnEtcd
from tests.support.outages import of_all_replicas, of_one_replica_s_way, of_the_store
from tests.support.process_ids import wait_until_stopped
from tests.support.reserved_port import kept_ports
from tests.support.sample_instances import eventually
from tests.support.simulation import Change, Simulation

TIMEOUT_S, INTERVAL_S, QUIET_S = 10.0, 3.0, 20.0
LATE_S = 5.0  # of a loaded machine
AWAY_S = INTERVAL_S  # nobody was acknowledged for so long: HQ was away, which is nobody's silence
MOST_UNHEARD = 5  # agents that got through to no replica for a timeout

Etcd = EmbeddedEtcd
Outage = Callable[[Simulation, Etcd, float], Awaitable[None]]


async def etcd_stands_still(_: Simulation, etcd: Etcd, seconds: float) -> None:
    etcd.process.signal(signal.SIGSTOP)
    wait_until_stopped(etcd.process.pid)
    try:
        await asyncio.sleep(seconds)
    finally:
        etcd.process.signal(signal.SIGCONT)


async def etcd_is_stopped(_: Simulation, etcd: Etcd, seconds: float) -> None:
    await etcd.stop()
    await asyncio.sleep(seconds)
    await etcd.start()


async def replicas_crash_while_etcd_is_stopped(simulation: Simulation, etcd: Etcd, seconds: float) -> None:
    await etcd.stop()
    for running in list(simulation.replicas):
        await simulation.stop_replica(running)
    await asyncio.sleep(seconds)
    await etcd.start()
    for _ in range(3):
        await simulation.start_replica()


def in_hq(outage: Callable[[Simulation, float], Awaitable[None]]) -> Outage:
    return lambda simulation, _, seconds: outage(simulation, seconds)


OUTAGES: tuple[Outage, ...] = (
    *(etcd_stands_still, etcd_is_stopped, replicas_crash_while_etcd_is_stopped),
    *map(in_hq, (of_the_store, of_all_replicas, of_one_replica_s_way)),
)


def silence_s(simulation: Simulation, expiry: Change) -> float:
    """For how long the agent was not acknowledged before it was expired, but for times at which nobody was."""
    before = [(at_s, key) for at_s, key in simulation.acknowledged if at_s <= expiry.at_s]
    last_s = max(at_s for at_s, key in before if key == expiry.key)
    moments = [*(at_s for at_s, _ in before if at_s >= last_s), expiry.at_s]
    return sum(later - earlier for earlier, later in pairwise(moments) if later - earlier < AWAY_S)


def false_expiries(simulation: Simulation) -> list[tuple[Change, float]]:
    """Expiries of those whom HQ had heard within the timeout, and how long ago."""
    judged = [(expiry, silence_s(simulation, expiry)) for expiry in simulation.expiries()]
    return [(expiry, silent_s) for expiry, silent_s in judged if silent_s < TIMEOUT_S]


async def play(etcd: Etcd, agents: int, lengths_s: list[float]) -> None:
    simulation = Simulation(
        timeout_s=TIMEOUT_S,
        interval_s=INTERVAL_S,
        connect=lambda: EtcdStore(EtcdConfig((etcd.endpoint,))),
    )
    async with simulation:
        for _ in range(3):
            await simulation.start_replica()
        await simulation.add_agents(agents, 2)  # nodes: too few for the guard, which would only hide false expiries
        for number, seconds in enumerate(lengths_s):
            await OUTAGES[number % len(OUTAGES)](simulation, etcd, seconds)
            await asyncio.sleep(QUIET_S)
            assert false_expiries(simulation) == [], f"outage {number} of {seconds} s"
        assert len(simulation.expiries()) <= MOST_UNHEARD
        silent = next(agent for agent in simulation.agents if not simulation.expiries(agent))
        silent.fall_silent()
        await asyncio.sleep(TIMEOUT_S + 2 + LATE_S)
        # Where this process stood still meanwhile, everybody had another chance.
        await eventually(lambda: simulation.expiries(silent), what="the expiry of who is silent")
        assert false_expiries(simulation) == []
        [expiry] = simulation.expiries(silent)
        assert expiry.at_s - silent.last_report >= TIMEOUT_S


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("etcd_binary", "times"),
    [("3.4", 1), pytest.param("3.5", 10, marks=[pytest.mark.night, pytest.mark.timeout(0)])],
    indirect=["etcd_binary"],
)
async def test_minutes_of_outages_over_a_real_etcd_expire_nobody_but_the_silent(own_etcd: OwnEtcd, times: int) -> None:
    ports = kept_ports()
    etcd = await own_etcd(ports=lambda: ports)
    await play(etcd, agents=100, lengths_s=[2, 15, 12, 25, 5, 15] * times)
