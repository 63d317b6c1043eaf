"""Agents of simulated replicas that a test calls one by one, and the heartbeats that come of it."""

from __future__ import annotations

import asyncio

from hq import keys as k
from hq.liveness.heartbeats import Heartbeat
from hq.registry.registry import Registry
from hq.replica import Replica
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from store.memory import MemoryStore
from store.port import KeyChange
from tests.support.sample_instances import instance
from tests.support.simulation import Simulation

NAMES = k.HqKeys()


class Reporter:
    """An agent that the test calls."""

    def __init__(
        self, simulation: Simulation, instance_id: str = "a", revision: str = "r1", node: str = "node-1"
    ) -> None:
        self.simulation, self.instance_id, self.revision, self.node = simulation, instance_id, revision, node
        self.incarnation = self.uid = self.sequence = 0

    async def begin(self, registry: Registry) -> Reporter:
        deadline = self.simulation.now + 5
        begun = await registry.reports.begin(self.instance_id, self.revision, self.node, deadline)
        self.incarnation, self.uid = begun.incarnation, begun.uid
        return self

    def request(self, message: str = "") -> pb.ReportStatusRequest:
        self.sequence += 1
        status = model.RevisionStatus(id=self.revision, incarnation=self.incarnation, sequence=self.sequence)
        status.ready.status = model.CONDITION_STATUS_TRUE
        status.ready.message = message
        return pb.ReportStatusRequest(instance_id=self.instance_id, uid=self.uid, node=self.node, revision=status)

    async def report(self, registry: Registry, message: str = "") -> None:
        await registry.reports.report(self.request(message), self.simulation.now + 5)


async def ready(simulation: Simulation, registry: Registry, instance_id: str = "a") -> Reporter:
    """An instance that is ready, and its agent."""
    made = instance(instance_id)
    await registry.writes.create(made, "", simulation.now + 5, validate_only=False)
    reporter = await Reporter(simulation, instance_id).begin(registry)
    await reporter.report(registry)
    return reporter


def heartbeat_of(replica: Replica, instance_id: str = "a", position: int = 0) -> Heartbeat:
    entry = replica.cache.get(instance_id)
    assert entry is not None
    return Heartbeat(entry.traits.uid, entry.status_version, position)


async def batches(store: MemoryStore) -> list[KeyChange]:
    """Every batch of heartbeats ever stored."""
    _, head = await store.get(b"")
    found: list[KeyChange] = []
    async with store.watch(NAMES.heartbeats, k.prefix_end(NAMES.heartbeats), after=0) as stream:
        try:
            async with asyncio.timeout(1):
                async for batch in stream:
                    found += batch.changes
        except TimeoutError:
            assert all(change.revision <= head for change in found)
    return found
