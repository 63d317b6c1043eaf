"""Silence over a real etcd in real time, timeout 3 s: never early, in time, and no outage is anybody's silence."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

import pytest

from hq.liveness.heartbeats import Heartbeat
from store.etcd import EtcdConfig, EtcdStore
from tests.support.etcd import OwnEtcd, SharedEtcd
from tests.support.process_ids import wait_until_stopped
from tests.support.reserved_port import kept_ports
from tests.support.sample_instances import eventually
from tests.support.simulation import Agent, Running, Simulation

TIMEOUT_S, LATEST_S = 3.0, 6.0
AGENTS, NODES = 12, 3  # too few for the guard, which would only hide false expiries


def connect(endpoint: str) -> Callable[[], EtcdStore]:
    return lambda: EtcdStore(EtcdConfig((endpoint,)))


def play(endpoint: str, prefix: str = "/hq/v1/") -> Simulation:
    return Simulation(timeout_s=TIMEOUT_S, interval_s=0.9, connect=connect(endpoint), prefix=prefix)


async def flush_all_the_time(running: Running) -> None:
    """Some heartbeat of nobody at every flush: there is hardly a moment without a newer batch."""
    while True:
        await running.registry.replica.heartbeats.send([Heartbeat(1, 1, 0)])


def assert_expired_in_time(simulation: Simulation, silent: list[Agent], late_s: float = 0.0) -> None:
    """Each time that this process stood still everyone had another chance, and may be expired so much later."""
    assert simulation.false_expiries() == []
    gaps = max(running.registry.replica.liveness.reachability.gaps for running in simulation.replicas)
    late_s = max(late_s, 2 * LATEST_S * gaps)
    for agent in silent:
        [expiry] = simulation.expiries(agent)
        assert TIMEOUT_S <= expiry.at_s - agent.last_report <= LATEST_S + late_s


async def until_expired(simulation: Simulation, silent: list[Agent]) -> None:
    await eventually(lambda: all(simulation.expiries(agent) for agent in silent), timeout_s=60, what="the expiries")


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)
@pytest.mark.parametrize("replicas", [1, 5])
async def test_a_silent_revision_is_expired_after_three_seconds_and_within_six(etcd: SharedEtcd, replicas: int) -> None:
    """Also under five replicas that write heartbeats all the time."""
    async with play(etcd.endpoint, etcd.prefix) as simulation:
        flushing = []
        for _ in range(replicas):
            running = await simulation.start_replica()
            flushing.append(asyncio.create_task(flush_all_the_time(running)))
        await simulation.add_agents(AGENTS, NODES)
        await asyncio.sleep(1)
        silent = simulation.agents[:3]
        for agent in silent:
            agent.fall_silent()
            await asyncio.sleep(0.3)
        await asyncio.sleep(LATEST_S)
        await until_expired(simulation, silent)
        for task in flushing:
            task.cancel()
        await asyncio.gather(*flushing, return_exceptions=True)
        assert_expired_in_time(simulation, silent)
        trackers = [running.registry.replica.tracker for running in simulation.replicas]
        await eventually(lambda: all(each.expiries >= len(silent) for each in trackers), what="each replica heard it")
        for running in simulation.replicas:
            assert running.registry.replica.tracker.expiries == len(silent)
            assert running.registry.replica.heartbeats.flushes > 20


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.5", pytest.param("3.6", marks=pytest.mark.long)], indirect=True)
async def test_ten_seconds_without_etcd_expire_nobody_early_and_true_silence_is_expired_all_the_same(
    own_etcd: OwnEtcd,
) -> None:
    """One etcd is paused, another one is stopped and started again."""
    paused = await own_etcd()
    ports = kept_ports()
    stopped = await own_etcd(ports=lambda: ports)

    async def pause() -> None:
        paused.process.signal(signal.SIGSTOP)
        wait_until_stopped(paused.process.pid)

    async def go_on() -> None:
        paused.process.signal(signal.SIGCONT)

    try:
        async with asyncio.TaskGroup() as plays:
            plays.create_task(outage(paused.endpoint, pause, go_on))
            plays.create_task(outage(stopped.endpoint, stopped.stop, stopped.start))
    finally:
        await go_on()


async def outage(endpoint: str, begin: Callable[[], Awaitable[None]], end: Callable[[], Awaitable[None]]) -> None:
    async with play(endpoint) as simulation:
        for _ in range(2):
            await simulation.start_replica()
        await simulation.add_agents(AGENTS, NODES)
        await asyncio.sleep(1)
        silent = simulation.agents[:1]
        silent[0].fall_silent()
        await asyncio.sleep(0.5)
        await begin()
        await asyncio.sleep(10)
        assert simulation.changes == []
        await end()
        # The outage, the way back to etcd, and the chance that everyone has after it.
        await asyncio.sleep(9)
        await until_expired(simulation, silent)
        assert_expired_in_time(simulation, silent, late_s=10 + 12)
        assert all(running.registry.replica.liveness.reachability.gaps >= 1 for running in simulation.replicas)
