"""Strategies for well-formed statuses and reports."""

from functools import cache

from hypothesis import strategies as st

from hqpb.v1 import instance_pb2 as pb
from hqpb.v1.service_pb2 import ReportStatusRequest
from tests.support import value_strategies as words
from tests.support.arbitrary_messages import draw_unknown_fields


@cache
@st.composite
def reports(draw: st.DrawFn) -> ReportStatusRequest:
    """What an agent sends, with conditions, containers, times and some unknown fields."""
    report = ReportStatusRequest(
        instance_id=draw(words.ids(max_size=40)),
        uid=draw(st.integers(1, (1 << 63) - 1)),
        node=draw(words.ids(max_size=40)),
        revision=draw(revision_statuses()),
        unsettled=draw(st.booleans()),
    )
    return draw_unknown_fields(draw, report)


@st.composite
def instance_statuses(draw: st.DrawFn, revision_ids: list[str]) -> pb.InstanceStatus:
    """A status as HQ serves it: last_heartbeat_time is the latest heartbeat."""
    status = pb.InstanceStatus(ready=draw(conditions()))
    for revision_id in revision_ids:
        status.revision.add().MergeFrom(draw(revision_statuses()))
        status.revision[-1].id = revision_id
        status.heartbeat[revision_id].CopyFrom(draw(words.timestamps()))
    if revision_ids:
        latest = max(status.heartbeat.values(), key=lambda time: (time.seconds, time.nanos))
        status.last_heartbeat_time.CopyFrom(latest)
    return draw_unknown_fields(draw, status)


@cache
@st.composite
def revision_statuses(draw: st.DrawFn) -> pb.RevisionStatus:
    status = pb.RevisionStatus(
        id=draw(words.ids(max_size=40)),
        installed=draw(st.none() | conditions()),
        ready=draw(st.none() | conditions()),
        incarnation=draw(st.integers(1, (1 << 64) - 1)),
        sequence=draw(st.integers(1, (1 << 64) - 1)),
        spec_version=draw(st.integers(0, 1 << 40)),
    )
    status.container.extend(draw(st.lists(container_statuses(), max_size=3, unique_by=lambda it: it.name)))
    return draw_unknown_fields(draw, status)


@cache
def conditions() -> st.SearchStrategy[pb.Condition]:
    return st.builds(
        pb.Condition,
        status=st.sampled_from(pb.ConditionStatus.values()),
        reason=words.reasons(),
        message=st.text(max_size=40),
        last_transition_time=st.none() | words.timestamps(),
    )


@cache
def receipts() -> st.SearchStrategy[pb.Receipt]:
    return st.builds(
        pb.Receipt,
        last_heartbeat_time=st.none() | words.timestamps(),
        heard_by=words.ids(max_size=20),
        guard_verdict=st.text(max_size=20),
        decided_at_version=st.integers(0, 1 << 40),
        silence=st.none() | words.durations(),
    )


@cache
def container_statuses() -> st.SearchStrategy[pb.ContainerStatus]:
    return st.builds(
        pb.ContainerStatus,
        name=words.names(),
        ready=st.booleans(),
        state=st.none() | container_states(),
        restart_count=st.integers(0, (1 << 32) - 1),
        last_termination=st.none() | terminations(),
    )


@cache
def container_states() -> st.SearchStrategy[pb.ContainerState]:
    waiting = st.builds(pb.ContainerWaiting, reason=words.reasons(), message=st.text(max_size=20))
    running = st.builds(pb.ContainerRunning, start_time=st.none() | words.timestamps())
    return st.one_of(
        waiting.map(lambda it: pb.ContainerState(waiting=it)),
        running.map(lambda it: pb.ContainerState(running=it)),
        terminations().map(lambda it: pb.ContainerState(terminated=it)),
    )


@cache
def terminations() -> st.SearchStrategy[pb.ContainerTerminated]:
    return st.builds(
        pb.ContainerTerminated,
        exit_code=st.integers(-(1 << 31), (1 << 31) - 1),
        signal=st.integers(0, 64),
        reason=words.reasons(),
        message=st.text(max_size=20),
        start_time=st.none() | words.timestamps(),
        finish_time=st.none() | words.timestamps(),
    )
