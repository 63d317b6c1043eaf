"""What reports, reporters, expiries and removals make of a status record."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hq.memory import statuses
from hq.memory.entry import NOTHING_REPORTED
from hq.memory.statuses import ReportReceipt, StatusDraft
from hqpb.v1 import instance_pb2
from tests.support.status_record import UID, Record, make_report
from tests.support.status_strategies import revision_statuses

TRUE, FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE
UNKNOWN = instance_pb2.CONDITION_STATUS_UNKNOWN


@pytest.fixture
def record() -> Record:
    return Record()


def test_a_new_instance_has_no_reported_status(record: Record) -> None:
    assert record.status.ready.status == UNKNOWN
    assert record.status.ready.reason == NOTHING_REPORTED
    assert list(record.stored.revision) == []


def test_an_instance_is_ready_when_any_of_its_revisions_is(record: Record) -> None:
    record.report(FALSE, revision_id="r1")
    assert record.status.ready.status == FALSE
    record.report(TRUE, revision_id="r2")
    assert record.status.ready.status == TRUE
    record.expire("r2")
    assert record.status.ready.status == FALSE
    assert record.status.ready.reason == statuses.HEARTBEAT_TIMEOUT


def test_a_report_is_recorded_with_its_digest_and_the_replica_that_heard_it(record: Record) -> None:
    record.report(sequence=9)
    mark = record.mark()
    assert (mark.ready, mark.sequence, mark.incarnation, mark.heard_by) == (True, 9, 5, "h1")
    assert mark.digest == statuses.digest(make_report(sequence=10))
    assert mark.heard_unix_ms == record.now_ms


def test_a_transition_time_moves_only_when_readiness_changes(record: Record) -> None:
    record.report(TRUE, message="one")
    first = record.revision().ready.last_transition_time.ToMilliseconds()
    record.report(TRUE, sequence=2, message="two")
    assert record.revision().ready.last_transition_time.ToMilliseconds() == first
    record.report(FALSE, sequence=3)
    assert record.revision().ready.last_transition_time.ToMilliseconds() > first
    assert record.status.ready.last_transition_time.ToMilliseconds() == record.now_ms


def test_a_transition_time_that_the_agent_gives_is_kept(record: Record) -> None:
    report = make_report()
    report.ready.last_transition_time.FromMilliseconds(123)
    record.change(lambda draft: draft.report(report, ReportReceipt("h1", 5), 1))
    assert record.revision().ready.last_transition_time.ToMilliseconds() == 123


def test_an_expiry_says_why_and_any_next_report_is_written(record: Record) -> None:
    record.report()
    record.expire()
    ready = record.revision().ready
    assert (ready.status, ready.reason) == (FALSE, statuses.HEARTBEAT_TIMEOUT)
    assert "601 s" in ready.message
    assert (ready.receipt.decided_by, ready.receipt.decided_at_version) == ("h2", 77)
    assert (record.mark().ready, record.mark().expired, record.mark().digest) == (False, True, 0)


def test_an_expiry_leaves_the_rest_of_the_report(record: Record) -> None:
    report = make_report()
    report.installed.status = TRUE
    report.container.add(name="web", ready=True)
    record.change(lambda draft: draft.report(report, ReportReceipt("h1", 5), 1))
    record.expire()
    assert record.revision().installed.status == TRUE
    assert record.revision().container[0].name == "web"
    assert record.mark().sequence == 1


def test_a_recovery_records_what_it_recovered_from(record: Record) -> None:
    record.report()
    record.expire()
    record.report(sequence=2)
    ready = record.revision().ready
    assert ready.status == TRUE
    assert ready.receipt.recovered_from == statuses.HEARTBEAT_TIMEOUT
    assert ready.receipt.heard_by == "h1"
    assert not record.mark().expired
    assert record.status.ready.status == TRUE


def test_the_report_after_a_recovery_bears_no_receipt(record: Record) -> None:
    record.report()
    record.expire()
    record.report(sequence=2)
    record.report(sequence=3, message="changed")
    assert not record.revision().ready.HasField("receipt")


def test_a_report_of_not_ready_keeps_an_expiry_open_and_replaces_its_condition(record: Record) -> None:
    record.report()
    record.expire()
    record.report(FALSE, sequence=2, message="disk full")
    assert record.mark().expired
    assert record.revision().ready.message == "disk full"
    assert record.mark().digest != 0


def test_a_new_reporter_starts_at_sequence_0_and_changes_no_condition(record: Record) -> None:
    record.report(sequence=50)
    before = record.revision()
    record.change(lambda draft: draft.begin("r1", 6, ReportReceipt("h2", 99)))
    mark = record.mark()
    assert (mark.incarnation, mark.sequence, mark.digest, mark.ready) == (6, 0, 0, True)
    assert record.revision().ready == before.ready
    assert record.revision().incarnation == 6


def test_a_new_reporter_of_an_unreported_revision_leaves_readiness_unknown(record: Record) -> None:
    record.change(lambda draft: draft.begin("r1", 6, ReportReceipt("h2", 99)))
    assert not record.revision().HasField("ready")
    assert record.status.ready.status == UNKNOWN


def test_a_removed_revision_takes_its_readiness_with_it(record: Record) -> None:
    record.report(TRUE, revision_id="r1")
    record.report(FALSE, revision_id="r2")
    record.change(lambda draft: draft.keep(["r2", "r3"]))
    assert [revision.id for revision in record.status.revision] == ["r2"]
    assert record.status.ready.status == FALSE


def test_an_instance_on_another_node_starts_from_nothing(record: Record) -> None:
    record.report()
    record.change(lambda draft: draft.clear())
    assert list(record.status.revision) == []
    assert list(record.stored.revision) == []
    assert record.status.ready.status == UNKNOWN


def test_a_record_whose_marks_are_missing_can_still_be_changed() -> None:
    """HQ never writes such a record; one written by others must not stop a replica."""
    status = instance_pb2.InstanceStatus()
    status.revision.add(id="r1").ready.status = TRUE
    draft = StatusDraft(UID, status, ())
    draft.expire("r1", instance_pb2.Receipt(), 1)
    assert [mark.expired for mark in draft.record(1, 1).revision] == [True]


@given(revision_statuses(), st.integers(1, 1 << 63))
@settings(deadline=None)
def test_a_digest_does_not_depend_on_the_sequence_and_leaves_the_report_as_it_was(
    report: instance_pb2.RevisionStatus, sequence: int
) -> None:
    before, digest = report.SerializeToString(deterministic=True), statuses.digest(report)
    assert report.SerializeToString(deterministic=True) == before
    report.sequence = sequence
    assert statuses.digest(report) == digest != 0


@given(revision_statuses(), revision_statuses())
@settings(deadline=None)
def test_equal_digests_mean_equal_reports(one: instance_pb2.RevisionStatus, other: instance_pb2.RevisionStatus) -> None:
    one.sequence = other.sequence = 1
    assert (statuses.digest(one) == statuses.digest(other)) == (
        one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)
    )


changes = st.lists(
    st.one_of(
        st.tuples(st.just("report"), st.sampled_from(["r1", "r2", "r3"]), st.sampled_from([TRUE, FALSE])),
        st.tuples(st.just("expire"), st.sampled_from(["r1", "r2", "r3"]), st.just(FALSE)),
        st.tuples(st.just("begin"), st.sampled_from(["r1", "r2", "r3"]), st.just(FALSE)),
        st.tuples(st.just("keep"), st.sampled_from(["r1", "r2", "r3"]), st.just(FALSE)),
    ),
    max_size=20,
)


@given(changes)
@settings(deadline=None)
def test_after_any_history_the_marks_agree_with_the_status(history: list[tuple[str, str, int]]) -> None:
    record = Record()
    for n, (what, revision_id, ready) in enumerate(history, 1):
        if what == "report":
            record.report(ready, n, revision_id)
        elif what == "expire" and any(mark.id == revision_id and mark.ready for mark in record.stored.revision):
            record.expire(revision_id)
        elif what == "begin":
            incarnation = n
            record.change(lambda draft, r=revision_id, i=incarnation: draft.begin(r, i, ReportReceipt("h", 1)))  # type: ignore[misc]
        elif what == "keep":
            record.change(lambda draft, r=revision_id: draft.keep([r]))  # type: ignore[misc]
        status = record.status
        ready_ids = {revision.id for revision in status.revision if revision.ready.status == TRUE}
        assert {mark.id for mark in record.stored.revision if mark.ready} == ready_ids
        assert (status.ready.status == TRUE) == bool(ready_ids)
        for mark in record.stored.revision:
            assert not (mark.ready and mark.expired)
