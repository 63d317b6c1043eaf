"""100 random restarts of replicas: no change is lost, none comes twice, and a break is shown as one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hqclient.discovery import Discovery, DiscoverySettings, EndpointChanges
from tests.clients.conftest import SETTINGS
from tests.clients.telling import History, Step, TellingReplica, as_step, telling_replica

RESTARTS = 100
QUICK = DiscoverySettings(client=SETTINGS)


@asynccontextmanager
async def three(history: History) -> AsyncIterator[list[TellingReplica]]:
    replicas = [telling_replica(history, f"fake-{n}") for n in range(3)]
    for replica in replicas:
        await replica.start()
    try:
        yield replicas
    finally:
        for replica in replicas:
            await replica.stop()


async def restart(history: History, replicas: list[TellingReplica], rng: random.Random) -> None:
    """Kill the replica that is watched, and now and then others, write meanwhile, and start them again."""
    while not any(replica.streams for replica in replicas):
        await asyncio.sleep(0.002)
    await asyncio.sleep(rng.choice([0, rng.random() * 0.01, rng.random() * 0.05]))
    away = [r for r in replicas if r.streams or rng.random() < 0.3]
    await asyncio.gather(*(replica.stop() for replica in away))
    for _ in range(rng.randint(0, 4)):
        history.write_at_random()
        await asyncio.sleep(rng.random() * 0.004)
    for replica in away:
        await replica.restart()


async def write_on(history: History, rng: random.Random) -> None:
    while True:
        history.write_at_random()
        await asyncio.sleep(rng.random() * 0.01)


async def told_over_restarts(seed: int, *, compact: bool) -> tuple[History, list[EndpointChanges], int]:
    rng = random.Random(seed)
    history = History(rng)
    told: list[EndpointChanges] = []
    async with three(history) as replicas:
        found = Discovery([r.address for r in replicas], settings=QUICK, rng=rng)
        async with asyncio.timeout(100), found.service("web", port="http") as web:
            await web.ready(at_least=0)
            web.on_change(told.append)
            writing = asyncio.create_task(write_on(history, rng))
            for _ in range(RESTARTS):
                await restart(history, replicas, rng)
                if compact and rng.random() < 0.2:
                    history.compact()
            writing.cancel()
            history.write("last")
            while not any(e.instance_id == "last" for e in web.endpoints):
                await asyncio.sleep(0.01)
            while "last" not in {e.instance_id for changes in told for e in changes.added}:
                await asyncio.sleep(0.01)
            streams = sum(replica.calls["WatchInstances"] for replica in replicas)
            assert streams > RESTARTS * 0.9, "the restarts hardly concerned the watch"
            there = {e.instance_id: e.labels["mark"] for e in web.endpoints}
            assert there == {id_: made.meta.labels["mark"] for id_, made in history.instances.items()}
            return history, told, web.resyncs


@pytest.mark.long
async def test_over_100_restarts_no_change_is_lost_or_doubled() -> None:
    history, told, resyncs = await told_over_restarts(7, compact=False)
    assert resyncs == 0
    assert [as_step(changes) for changes in told] == history.steps
    assert len(history.steps) > 150, "too little happened for this to mean anything"


@pytest.mark.long
@pytest.mark.parametrize("seed", [11])
async def test_over_100_restarts_with_a_short_history_every_gap_is_shown_as_a_resync(seed: int) -> None:
    history, told, resyncs = await told_over_restarts(seed, compact=True)
    assert resyncs > 0, "the history was never too short: this shows nothing"
    states = states_of(history.steps)
    places = {0}  # in the history; after a resync there may be several with the same state
    state: dict[str, str] = {}
    for changes in told:
        step = as_step(changes)
        state = after(state, step)
        if changes.resync:
            places = {at for at in range(min(places), len(states)) if states[at] == state}
            assert places, "a snapshot that never was"
        else:
            places = {at + 1 for at in places if history.steps[at : at + 1] == [step]}
            assert places, "a gap that was not shown as a resync"
    assert len(history.steps) in places
    assert 0 < sum(bool(changes.resync) for changes in told) <= resyncs


def states_of(steps: list[Step]) -> list[dict[str, str]]:
    """The state before each step, and the last one."""
    states: list[dict[str, str]] = [{}]
    for step in steps:
        states.append(after(states[-1], step))
    return states


def after(state: dict[str, str], step: Step) -> dict[str, str]:
    """The state that a step leads to."""
    gone = {id_ for sign, id_, _ in step if sign == "-"}
    kept = {id_: mark for id_, mark in state.items() if id_ not in gone}
    return kept | {id_: mark for sign, id_, mark in step if sign != "-"}
