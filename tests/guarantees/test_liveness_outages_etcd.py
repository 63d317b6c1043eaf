"""Liveness through outages of a real etcd and of replicas, in real time: minutes, with a timeout of ten seconds."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

import pytest

from store.embedded import EmbeddedEtcd
from store.etcd import EtcdConfig, EtcdStore
from tests.support.etcd import OwnEtcd
from tests.support.outages import of_all_replicas, of_one_replica_s_way, of_the_store
from tests.support.reserved_port import kept_ports
from tests.support.simulation import Simulation

TIMEOUT_S, INTERVAL_S, QUIET_S = 10.0, 3.0, 20.0
LATE_S = 5.0  # of a loaded machine

Etcd = EmbeddedEtcd
Outage = Callable[[Simulation, Etcd, float], Awaitable[None]]


async def etcd_stands_still(_: Simulation, etcd: Etcd, seconds: float) -> None:
    etcd.process.signal(signal.SIGSTOP)
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
            assert simulation.expiries() == [], f"outage {number} of {seconds} s"
        silent = simulation.agents[0]
        silent.fall_silent()
        await asyncio.sleep(TIMEOUT_S + 2 + LATE_S)
        assert simulation.false_expiries() == []
        [expiry] = simulation.expiries(silent)
        assert expiry.at_s - silent.last_report >= TIMEOUT_S


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("etcd_binary", ["3.4", pytest.param("3.5", marks=pytest.mark.night)], indirect=True)
async def test_minutes_of_outages_over_a_real_etcd_expire_nobody_but_the_silent(own_etcd: OwnEtcd) -> None:
    ports = kept_ports()
    etcd = await own_etcd(ports=lambda: ports)
    await play(etcd, agents=100, lengths_s=[2, 15, 12, 25, 5, 15] * 2)
