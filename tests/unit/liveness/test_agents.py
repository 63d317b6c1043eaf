"""Whether an agent is heard (`status.agent`), whatever it reports of its revisions."""

from __future__ import annotations

import asyncio

from hq.memory.query import Query
from hq.registry.registry import Registry
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from store.port import Write
from tests.support.sample_instances import instance
from tests.support.simulated_agents import Reporter
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time

TRUE, FALSE, UNKNOWN = model.CONDITION_STATUS_TRUE, model.CONDITION_STATUS_FALSE, model.CONDITION_STATUS_UNKNOWN


async def create(
    simulation: Simulation, *names: str, node: str = "node-1", revisions: tuple[str, ...] = ("r1",)
) -> None:
    for name in names:
        made = instance(name, node=node, revisions=revisions)
        await simulation.any_registry().writes.create(made, "", simulation.now + 10, validate_only=False)


def agent_of(registry: Registry, name: str) -> model.Condition:
    entry = registry.replica.cache.get(name)
    assert entry is not None
    condition = entry.instance().status.agent
    assert entry.traits.silent is (condition.status == FALSE)
    return condition


async def begin(simulation: Simulation, name: str, revision: str = "r1", node: str = "node-1") -> Reporter:
    return await Reporter(simulation, name, revision, node).begin(simulation.any_registry())


async def report(simulation: Simulation, reporter: Reporter, *, ready: bool) -> None:
    request = reporter.request("")
    request.revision.ready.status = TRUE if ready else FALSE
    await simulation.any_registry().reports.report(request, simulation.now + 5)


@in_virtual_time
async def test_an_agent_is_unknown_then_heard_then_silent_whatever_it_reports() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(simulation, "a", revisions=("r1", "r2"))
        assert agent_of(registry, "a").status == UNKNOWN
        reporter = await begin(simulation, "a", "r2")
        assert agent_of(registry, "a").status == TRUE, "to begin is to be heard"
        await report(simulation, reporter, ready=False)
        for _ in range(5):
            await asyncio.sleep(180)
            await report(simulation, reporter, ready=False)
        assert agent_of(registry, "a").status == TRUE, "heartbeats of what is not ready keep it alive"
        await asyncio.sleep(620)
        silent = agent_of(registry, "a")
        assert (silent.status, silent.reason) == (FALSE, "HeartbeatTimeout")
        assert silent.receipt.silence.seconds >= 600
        assert silent.receipt.decided_by
        await report(simulation, reporter, ready=False)
        assert agent_of(registry, "a").status == TRUE, "the very same report is a change now"


@in_virtual_time
async def test_a_ready_revision_and_its_agent_expire_in_one_transaction() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(simulation, "a", revisions=("r1", "r2"))
        for revision, ready in (("r1", True), ("r2", False)):
            await report(simulation, await begin(simulation, "a", revision), ready=ready)
        entry = registry.replica.cache.get("a")
        assert entry is not None
        before = entry.status_version
        await asyncio.sleep(625)
        assert len([at for at in _statuses(simulation) if at > before]) == 1
        silent = agent_of(registry, "a")
        assert (silent.status, silent.reason) == (FALSE, "HeartbeatTimeout")
        assert not registry.replica.cache.get("a").traits.ready  # type: ignore[union-attr]


def _statuses(simulation: Simulation) -> list[int]:
    """The revisions at which the status of instance a was written."""
    key = b"/hq/v1/status/a"
    return [change.revision for batch in simulation.store._log for change in batch.changes if change.key == key]


@in_virtual_time
async def test_an_agent_called_silent_counts_as_heard_while_a_revision_is_ready() -> None:
    """An older replica that stores the report as a recovery keeps the field in which the agent is called silent."""
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(simulation, "a", revisions=("r1", "r2"))
        for revision in ("r1", "r2"):
            await report(simulation, await begin(simulation, "a", revision), ready=True)
        await asyncio.sleep(625)
        entry = registry.replica.cache.get("a")
        assert entry is not None
        assert agent_of(registry, "a").status == FALSE
        record = entry.status_record()
        assert record.HasField("agent")
        record.revision[1].ready, record.revision[1].expired = True, False
        key = registry.replica.key_names.status("a")
        await simulation.store.commit((), (Write((), ((key, record.SerializeToString()),)),), 1.0)
        await asyncio.sleep(1)
        assert agent_of(registry, "a").status == TRUE
        assert [entry.traits.id for part in registry.replica.cache.matching(Query(silent())) for entry in part] == []
        after = registry.replica.cache.get("a")
        assert after is not None
        assert after.silence() is None, "the next write of this version drops it"


@in_virtual_time
async def test_a_repeated_report_ends_the_silence_of_its_agent() -> None:
    """A report whose answer was lost is sent again unchanged; heartbeats follow."""
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(simulation, "a")
        reporter = await begin(simulation, "a")
        request = reporter.request("")
        request.revision.ready.status = FALSE
        await registry.reports.report(request, simulation.now + 5)
        await asyncio.sleep(625)
        assert agent_of(registry, "a").status == FALSE
        await registry.reports.report(request, simulation.now + 5)
        assert agent_of(registry, "a").status == TRUE
        for _ in range(5):
            await asyncio.sleep(180)
            await report(simulation, reporter, ready=False)
            assert agent_of(registry, "a").status == TRUE


