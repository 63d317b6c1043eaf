"""What the host agent carries, and what it never does, over real sockets on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from hqclient.errors import HqApiError, decode
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.service_stubs import InstanceServiceStub
from serving.errors import NotFound, Retry
from tests.clients.instancectl.host_agents import short_directory
from tests.clients.instancectl.recording_hq import NODE, RecordingHq, carried, instance, report, served
from tests.support.sample_instances import eventually

UNKNOWN_FIELD = b"\xfa\x3e\x03new"  # field 1007, which no message of ours has


@pytest.fixture
def hq() -> RecordingHq:
    return RecordingHq()


@pytest.fixture
def socket() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory / "agent.sock"


@pytest.fixture
async def agent(hq: RecordingHq, socket: Path) -> AsyncIterator[InstanceServiceStub]:
    """A host agent before the recording HQ, as a supervisor calls it."""
    async with served(hq) as address, carried([address], socket) as stub:
        yield stub


async def refusal(call: Any) -> HqApiError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return decode(caught.value)


def newer(message: Any) -> Any:
    """The message with a field that nobody here knows."""
    return type(message).FromString(message.SerializeToString() + UNKNOWN_FIELD)


async def test_reports_of_many_supervisors_are_one_call_with_the_messages_as_they_came(
    hq: RecordingHq, agent: InstanceServiceStub
) -> None:
    reports = [newer(report(f"i-{n}")) for n in range(20)]
    answers = await asyncio.gather(*(agent.ReportStatus(one) for one in reports))
    assert [answer.next_report_in.seconds for answer in answers] == [pytest.approx(100, abs=1)] * 20
    sent = [one.SerializeToString() for body in hq.asked["ReportStatuses"] for one in _reports(body)]
    assert sorted(sent) == sorted(one.SerializeToString() for one in reports)
    assert len(hq.asked["ReportStatuses"]) < 5


def _reports(body: bytes) -> list[pb.ReportStatusRequest]:
    return list(pb.ReportStatusesRequest.FromString(body).report)


async def test_a_node_that_is_powered_up_begins_in_one_call(hq: RecordingHq, agent: InstanceServiceStub) -> None:
    begin = [pb.BeginReportingRequest(instance_id=f"i-{n}", revision_id="r1", node=NODE) for n in range(20)]
    answers = await asyncio.gather(*(agent.BeginReporting(one) for one in begin))
    assert len({answer.incarnation for answer in answers}) == 20
    assert len(hq.asked["BeginReportings"]) == 1


async def test_the_refusal_of_an_item_reaches_its_own_supervisor_in_hqs_words(
    hq: RecordingHq, agent: InstanceServiceStub
) -> None:
    errors = {
        "i-1": pb.ItemError(code=9, reason="FENCED", message="stop"),
        "i-2": pb.ItemError(code=3, reason="INVALID_REQUEST", message="is 0", field="report[1].uid"),
        "i-3": pb.ItemError(code=14, reason="STORE_UNAVAILABLE", message="later"),
    }

    def answer(body: bytes) -> bytes:
        results = [pb.ReportResult(error=errors.get(one.instance_id)) for one in _reports(body)]
        return pb.ReportStatusesResponse(result=results).SerializeToString()

    hq.answers["ReportStatuses"] = answer
    good, fenced, invalid, later = (agent.ReportStatus(report(f"i-{n}")) for n in range(4))
    told = [await refusal(call) for call in (fenced, invalid, later)]
    await good
    assert [error.reason for error in told] == ["FENCED", "INVALID_REQUEST", "STORE_UNAVAILABLE"]
    assert told[1].code is grpc.StatusCode.INVALID_ARGUMENT
    assert told[1].violations[0].field.endswith("uid")
    assert told[2].nothing_stored


async def test_a_message_nested_too_deeply_for_a_batch_is_refused_alone(
    hq: RecordingHq, socket: Path, agent: InstanceServiceStub
) -> None:
    deep = report("evil").SerializeToString() + b"\xfb\x3e" * 100 + b"\xfc\x3e" * 100  # groups, as deep as may be
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        raw: Any = channel.unary_unary("/hq.v1.InstanceService/ReportStatus")
        evil, good = raw(deep), agent.ReportStatus(report("i-1"))
        assert (await refusal(evil)).reason == "INVALID_REQUEST"
        await good


async def test_get_revision_is_passed_on_with_secrets_unknown_fields_and_the_deadline(
    hq: RecordingHq, agent: InstanceServiceStub
) -> None:
    secret = model.InstanceRevision(id="r1")
    hq.answers["GetRevision"] = lambda _: pb.GetRevisionResponse(revision=[secret]).SerializeToString() + UNKNOWN_FIELD
    request = newer(pb.GetRevisionRequest(instance_id="i-1", node=NODE))
    answer = await agent.GetRevision(request, timeout=8.0)
    assert answer.SerializeToString().endswith(UNKNOWN_FIELD)
    assert hq.asked["GetRevision"] == [request.SerializeToString()]
    assert 3.0 < hq.left_s[-1] <= 8.0


async def test_hqs_refusals_keep_their_details(hq: RecordingHq, agent: InstanceServiceStub) -> None:
    def gone(_: bytes) -> bytes:
        error = NotFound("there is no instance i-1")
        error.epoch = "e-7"
        raise error

    hq.answers["GetRevision"] = gone
    error = await refusal(agent.GetRevision(pb.GetRevisionRequest(instance_id="i-1", node=NODE)))
    assert (error.reason, error.metadata["epoch"], error.from_hq) == ("NOT_FOUND", "e-7", True)


@pytest.mark.parametrize("node", ["node-2", ""])
async def test_hq_is_never_asked_for_anything_of_another_node(
    hq: RecordingHq, agent: InstanceServiceStub, node: str
) -> None:
    calls = (
        agent.GetRevision(pb.GetRevisionRequest(instance_id="i-1", node=node)),
        agent.BeginReporting(pb.BeginReportingRequest(instance_id="i-1", revision_id="r1", node=node)),
        agent.ReportStatus(report("i-1", node=node)),
    )
    for call in calls:
        error = await refusal(call)
        assert error.reason == "PERMISSION_DENIED"
        assert NODE in error.message
    assert not hq.asked


async def test_an_instance_of_another_node_is_not_passed_on(hq: RecordingHq, agent: InstanceServiceStub) -> None:
    found = instance("i-1")
    hq.answers["GetInstance"] = lambda _: pb.GetInstanceResponse(instance=found).SerializeToString()
    assert (await agent.GetInstance(pb.GetInstanceRequest(id="i-1"))).instance.meta.id == "i-1"
    found.spec.node_name = "node-2"
    assert (await refusal(agent.GetInstance(pb.GetInstanceRequest(id="i-1")))).reason == "NOT_FOUND"
    masked = pb.GetInstanceRequest(id="i-1", field_mask={"paths": ["meta"]})
    assert (await refusal(agent.GetInstance(masked))).reason == "INVALID_REQUEST"


async def test_calls_that_are_not_for_supervisors_are_unimplemented(agent: InstanceServiceStub) -> None:
    for call in (agent.FindInstances(pb.FindInstancesRequest()), agent.DeleteInstance(pb.DeleteInstanceRequest())):
        assert (await refusal(call)).code is grpc.StatusCode.UNIMPLEMENTED


async def test_a_report_without_an_answer_is_not_repeated_and_its_outcome_is_open(
    hq: RecordingHq, agent: InstanceServiceStub
) -> None:
    async def never(_: bytes) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError

    hq.answers["ReportStatuses"] = never

    async def is_told() -> bool:
        hq.asked.clear()
        error = await refusal(agent.ReportStatus(report("i-1"), timeout=1.0))
        if not error.from_hq:  # its caller has stopped waiting meanwhile
            return False
        assert error.outcome_unknown
        assert len(hq.asked["ReportStatuses"]) == 1
        return True

    await eventually(is_told, what="the host agent's word, in a try during which this machine does not stall")


async def test_a_batch_has_a_short_deadline_even_if_a_caller_would_wait_for_hours(
    hq: RecordingHq, agent: InstanceServiceStub
) -> None:
    await asyncio.gather(agent.ReportStatus(report("i-1"), timeout=3_600.0), agent.ReportStatus(report("i-2")))
    assert hq.left_s[-1] <= 10.0


async def test_a_batched_call_carries_no_callers_request_id_and_a_single_call_does(
    hq: RecordingHq, agent: InstanceServiceStub
) -> None:
    mine = (("x-request-id", "mine"),)
    await asyncio.gather(agent.ReportStatus(report("i-1"), metadata=mine), agent.ReportStatus(report("i-2")))
    assert "mine" not in hq.request_ids
    hq.answers["GetRevision"] = lambda _: b""
    await agent.GetRevision(pb.GetRevisionRequest(instance_id="i-1", node=NODE), metadata=mine)
    assert hq.request_ids[-1] == "mine"


async def test_another_replica_is_asked_only_where_the_first_surely_stored_nothing(socket: Path) -> None:
    busy, other = RecordingHq(), RecordingHq()

    def refuse(_: bytes) -> bytes:
        raise Retry("not now", 0.1)

    busy.answers["ReportStatuses"] = refuse
    async with served(busy) as one, served(other) as two, carried([one, two], socket) as agent:
        for sequence in range(1, 6):
            await agent.ReportStatus(report("i-1", sequence))
    assert len(other.asked["ReportStatuses"]) == 5


# --- the watch ------------------------------------------------------------------------------------------------------


def message(kind: pb.WatchKind, *events: pb.WatchEvent, token: str = "t") -> pb.WatchInstancesResponse:
    return pb.WatchInstancesResponse(kind=kind, events=events, resume_token=token)


def put(name: str, version: int = 1) -> pb.WatchEvent:
    return pb.WatchEvent(put=instance(name, version), version=version)


async def next_of(call: Any) -> tuple[str, list[str]]:
    async with asyncio.timeout(30):
        got = await call.read()
    names = [event.put.meta.id if event.HasField("put") else f"-{event.delete.id}" for event in got.events]
    return pb.WatchKind.Name(got.kind).removeprefix("WATCH_KIND_"), names


def watch_of(agent: InstanceServiceStub, *names: str, token: str = "") -> Any:
    return agent.WatchInstances(pb.WatchInstancesRequest(filter={"instance_id": names}, resume_token=token))


async def test_one_watch_by_node_serves_all_supervisors_each_with_its_own_instance(
    hq: RecordingHq, agent: InstanceServiceStub
) -> None:
    await eventually(lambda: hq.streams)
    assert hq.watched[0].filter == pb.InstanceFilter(node_name=[NODE])
    for told in (message(pb.WATCH_KIND_SNAPSHOT, put("i-1"), put("i-2"), token=""), message(pb.WATCH_KIND_SYNCED)):
        hq.streams[0].put_nowait(told)
    one, two = watch_of(agent, "i-1"), watch_of(agent, "i-2")
    for call, name in ((one, "i-1"), (two, "i-2")):
        assert [await next_of(call), await next_of(call)] == [("SNAPSHOT", [name]), ("SYNCED", [])]
    gone = pb.WatchEvent(delete=pb.InstanceRef(id="i-2"), version=8)
    for told in (
        message(pb.WATCH_KIND_EVENTS, put("i-2", 7)),
        message(pb.WATCH_KIND_EVENTS, gone),
        message(pb.WATCH_KIND_BOOKMARK),
    ):
        hq.streams[0].put_nowait(told)
    assert [await next_of(two) for _ in range(3)] == [("EVENTS", ["i-2"]), ("EVENTS", ["-i-2"]), ("BOOKMARK", [])]
    assert await next_of(one) == ("BOOKMARK", []), "it hears nothing of its neighbour"
    assert len(hq.streams) == 1
    later = watch_of(agent, "i-1", token="host-agent")
    assert [(await next_of(later))[0] for _ in range(3)] == ["RESYNC", "SNAPSHOT", "SYNCED"]


async def test_lost_continuity_is_told_to_everybody_with_the_state_as_it_is(
    hq: RecordingHq, agent: InstanceServiceStub
) -> None:
    await eventually(lambda: hq.streams)
    for told in (message(pb.WATCH_KIND_SNAPSHOT, put("i-1"), token=""), message(pb.WATCH_KIND_SYNCED)):
        hq.streams[0].put_nowait(told)
    call = watch_of(agent, "i-1")
    assert [(await next_of(call))[0] for _ in range(2)] == ["SNAPSHOT", "SYNCED"]
    for told in (message(pb.WATCH_KIND_RESYNC, token=""), message(pb.WATCH_KIND_SYNCED)):
        hq.streams[0].put_nowait(told)
    assert [await next_of(call) for _ in range(2)] == [("RESYNC", []), ("SYNCED", [])], "it is gone"


@pytest.mark.parametrize(("ids", "nodes"), [([], []), ([], [NODE]), (["i-1"], [NODE])])
async def test_a_watch_must_name_its_own_instances_and_nothing_else(
    agent: InstanceServiceStub, ids: list[str], nodes: list[str]
) -> None:
    where = pb.InstanceFilter(instance_id=ids, node_name=nodes)
    call = agent.WatchInstances(pb.WatchInstancesRequest(filter=where))
    error = await refusal(call.read())
    assert (error.reason, error.violations[0].field) == ("INVALID_REQUEST", "filter")


async def test_a_watch_names_at_most_100_instances_since_each_costs_an_authorization_check(
    agent: InstanceServiceStub,
) -> None:
    error = await refusal(watch_of(agent, *("i-1",) * 101).read())
    assert (error.reason, error.violations[0].field) == ("INVALID_REQUEST", "filter.instance_id")
