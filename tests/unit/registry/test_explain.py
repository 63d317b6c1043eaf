"""An explanation can be given whatever the store holds."""

from __future__ import annotations

import asyncio

from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from store.port import Batch, KeyChange
from tests.support.cache_entries import KEYS, mark, spec_value
from tests.support.simulated_agents import ready
from tests.support.simulation import Simulation
from tests.support.stepped_replica import SteppedReplica
from tests.support.store_histories import World
from tests.support.virtual_time import in_virtual_time


async def explained(status: model.InstanceStatus, *marks: storage_pb2.RevisionMark, target: int = 2) -> str:
    world, still = World(), SteppedReplica()
    still.list(world.records(), world.version)
    record = storage_pb2.StatusRecord(status=status.SerializeToString(), revision=marks)
    spec = spec_value("a", revision=[{"id": "r", "target": target}])
    puts = ((KEYS.spec("a"), spec), (KEYS.status("a"), record.SerializeToString()))
    still.apply(Batch(9, [KeyChange(key, value, 9, 9) for key, value in puts]))
    return (await still.registry.explain.explain("a", None)).summary


async def test_an_explanation_quotes_the_message_of_the_agent() -> None:
    status = model.InstanceStatus()
    status.ready.status = model.CONDITION_STATUS_FALSE
    status.revision.add(id="r").ready.CopyFrom(
        model.Condition(status=model.CONDITION_STATUS_FALSE, message="the disk is full")
    )
    words = await explained(status, mark(ready=False, heard_ms=1_000))
    assert words == "not ready; revision r should be READY: not ready, reported by its agent: the disk is full"


async def test_how_a_container_ended_last_is_in_the_explanation() -> None:
    world, still = World(), SteppedReplica()
    still.list(world.records(), world.version)
    status = model.InstanceStatus()
    container = status.revision.add(id="r").container.add(name="main", restart_count=2)
    container.last_termination.output = "no route to db"
    record = storage_pb2.StatusRecord(status=status.SerializeToString(), revision=[mark(ready=False, heard_ms=1_000)])
    puts = ((KEYS.spec("a"), spec_value("a", revision=[{"id": "r"}])), (KEYS.status("a"), record.SerializeToString()))
    still.apply(Batch(9, [KeyChange(key, value, 9, 9) for key, value in puts]))
    (told,) = (await still.registry.explain.explain("a", None)).revision
    assert list(told.container) == [container]


async def test_unknown_enum_values_can_be_explained() -> None:
    status = model.InstanceStatus.FromString(b"\x12\x02\x08\x63")  # ready.status = 99
    status.revision.add(id="r").ready.CopyFrom(model.Condition.FromString(b"\x08\x63"))
    assert "readiness was never reported" in await explained(status, mark(ready=False, heard_ms=1 << 62), target=99)


async def test_a_revision_of_the_spec_without_a_target_is_wanted_installed() -> None:
    world, still = World(), SteppedReplica()
    still.list(world.records(), world.version)
    still.apply(Batch(9, [KeyChange(KEYS.spec("a"), spec_value("a", revision=[{"id": "r"}]), 9, 9)]))
    (told,) = (await still.registry.explain.explain("a", None)).revision
    assert told.target == model.REVISION_TARGET_INSTALLED


@in_virtual_time
async def test_a_not_ready_report_after_a_silence_is_not_explained_as_silence() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        agent = await ready(simulation, registry)
        await asyncio.sleep(700)
        silent = (await registry.explain.explain("a", None)).revision[0].summary
        assert silent.startswith("expired: no report for")
        report = agent.request("the disk is full")
        report.revision.ready.status = model.CONDITION_STATUS_FALSE
        await registry.reports.report(report, simulation.now + 5)
        back = (await registry.explain.explain("a", None)).revision[0].summary
        assert back == "not ready, reported by its agent: the disk is full"


@in_virtual_time
async def test_a_replica_that_has_just_started_names_no_report_it_did_not_hear() -> None:
    async with Simulation() as simulation:
        agent = await ready(simulation, (await simulation.start_replica()).registry)
        registry = (await simulation.start_replica()).registry
        await asyncio.sleep(6)
        (told,) = (await registry.explain.explain("a", None)).revision
        assert told.HasField("not_since")
        assert "no report since this replica started to listen at " in told.summary
        assert "last report" not in told.summary
        await registry.reports.report(agent.request(), simulation.now + 5)
        await asyncio.sleep(3)
        (told,) = (await registry.explain.explain("a", None)).revision
        assert not told.HasField("not_since")
        assert told.summary.startswith("ready; last report 3 s ago")


@in_virtual_time
async def test_a_replica_does_not_list_replicas_known_only_from_old_records() -> None:
    async with Simulation() as simulation:
        first = await simulation.start_replica()
        name = first.registry.replica.config.replica
        await first.registry.replica.compactor.once()  # a start replays what came since
        await asyncio.sleep(10)
        await simulation.stop_replica(first)
        registry = (await simulation.start_replica()).registry
        assert name not in [info.replica for info in registry.admin.replicas()]
