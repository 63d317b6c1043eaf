"""Outages for simulations: etcd, HQ, both, or a part of them is away for a while."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from tests.support.simulation import Simulation

Outage = Callable[[Simulation, float], Awaitable[None]]


async def of_the_store(simulation: Simulation, seconds: float) -> None:
    """Nobody reaches etcd."""
    await simulation.outage(seconds)


async def of_all_replicas(simulation: Simulation, seconds: float) -> None:
    """All of HQ crashes, and comes back."""
    count = len(simulation.replicas)
    for running in list(simulation.replicas):
        await simulation.stop_replica(running)
    await asyncio.sleep(seconds)
    for _ in range(count):
        await simulation.start_replica()


async def of_both(simulation: Simulation, seconds: float) -> None:
    """etcd is away; in the middle of it a replica crashes too, and is back before etcd is."""
    outage = asyncio.create_task(simulation.outage(seconds))
    await asyncio.sleep(seconds / 2)
    await simulation.stop_replica(simulation.replicas[0])
    await outage
    await simulation.start_replica()


async def of_one_replica_s_way(simulation: Simulation, seconds: float) -> None:
    """One replica does not reach etcd; the others do."""
    await simulation.outage(seconds, simulation.replicas[:1])


async def of_a_watch(simulation: Simulation, seconds: float) -> None:
    """One replica's watch brings nothing, while its calls go through."""
    link = simulation.replicas[-1].link
    link.hold_watch()
    await asyncio.sleep(seconds)
    link.release_watch()


KINDS: tuple[Outage, ...] = (of_the_store, of_all_replicas, of_both, of_one_replica_s_way, of_a_watch)


def drawn(rng: random.Random, count: int, shortest_s: float, longest_s: float) -> list[tuple[Outage, float]]:
    """Kinds in turn, lengths at random, as many short as long ones."""
    ratio = longest_s / shortest_s
    return [(KINDS[i % len(KINDS)], shortest_s * ratio ** rng.random()) for i in range(count)]
