"""One agent's reports, however many or large, do not affect other agents."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from hq.api.agents import Agents
from hq.registry.registry import Registry
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import InvalidRequest
from tests.support.sample_instances import instance
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time


async def report_unknown(registry: Registry, node: str, count: int) -> None:
    begin = [pb.BeginReportingRequest(instance_id=f"{node}-{n}", revision_id="r1", node=node) for n in range(count)]
    await Agents(registry).begin_many(pb.BeginReportingsRequest(begin=begin), Call())


@in_virtual_time
async def test_the_store_is_not_doubted_because_of_one_agent() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        for node in ("node-1", "node-2"):
            made = instance(f"web-{node}", node=node)
            await registry.writes.create(made, "", simulation.now + 10, validate_only=False)
        trust = registry.replica.trust
        for _ in range(3):
            await report_unknown(registry, "node-1", 100)
            await asyncio.sleep(120)
        assert (trust.unknown_reported(), trust.standing().doubt()) == (100, "")
        for _ in range(3):
            await report_unknown(registry, "node-1", 100)
            await report_unknown(registry, "node-2", 3)
            await asyncio.sleep(120)
        assert "agents report 6 instances that the store does not have; it holds 2" in trust.standing().doubt()


async def test_a_batch_of_reports_with_too_many_containers_is_refused_at_once() -> None:
    """A container takes two bytes: otherwise one call could stop the replica for seconds."""
    report = pb.ReportStatusRequest(instance_id="web-1", uid=1, node="n1")
    report.revision.container.add()
    for _ in range(10):
        report.revision.container.MergeFrom(report.revision.container[:])
    calls = Agents(cast("Registry", None))  # it is not asked
    with pytest.raises(InvalidRequest, match=r"report\.container: 20480 items are too many"):
        await calls.report_many(pb.ReportStatusesRequest(report=[report] * 20), Call())
