"""Instances whose agents report at intervals of their own, and are judged by timeouts of their own."""

from __future__ import annotations

import asyncio

import pytest

from hq.api.agents import Agents
from hq.errors import LivenessUnavailable, NotBegun
from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hq.validation import check_new_instance
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest
from tests.support.sample_instances import instance
from tests.support.simulated_agents import Reporter
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time

ANY = Precondition(0, "")


def with_times(name: str, interval_s: float, timeout_s: float, node: str = "node-1") -> model.Instance:
    return instance(name, node=node, times=(interval_s, timeout_s))


async def create(simulation: Simulation, made: model.Instance) -> None:
    await simulation.any_registry().writes.create(made, "", simulation.now + 10, validate_only=False)


async def ready(simulation: Simulation, made: model.Instance) -> Reporter:
    await create(simulation, made)
    reporter = await Reporter(simulation, made.meta.id, node=made.spec.node_name).begin(simulation.any_registry())
    await reporter.report(simulation.any_registry())
    return reporter


def is_ready(registry: Registry, name: str) -> bool:
    entry = registry.replica.cache.get(name)
    assert entry is not None
    return entry.traits.ready


async def set_times(simulation: Simulation, made: model.Instance) -> None:
    registry = simulation.any_registry()
    await registry.writes.update(made, ["spec.liveness"], ANY, simulation.now + 10, validate_only=False)


async def started(simulation: Simulation) -> Registry:
    registry = (await simulation.start_replica()).registry
    await asyncio.sleep(5)  # it says what it knows
    return registry


@pytest.mark.long
@in_virtual_time
async def test_each_instance_is_judged_by_the_times_its_agent_was_given() -> None:
    async with Simulation() as simulation:
        registry = await started(simulation)
        for name, interval_s, timeout_s in (("short", 20, 60), ("long", 1_800, 7_200)):
            await ready(simulation, with_times(name, interval_s, timeout_s))
        await ready(simulation, instance("default"))
        names = ["short", "default", "long"]
        for wait_s, left in (
            (55, names),
            (10, names[1:]),
            (530, names[1:]),
            (15, names[2:]),
            (6_585, names[2:]),
            (15, []),
        ):
            await asyncio.sleep(wait_s)
            assert [name for name in names if is_ready(registry, name)] == left
        silent = {name: registry.replica.cache.get(name).instance().status.agent.status for name in names}  # type: ignore[union-attr]
        assert set(silent.values()) == {model.CONDITION_STATUS_FALSE}


@in_virtual_time
async def test_an_agent_is_told_its_own_times_when_it_begins_and_with_each_report() -> None:
    async with Simulation() as simulation:
        registry = await started(simulation)
        await ready(simulation, with_times("short", 20, 60))
        await ready(simulation, instance("default"))
        begun = await registry.reports.begin("short", "r1", "node-1", simulation.now + 5)
        assert (begun.report_interval_s, begun.timeout_s) == (20, 60)
        assert 18 <= registry.reports.next_report_in_s("short", "r1") <= 20
        assert 162 <= registry.reports.next_report_in_s("default", "r1") <= 180
        told = await registry.explain.explain("short", simulation.now + 5)
        assert (told.revision[0].report_interval.seconds, told.revision[0].timeout.seconds) == (20, 60)


@in_virtual_time
async def test_changed_times_take_effect_at_the_next_heartbeat_and_news_is_taken_first() -> None:
    async with Simulation() as simulation:
        registry = await started(simulation)
        reporter = await ready(simulation, instance("a"))
        await set_times(simulation, with_times("a", 20, 60))
        await reporter.report(registry, "news")
        with pytest.raises(NotBegun, match="liveness settings have changed"):
            await reporter.report(registry, "news")
        await asyncio.sleep(300)
        assert is_ready(registry, "a"), "until it begins anew it is judged by what it was given"
        await reporter.begin(registry)
        await reporter.report(registry, "news")
        await reporter.report(registry, "news")
        await asyncio.sleep(55)
        assert is_ready(registry, "a")
        await asyncio.sleep(10)
        assert not is_ready(registry, "a")