@in_virtual_time
async def test_an_instance_whose_other_revision_is_heard_has_an_agent() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(simulation, "a", revisions=("r1", "r2"))
        dying, living = [await begin(simulation, "a", revision) for revision in ("r1", "r2")]
        await report(simulation, dying, ready=True)
        for _ in range(8):
            await report(simulation, living, ready=False)
            await asyncio.sleep(100)
        assert not registry.replica.cache.get("a").traits.ready  # type: ignore[union-attr]
        assert agent_of(registry, "a").status == TRUE


@in_virtual_time
async def test_an_agent_that_never_began_is_silent_only_where_others_on_its_node_report() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(simulation, "a", "b")
        await create(simulation, "c", node="node-2")
        living = await begin(simulation, "a", "r1")
        for _ in range(8):
            await report(simulation, living, ready=True)
            await asyncio.sleep(100)
        missed = agent_of(registry, "b")
        assert (missed.status, missed.reason) == (FALSE, "NeverReported")
        assert agent_of(registry, "c").status == UNKNOWN
        await begin(simulation, "b", "r1")
        assert agent_of(registry, "b").status == TRUE


@in_virtual_time
async def test_no_agent_is_called_silent_during_planned_work() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(simulation, "a")
        await report(simulation, await begin(simulation, "a", "r1"), ready=False)
        until_ms = registry.replica.clock.wall_ms() + 2_000_000
        await registry.admin.suspend("node-1", 2_000_000, "me", "work", simulation.now + 5)
        answer = await registry.explain.explain("a", simulation.now + 5)
        assert 0 <= answer.node_suspended_until.ToMilliseconds() - until_ms < 1_000
        await asyncio.sleep(1_900)
        assert agent_of(registry, "a").status == TRUE
        await asyncio.sleep(800)
        assert agent_of(registry, "a").status == FALSE


@in_virtual_time
async def test_a_report_that_hq_refused_moves_the_deadline_of_an_agent_without_a_ready_revision() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(simulation, "a")
        await report(simulation, await begin(simulation, "a", "r1"), ready=False)
        await asyncio.sleep(400)
        entry = registry.replica.cache.get("a")
        assert entry is not None
        registry.replica.tracker.record_refusal(entry, entry.marks[0])
        await asyncio.sleep(500)
        assert agent_of(registry, "a").status == TRUE
        await asyncio.sleep(120)
        assert agent_of(registry, "a").status == FALSE


@in_virtual_time
async def test_silence_survives_a_restart_and_edits_of_the_spec() -> None:
    async with Simulation() as simulation:
        running = await simulation.start_replica()
        await create(simulation, "a", revisions=("r1", "r2"))
        await report(simulation, await begin(simulation, "a", "r1"), ready=False)
        await asyncio.sleep(620)
        await simulation.stop_replica(running)
        registry = (await simulation.start_replica()).registry
        assert agent_of(registry, "a").status == FALSE
        found = [e for part in registry.replica.cache.matching(Query(silent())) for e in part]
        assert [entry.traits.id for entry in found] == ["a"]
        rest = pb.InstanceFilter(agent=pb.AGENT_FILTER_NOT_SILENT)
        assert not [e for part in registry.replica.cache.matching(Query(rest)) for e in part]


def silent() -> pb.InstanceFilter:
    return pb.InstanceFilter(agent=pb.AGENT_FILTER_SILENT)


@in_virtual_time
async def test_silence_from_before_a_restart_does_not_trigger_the_guard() -> None:
    async with Simulation() as simulation:
        running = await simulation.start_replica()
        await create(simulation, *(f"dead-{n}" for n in range(40)), node="node-9")
        for n in range(40):
            await report(simulation, await begin(simulation, f"dead-{n}", node="node-9"), ready=False)
        await simulation.add_agents(30, 3)
        await simulation.stop_replica(running)
        registry = (await simulation.start_replica()).registry
        for _ in range(20):
            await asyncio.sleep(60)
            assert not registry.replica.liveness.sweep.verdict.hold
        assert agent_of(registry, "dead-0").status == FALSE
        assert not simulation.false_expiries()


@in_virtual_time
async def test_the_guard_holds_once_for_many_agents_that_fall_silent_together() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        names = [f"i{n}" for n in range(40)]
        for n, name in enumerate(names):
            await create(simulation, name, node=f"node-{n % 5}")
        await asyncio.sleep(30)
        for n, name in enumerate(names):
            await report(simulation, await begin(simulation, name, node=f"node-{n % 5}"), ready=False)
        await asyncio.sleep(700)
        assert registry.replica.liveness.sweep.verdict.hold
        assert agent_of(registry, "i0").status == TRUE
        await asyncio.sleep(900)
        assert all(agent_of(registry, name).status == FALSE for name in names)
