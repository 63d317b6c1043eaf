"""The reporting calls over a replica in memory: who may report, what a report changes, what is a mere heartbeat."""

from __future__ import annotations

import pytest

from hq.errors import Fenced, NotBegun, OutdatedReport, UnknownRevision, WrongNode, WrongUid
from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest, NotFound
from tests.support.in_process_replica import running
from tests.support.sample_instances import instance
from tests.support.writes import soon

TRUE, FALSE = model.CONDITION_STATUS_TRUE, model.CONDITION_STATUS_FALSE


class Reporter:
    """An agent that calls the registry directly."""

    def __init__(self, registry: Registry, revision: str = "r1") -> None:
        self.registry, self.revision = registry, revision
        self.incarnation = self.uid = self.sequence = 0

    async def begin(self) -> Reporter:
        begun = await self.registry.reports.begin("a-1", self.revision, "node-1", soon())
        self.incarnation, self.uid, self.sequence = begun.incarnation, begun.uid, 0
        return self

    def request(self, ready: int = TRUE, message: str = "", sequence: int = 0) -> pb.ReportStatusRequest:
        self.sequence = sequence or self.sequence + 1
        status = model.RevisionStatus(id=self.revision, incarnation=self.incarnation, sequence=self.sequence)
        status.ready.status = ready  # type: ignore[assignment]
        status.ready.message = message
        return pb.ReportStatusRequest(instance_id="a-1", uid=self.uid, node="node-1", revision=status)

    async def report(self, ready: int = TRUE, message: str = "", sequence: int = 0) -> None:
        await self.registry.reports.report(self.request(ready, message, sequence), soon())


async def created(registry: Registry, *revisions: str) -> None:
    made = instance("a-1", revisions=revisions or ("r1",))
    await registry.writes.create(made, "", soon(), validate_only=False)


def shown(registry: Registry) -> model.Instance:
    entry = registry.replica.cache.get("a-1")
    assert entry is not None
    return entry.instance()


async def test_a_first_report_makes_the_instance_ready() -> None:
    async with running() as registry:
        await created(registry)
        await (await Reporter(registry).begin()).report()
        status = shown(registry).status
        assert status.ready.status == TRUE
        assert status.heartbeat["r1"] == status.last_heartbeat_time


async def test_a_report_that_says_nothing_new_is_a_heartbeat_and_leaves_the_status_version() -> None:
    async with running() as registry:
        await created(registry)
        agent = await Reporter(registry).begin()
        await agent.report()
        before = shown(registry)
        await agent.report()
        after = shown(registry)
        assert after.meta.status_version == before.meta.status_version
        assert registry.replica.heartbeats.sent == 1
        assert after.status.revision == before.status.revision


async def test_an_unsettled_report_is_written_even_if_it_says_nothing_new() -> None:
    async with running() as registry:
        await created(registry)
        agent = await Reporter(registry).begin()
        await agent.report()
        before = shown(registry)
        request = agent.request()
        request.unsettled = True
        await registry.reports.report(request, soon())
        assert shown(registry).meta.status_version > before.meta.status_version
        with pytest.raises(OutdatedReport):
            await agent.report(FALSE, "late", sequence=1)


async def test_a_change_is_written_and_keeps_the_time_of_the_last_transition() -> None:
    async with running() as registry:
        await created(registry)
        agent = await Reporter(registry).begin()
        await agent.report(message="one")
        first = shown(registry).status.revision[0].ready
        await agent.report(message="two")
        second = shown(registry).status.revision[0].ready
        assert (first.message, second.message) == ("one", "two")
        assert first.last_transition_time == second.last_transition_time


async def test_an_older_sequence_never_overwrites_a_newer_one() -> None:
    async with running() as registry:
        await created(registry)
        agent = await Reporter(registry).begin()
        await agent.report(message="new", sequence=5)
        with pytest.raises(OutdatedReport):
            await agent.report(message="old", sequence=4)
        with pytest.raises(OutdatedReport):
            await agent.report(message="same number, other words", sequence=5)
        await agent.report(message="new", sequence=5)  # a repetition
        assert shown(registry).status.revision[0].ready.message == "new"


