"""How Wall-E reads a real replica's answers about a node that dies, in virtual time."""

from __future__ import annotations

import asyncio

from hq.memory.entry import frames_of
from hq.memory.query import Query
from hq.registry.registry import Registry
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.instance_pb2 import CONDITION_STATUS_FALSE
from tests.support.sample_instances import instance
from tests.support.simulated_agents import Reporter
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time
from walle.checks import reports

TIMEOUT_S, INTERVAL_S = 600, 180


async def failing(simulation: Simulation, registry: Registry) -> dict[str, bool]:
    found = await registry.reads.find(Query(pb.InstanceFilter()), 0, "", pb.ReadOptions(), simulation.now + 5)
    answer = pb.FindInstancesResponse.FromString(b"".join(frames_of(found.entries)))
    return {one.host: one.check[0].failing for one in reports(answer.instances)}


@in_virtual_time
async def test_a_dead_node_is_unreachable_even_if_an_instance_on_it_was_never_ready() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await simulation.add_agents(2, nodes=2)
        await registry.writes.create(instance("never", node="node-1"), "", simulation.now + 5, validate_only=False)
        never = await Reporter(simulation, "never").begin(registry)

        async def report() -> None:
            request = never.request()
            request.revision.ready.status, request.revision.ready.reason = CONDITION_STATUS_FALSE, "CrashLoop"
            await registry.reports.report(request, simulation.now + 5)

        for _ in range(4):
            await report()
            assert await failing(simulation, registry) == {"node-0": False, "node-1": False}
            await asyncio.sleep(INTERVAL_S)
        simulation.agents[1].fall_silent()  # the other agent of node-1 goes on
        for _ in range(5):
            await report()
            await asyncio.sleep(INTERVAL_S)
        assert await failing(simulation, registry) == {"node-0": False, "node-1": False}
        await asyncio.sleep(TIMEOUT_S + INTERVAL_S)
        assert await failing(simulation, registry) == {"node-0": False, "node-1": True}
        await report()
        assert await failing(simulation, registry) == {"node-0": False, "node-1": False}
