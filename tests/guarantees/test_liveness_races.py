"""A report and an expiry at the same moment: the report wins, and nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Sequence

import pytest

from hq.liveness.deadlines import Deadlines, RevisionKey
from hq.registry.registry import Registry
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from store.etcd import EtcdConfig, EtcdStore
from tests.support.etcd import SharedEtcd
from tests.support.in_process_replica import running
from tests.support.sample_instances import instance
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time

NODES = 5
CALL_S = 10.0


class Racer:
    """An agent whose revision is about to be called silent."""

    def __init__(self, registry: Registry, instance_id: str, node: str) -> None:
        self.instance_id, self.node, self._clock = instance_id, node, registry.replica.clock
        self._incarnation = self._uid = self._sequence = 0
        self.message = ""

    async def begin(self, registry: Registry) -> None:
        begun = await registry.reports.begin(self.instance_id, "r1", self.node, self._clock.now() + CALL_S)
        self._incarnation, self._uid = begun.incarnation, begun.uid

    async def report(self, registry: Registry) -> None:
        self._sequence += 1
        status = model.RevisionStatus(id="r1", incarnation=self._incarnation, sequence=self._sequence)
        status.ready.status = model.CONDITION_STATUS_TRUE
        status.ready.message = self.message
        report = pb.ReportStatusRequest(instance_id=self.instance_id, uid=self._uid, node=self.node, revision=status)
        await registry.reports.report(report, self._clock.now() + CALL_S)


def sweep_by_hand(registry: Registry) -> None:
    """No sweep but the test's: one that believes that HQ was there all the time."""
    sweep = registry.replica.liveness.sweep
    sweep.once, sweep.by_hand = _nothing, sweep.once  # type: ignore[method-assign,attr-defined]
    sweep._reachability.look = lambda now: True  # type: ignore[method-assign]


async def _nothing() -> int:
    return 0


def age(deadlines: Deadlines[RevisionKey]) -> None:
    """Pretend that nothing was heard of anybody for a day."""
    deadlines._heard = dict.fromkeys(deadlines._heard, deadlines._newest - 86_400)
    deadlines._counts = {int((deadlines._newest - 86_400) // deadlines._tick_s): len(deadlines._heard)}
    deadlines._absences.since = deadlines.floor = deadlines._started = float("-inf")


async def race(
    registries: Sequence[Registry], racers: Sequence[Racer], rounds: int, rng: random.Random
) -> Counter[str]:
    """Every revision is overdue; all replicas sweep while all agents report. Return how often what happened."""
    seen: Counter[str] = Counter()
    for racer in racers:
        made = instance(racer.instance_id, node=racer.node)
        await registries[0].writes.create(made, "", registries[0].replica.clock.now() + CALL_S, validate_only=False)
        await racer.begin(registries[0])
        await racer.report(registries[0])
    for number in range(rounds):
        for registry in registries:
            await registry.replica.fence.wait_for_fence()
            age(registry.replica.tracker.deadlines)
        tracker = registries[0].replica.tracker
        expiries, recoveries = tracker.expiries, tracker.recoveries
        barrier = asyncio.Barrier(len(racers) + len(registries))
        deeds: list[Awaitable[None]] = [sweep(registry, barrier, rng) for registry in registries]
        for racer in racers:
            if rng.random() < 0.3:
                racer.message = f"round {number}"
            deeds.append(report(racer, rng.choice(registries), barrier, rng))
        await asyncio.gather(*deeds)
        for registry in registries:
            await registry.replica.fence.wait_for_fence()
            for racer in racers:
                entry = registry.replica.cache.get(racer.instance_id)
                assert entry is not None
                [status] = entry.status().revision
                assert entry.traits.ready, f"{racer.instance_id} is not ready after round {number}"
                assert status.ready.message == racer.message, "an acknowledged report is lost"
        assert tracker.expiries - expiries == tracker.recoveries - recoveries
        seen["expiries overtaken"] += tracker.expiries - expiries
        seen["expiries prevented"] += len(racers) - (tracker.expiries - expiries)
    return seen


async def sweep(registry: Registry, barrier: asyncio.Barrier, rng: random.Random) -> None:
    await barrier.wait()
    await stagger(rng)
    await registry.replica.liveness.sweep.by_hand()  # type: ignore[attr-defined]


async def report(racer: Racer, registry: Registry, barrier: asyncio.Barrier, rng: random.Random) -> None:
    await barrier.wait()
    await stagger(rng)
    await racer.report(registry)


async def stagger(rng: random.Random) -> None:
    """A sweep's fence goes with the heartbeats of its moment: who comes a little later may be overtaken."""
    for _ in range(rng.randrange(30)):
        await asyncio.sleep(0)
    if rng.random() < 0.5:
        await asyncio.sleep(rng.uniform(0.0, 0.3))


def make_racers(registry: Registry, count: int) -> list[Racer]:
    return [Racer(registry, f"i-{n}", f"node-{n % NODES}") for n in range(count)]


@in_virtual_time
@pytest.mark.long
async def test_in_ten_thousand_races_a_report_always_beats_an_expiry() -> None:
    async with Simulation(guard_share=1.0) as simulation:
        registries = [(await simulation.start_replica()).registry for _ in range(2)]
        for registry in registries:
            sweep_by_hand(registry)
        seen = await race(registries, make_racers(registries[0], 50), 200, simulation.rng)
        assert seen.total() == 10_000
        assert min(seen["expiries overtaken"], seen["expiries prevented"]) > 200, seen


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)
async def test_in_races_over_real_etcd_a_report_always_beats_an_expiry(etcd: SharedEtcd) -> None:
    def store() -> EtcdStore:
        return EtcdStore(EtcdConfig((etcd.endpoint,)))

    stores = store(), store()
    try:
        async with (
            running(stores[0], replica="one", guard_share=1.0, prefix=etcd.prefix) as one,
            running(stores[1], replica="two", seed=2, guard_share=1.0, prefix=etcd.prefix) as two,
        ):
            for registry in (one, two):
                sweep_by_hand(registry)
            seen = await race((one, two), make_racers(one, 50), 10, random.Random(3))
            assert seen.total() == 500
            assert seen["expiries prevented"] > 0
    finally:
        for each in stores:
            await each.close()
