"""BeginReportings over a replica in memory: each item for itself, those of one instance in one write."""

from __future__ import annotations

import pytest

from hq.errors import Fenced
from hq.registry.registry import Registry
from hq.registry.reports import ReporterGrant
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import ServiceError
from tests.support.in_process_replica import running
from tests.support.sample_instances import instance
from tests.support.writes import soon


def begin(instance_id: str, revision: str = "r1", node: str = "node-1") -> pb.BeginReportingRequest:
    return pb.BeginReportingRequest(instance_id=instance_id, revision_id=revision, node=node)


def status_version(registry: Registry, instance_id: str) -> int:
    entry = registry.replica.cache.get(instance_id)
    assert entry is not None
    return entry.status_version


def reasons(outcomes: list[ReporterGrant | ServiceError]) -> list[str]:
    return [outcome.reason if isinstance(outcome, ServiceError) else "" for outcome in outcomes]


async def test_each_item_is_answered_for_itself_and_in_order() -> None:
    async with running() as registry:
        for name in ("a-1", "a-2"):
            await registry.writes.create(instance(name, revisions=("r1", "r2")), "", soon(), validate_only=False)
        asked = [
            *(begin("a-1"), begin("nowhere"), begin("a-1", "r9"), begin("a-2", node="node-9")),
            *(begin("a-1", "r2"), begin("a-2"), begin("a 2"), begin("a-1")),
        ]
        outcomes = await registry.reports.begin_many(asked, soon())
        bad = ["NOT_FOUND", "UNKNOWN_REVISION", "WRONG_NODE"]
        assert reasons(outcomes) == ["", *bad, "", "", "INVALID_REQUEST", "INVALID_REQUEST"]
        assert "begin[6].instance_id" in str(outcomes[6])
        assert "begin[0]" in str(outcomes[7])
        words = [outcome.incarnation for outcome in outcomes if isinstance(outcome, ReporterGrant)]
        assert len(set(words)) == 3


async def test_all_revisions_of_one_instance_are_begun_in_one_write() -> None:
    async with running() as registry:
        await registry.writes.create(instance("a-1", revisions=("r1", "r2", "r3")), "", soon(), validate_only=False)
        before = status_version(registry, "a-1")
        outcomes = await registry.reports.begin_many([begin("a-1", f"r{n}") for n in (1, 2, 3)], soon())
        assert status_version(registry, "a-1") == before + 1
        entry = registry.replica.cache.get("a-1")
        assert entry is not None
        told = [outcome.incarnation for outcome in outcomes if isinstance(outcome, ReporterGrant)]
        assert [mark.incarnation for mark in entry.marks] == told


async def test_beginning_in_a_batch_fences_an_earlier_reporter_too() -> None:
    async with running() as registry:
        await registry.writes.create(instance("a-1"), "", soon(), validate_only=False)
        first = await registry.reports.begin("a-1", "r1", "node-1", soon())
        [second] = await registry.reports.begin_many([begin("a-1")], soon())
        assert isinstance(second, ReporterGrant)
        status = model.RevisionStatus(id="r1", incarnation=first.incarnation, sequence=1)
        report = pb.ReportStatusRequest(instance_id="a-1", uid=first.uid, node="node-1", revision=status)
        with pytest.raises(Fenced):
            await registry.reports.report(report, soon())
        report.revision.incarnation = second.incarnation
        await registry.reports.report(report, soon())