async def test_a_second_reporter_fences_the_first() -> None:
    async with running() as registry:
        await created(registry)
        first = await Reporter(registry).begin()
        await first.report()
        second = await Reporter(registry).begin()
        with pytest.raises(Fenced):
            await first.report()
        await second.report()


async def test_a_report_without_begin_reporting_is_refused() -> None:
    async with running() as registry:
        await created(registry)
        agent = Reporter(registry)
        agent.incarnation, agent.uid = 1, shown(registry).meta.uid
        with pytest.raises(NotBegun, match="BeginReporting"):
            await agent.report()


async def test_each_reason_to_stop_has_its_own_error() -> None:
    async with running() as registry:
        await created(registry)
        agent = await Reporter(registry).begin()
        for change, error in (
            ({"instance_id": "a-2"}, NotFound),
            ({"node": "node-2"}, WrongNode),
            ({"uid": agent.uid + 1}, WrongUid),
        ):
            request = agent.request()
            request.MergeFrom(pb.ReportStatusRequest(**change))
            with pytest.raises(error):
                await registry.reports.report(request, soon())
        unknown = agent.request()
        unknown.revision.id = "r9"
        with pytest.raises(UnknownRevision):
            await registry.reports.report(unknown, soon())


async def test_a_report_for_an_earlier_uid_is_refused_as_such() -> None:
    async with running() as registry:
        await created(registry)
        agent = await Reporter(registry).begin()
        await registry.writes.delete("a-1", Precondition(), soon())
        await created(registry)
        with pytest.raises(WrongUid):
            await agent.report()


async def test_containers_are_checked_only_against_the_spec_that_the_agent_acted_on() -> None:
    async with running() as registry:
        await created(registry)
        agent = await Reporter(registry).begin()
        request = agent.request()
        request.revision.container.add(name="stranger")
        request.revision.spec_version = shown(registry).meta.version
        with pytest.raises(InvalidRequest, match="stranger"):
            await registry.reports.report(request, soon())
        request.revision.spec_version -= 1
        await registry.reports.report(request, soon())


async def test_a_batch_answers_each_report_for_itself() -> None:
    async with running() as registry:
        await created(registry, "r1", "r2")
        one = await Reporter(registry, "r1").begin()
        two = await Reporter(registry, "r2").begin()
        stranger = one.request()
        stranger.node = "node-9"
        results = await registry.reports.report_many([one.request(), stranger, two.request(FALSE)], soon())
        assert results[0] is None
        assert isinstance(results[1], WrongNode)
        assert results[2] is None
        status = {r.id: r.ready.status for r in shown(registry).status.revision}
        assert status == {"r1": TRUE, "r2": FALSE}


async def test_two_revisions_are_judged_and_reported_separately() -> None:
    async with running() as registry:
        await created(registry, "r1", "r2")
        old, new = await Reporter(registry, "r1").begin(), await Reporter(registry, "r2").begin()
        await old.report()
        await new.report()
        await old.report(FALSE, "replaced")
        assert shown(registry).status.ready.status == TRUE
        await new.report(FALSE, "gone")
        ready = shown(registry).status.ready
        assert (ready.status, ready.message) == (FALSE, "revision r2: gone")


async def test_errors_that_make_an_agent_stop_name_the_epoch() -> None:
    """In another epoch than the one that knew the instance, no agent stops for them (docs/decisions/011)."""
    async with running() as registry:
        await created(registry)
        agent = await Reporter(registry).begin()
        fenced, elsewhere, unknown, gone, another = (agent.request() for _ in range(5))
        fenced.revision.incarnation += 1
        elsewhere.node, unknown.revision.id, gone.instance_id, another.uid = "node-2", "r9", "a-9", 9
        for report, kind in (
            (fenced, Fenced),
            (elsewhere, WrongNode),
            (unknown, UnknownRevision),
            (gone, NotFound),
            (another, WrongUid),
        ):
            with pytest.raises(kind) as told:
                await registry.reports.report(report, soon())
            assert told.value.metadata["epoch"] == registry.replica.cache.epoch
