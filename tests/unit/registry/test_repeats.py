"""The quick way for heartbeats takes only plain repetitions; other reports go the long way, which says why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hq.liveness.heartbeats import Heartbeat, heartbeat_of
from hq.memory import statuses
from hqpb.v1 import instance_pb2, service_pb2
from tests.support.cache_and_tracker import HEARD, CacheAndTracker

Change = Callable[[service_pb2.ReportStatusRequest], None]


@pytest.fixture
def stage() -> CacheAndTracker:
    stage = CacheAndTracker()
    stage.create("a", uid=7, node="n1", revisions="r1 r2")
    report = _report().revision
    stage.change(lambda draft: draft.begin("r2", 3, HEARD))
    stage.change(lambda draft: draft.begin("r1", 3, HEARD))
    stage.change(lambda draft: draft.report(report, HEARD, statuses.digest(report)))
    return stage


def _report() -> service_pb2.ReportStatusRequest:
    revision = instance_pb2.RevisionStatus(id="r1", incarnation=3, sequence=5)
    revision.ready.status = instance_pb2.CONDITION_STATUS_TRUE
    return service_pb2.ReportStatusRequest(instance_id="a", uid=7, node="n1", revision=revision)


def _unsettled(sequence: int) -> service_pb2.ReportStatusRequest:
    return service_pb2.ReportStatusRequest(unsettled=True, revision=instance_pb2.RevisionStatus(sequence=sequence))


def _heartbeat_of(stage: CacheAndTracker, report: service_pb2.ReportStatusRequest) -> Heartbeat | None:
    return heartbeat_of(stage.entry(), report, statuses.digest(report.revision))


@pytest.mark.parametrize("sequence", [5, 6, 1_000])
def test_a_repeated_report_is_a_heartbeat(stage: CacheAndTracker, sequence: int) -> None:
    report = _report()
    report.revision.sequence = sequence
    marks = [mark.id for mark in stage.entry().marks]
    assert _heartbeat_of(stage, report) == Heartbeat(7, stage.entry().status_version, marks.index("r1"))


DIFFERENT: dict[str, Change] = {
    "another uid": lambda r: setattr(r, "uid", 8),
    "no uid": lambda r: setattr(r, "uid", 0),
    "another node": lambda r: setattr(r, "node", "n2"),
    "another reporter": lambda r: setattr(r.revision, "incarnation", 4),
    "an older report": lambda r: setattr(r.revision, "sequence", 4),
    "no sequence": lambda r: setattr(r.revision, "sequence", 0),
    "another revision": lambda r: setattr(r.revision, "id", "r2"),
    "an unknown revision": lambda r: setattr(r.revision, "id", "r9"),
    "not ready any more": lambda r: setattr(r.revision.ready, "status", instance_pb2.CONDITION_STATUS_FALSE),
    "another message": lambda r: setattr(r.revision.ready, "message", "news"),
    "unsettled": lambda r: r.MergeFrom(_unsettled(6)),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_report_that_differs_in_any_field_goes_the_long_way(stage: CacheAndTracker, what: str) -> None:
    report = _report()
    DIFFERENT[what](report)
    assert _heartbeat_of(stage, report) is None


def test_the_stored_report_is_a_heartbeat_even_if_unsettled(stage: CacheAndTracker) -> None:
    report = _report()
    report.unsettled = True
    assert _heartbeat_of(stage, report) is not None


def test_a_revision_that_left_the_spec_goes_the_long_way(stage: CacheAndTracker) -> None:
    stage.create("a", uid=7, node="n1", revisions="r2")
    assert _heartbeat_of(stage, _report()) is None


def test_an_expired_revision_goes_the_long_way(stage: CacheAndTracker) -> None:
    stage.change(lambda draft: draft.expire("r1", instance_pb2.Receipt(decided_by="another"), 1))
    assert _heartbeat_of(stage, _report()) is None