@pytest.mark.long
@in_virtual_time
async def test_own_times_outlive_a_restart_of_hq() -> None:
    async with Simulation(compact_every_s=300.0) as simulation:
        running = await simulation.start_replica()
        await asyncio.sleep(5)
        await ready(simulation, with_times("short", 20, 60))
        await ready(simulation, with_times("long", 1_800, 7_200))
        await asyncio.sleep(50)
        await simulation.stop_replica(running)
        registry = (await simulation.start_replica()).registry
        await asyncio.sleep(20)
        assert is_ready(registry, "short"), "an interval and a retry"
        await asyncio.sleep(15)
        assert not is_ready(registry, "short")
        await asyncio.sleep(3_000)
        assert is_ready(registry, "long")


@in_virtual_time
async def test_a_hold_of_the_guard_delays_each_expiry_by_at_most_its_own_timeout() -> None:
    async with Simulation() as simulation:
        registry = await started(simulation)
        for number in range(30):
            await ready(simulation, with_times(f"short-{number}", 20, 60, node=f"node-{number % 3}"))
        await asyncio.sleep(100)
        verdict = registry.replica.liveness.sweep.verdict
        assert verdict.hold
        assert is_ready(registry, "short-0")
        await asyncio.sleep(30)
        assert not any(is_ready(registry, f"short-{number}") for number in range(30))


@in_virtual_time
async def test_own_times_are_refused_while_a_replica_may_not_know_them() -> None:
    async with Simulation() as simulation:
        registry = await started(simulation)
        registry.replica.events.peers["replica-old"] = simulation.now
        with pytest.raises(LivenessUnavailable, match="replica-old; upgrade all of them"):
            await create(simulation, with_times("a", 20, 60))
        await asyncio.sleep(61)
        await create(simulation, with_times("a", 20, 60))


@in_virtual_time
async def test_an_installation_has_at_most_sixteen_different_pairs_of_times() -> None:
    async with Simulation() as simulation:
        await started(simulation)
        for number in range(16):
            await create(simulation, with_times(f"a-{number}", 20, 60 + number))
        await create(simulation, with_times("b", 20, 60))
        with pytest.raises(LivenessUnavailable, match="16 different settings already: use one of 20s/60s, 20s/61s"):
            await create(simulation, with_times("c", 20, 90))
        registry = simulation.any_registry()
        await registry.writes.delete("a-15", ANY, simulation.now + 10)
        await create(simulation, with_times("c", 20, 90))


@pytest.mark.parametrize(
    ("interval_s", "timeout_s", "field"),
    [
        (5, 60, "report_interval"),
        (20, 59, "timeout"),
        (30, 89, "timeout"),
        (20, 90_000, "timeout"),
        (0, 60, "report_interval"),
    ],
)
def test_times_that_well_behaved_agents_could_not_keep_are_refused(
    interval_s: float, timeout_s: float, field: str
) -> None:
    with pytest.raises(InvalidRequest, match=rf"instance\.spec\.liveness\.{field}"):
        check_new_instance(with_times("a", interval_s, timeout_s))
    check_new_instance(with_times("a", 20, 60))


@in_virtual_time
async def test_an_answer_to_a_batch_has_the_next_time_of_each_report_and_the_earliest() -> None:
    async with Simulation() as simulation:
        registry = await started(simulation)
        request = pb.ReportStatusesRequest()
        for made in (with_times("short", 20, 60), instance("default")):
            request.report.append((await ready(simulation, made)).request())
        answer = pb.ReportStatusesResponse(result=[pb.ReportResult(), pb.ReportResult()])
        Agents(registry)._say_when_next(request, answer)
        own_s, common_s = (result.next_report_in.ToMilliseconds() / 1000 for result in answer.result)
        assert 18 <= own_s <= 20
        assert 162 <= common_s <= 180
        assert answer.next_report_in.ToMilliseconds() / 1000 == own_s


@in_virtual_time
async def test_without_own_times_a_batch_gets_one_common_time() -> None:
    async with Simulation() as simulation:
        registry = await started(simulation)
        request = pb.ReportStatusesRequest(report=[(await ready(simulation, instance("default"))).request()])
        answer = pb.ReportStatusesResponse(result=[pb.ReportResult()])
        Agents(registry)._say_when_next(request, answer)
        assert not answer.result[0].HasField("next_report_in")
        assert answer.next_report_in.seconds >= 162
