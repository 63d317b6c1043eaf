"""ListSilences over a real replica: who was heard when, in bulk."""

from __future__ import annotations

import asyncio

import pytest

from hq.memory.query import Query
from hqpb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest
from tests.support.simulated_agents import ready
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time

ALL = Query(pb.InstanceFilter())
STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)


@in_virtual_time
async def test_a_ready_instance_is_as_silent_as_its_last_report_is_old() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await asyncio.sleep(1)  # what is heard at the moment of the start proves nothing
        await ready(simulation, registry)
        await asyncio.sleep(100)
        answer = await registry.silences.list(ALL, 0, "", STRONG, None)
        [silence] = answer.silences
        assert 99_000 < silence.silent_ms < 102_000
        assert silence.uid
        assert answer.report_interval.ToSeconds() > 0
        assert 0 < answer.changed_version <= answer.sources[0].version


@in_virtual_time
async def test_an_instance_on_a_suspended_node_is_marked_and_its_silence_not_given() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await ready(simulation, registry)
        await registry.admin.suspend("node-1", 60_000, "ann", "new disk", simulation.now + 5)
        await asyncio.sleep(5)
        (during,) = (await registry.silences.list(ALL, 0, "", STRONG, None)).silences
        assert (during.node_suspended, during.HasField("silent_ms")) == (True, False)
        await asyncio.sleep(60)
        (after,) = (await registry.silences.list(ALL, 0, "", STRONG, None)).silences
        assert not after.node_suspended


@in_virtual_time
async def test_a_replica_that_has_just_started_says_that_it_heard_nobody() -> None:
    async with Simulation() as simulation:
        await ready(simulation, (await simulation.start_replica()).registry)
        await asyncio.sleep(5)
        late = (await simulation.start_replica()).registry
        answer = await late.silences.list(ALL, 0, "", STRONG, None)
        assert [silence.HasField("silent_ms") for silence in answer.silences] == [False]


@in_virtual_time
async def test_pages_follow_each_other_and_a_token_belongs_to_its_filter() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        for name in ("a", "b", "c"):
            await ready(simulation, registry, name)
        first = await registry.silences.list(ALL, 2, "", pb.ReadOptions(), None)
        second = await registry.silences.list(ALL, 2, first.next_page_token, pb.ReadOptions(), None)
        assert [s.instance_id for s in (*first.silences, *second.silences)] == ["a", "b", "c"]
        assert not second.next_page_token
        other = Query(pb.InstanceFilter(service_id=["web"]))
        with pytest.raises(InvalidRequest):
            await registry.silences.list(other, 2, first.next_page_token, pb.ReadOptions(), None)
