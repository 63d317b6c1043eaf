"""What a report may say, and what HQ cleans in it."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from hq.validation import MAX_REPORT_BYTES, check_report, clean_report
from hq.validation.typed_fields import fields_towards_enums
from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE, Condition, InstanceRevision, RevisionStatus
from hqpb.v1.service_pb2 import ReportStatusRequest
from serving.errors import InvalidRequest


@pytest.fixture
def report() -> ReportStatusRequest:
    revision = RevisionStatus(id="r1", incarnation=7, sequence=1, spec_version=12)
    revision.ready.status = CONDITION_STATUS_TRUE
    for name in ("main", "sidecar"):
        revision.container.add(name=name, ready=True).state.running.start_time.seconds = 1_700_000_000
    return ReportStatusRequest(instance_id="search-1", uid=3, node="node-1", revision=revision)


def faults_of(
    report: ReportStatusRequest, prefix: str = "", spec_revision: InstanceRevision | None = None
) -> list[str]:
    with pytest.raises(InvalidRequest) as refusal:
        check_report(report, prefix, spec_revision)
    return [violation.field for violation in refusal.value.violations]


def test_a_report_with_too_many_containers_is_refused_without_reading_them(report: ReportStatusRequest) -> None:
    del report.revision.container[:]
    for _ in range(1_001):
        report.revision.container.add()
    assert faults_of(report, "report[3]") == ["report[3].revision.container"]


def test_an_empty_report_lacks_every_field_that_identifies_it() -> None:
    assert faults_of(ReportStatusRequest(), "report[3]") == [
        "report[3].instance_id",
        "report[3].node",
        "report[3].revision.id",
        "report[3].uid",
        "report[3].revision.incarnation",
        "report[3].revision.sequence",
    ]


def test_unknown_conditions_and_malformed_reasons_are_refused(report: ReportStatusRequest) -> None:
    report.revision.installed.MergeFromString(b"\x08\x63")
    report.revision.ready.reason = "not one word"
    assert faults_of(report) == ["revision.installed.status", "revision.ready.reason"]


def test_reasons_of_containers_must_be_single_words_too(report: ReportStatusRequest) -> None:
    main, sidecar = report.revision.container
    main.last_termination.reason = "exit status 1"
    main.state.terminated.reason = "OOM killed"
    sidecar.state.waiting.reason = "X" * 65
    assert faults_of(report) == [
        "revision.container[0].last_termination.reason",
        "revision.container[0].state.terminated.reason",
        "revision.container[1].state.waiting.reason",
    ]


def test_a_container_is_reported_once_and_by_its_name(report: ReportStatusRequest) -> None:
    report.revision.container.add(name="main")
    report.revision.container.add()
    assert sorted(faults_of(report)) == ["revision.container[2].name", "revision.container[3].name"]


def test_containers_are_compared_with_the_spec_only_when_it_is_given(report: ReportStatusRequest) -> None:
    spec_revision = InstanceRevision(id="r1")
    spec_revision.container.add(name="main")
    check_report(report)
    assert faults_of(report, spec_revision=spec_revision) == ["revision.container[1].name"]
    spec_revision.container.add(name="sidecar")
    check_report(report, "", spec_revision)


def test_a_report_may_leave_containers_of_the_spec_out(report: ReportStatusRequest) -> None:
    spec_revision = InstanceRevision(id="r1")
    for name in ("main", "sidecar", "late"):
        spec_revision.container.add(name=name)
    check_report(report, "", spec_revision)


def test_a_report_is_taken_up_to_64_kib_and_not_beyond(report: ReportStatusRequest) -> None:
    report.revision.ready.message = "x" * (MAX_REPORT_BYTES - 200)
    report.revision.ready.message += "x" * (MAX_REPORT_BYTES - report.ByteSize())
    check_report(report)
    report.revision.ready.message += "x"
    assert faults_of(report, "report[0]") == ["report[0]"]


def test_a_report_is_never_refused_for_its_times(report: ReportStatusRequest) -> None:
    times = (
        report.revision.ready.last_transition_time,
        report.revision.container[0].state.running.start_time,
        report.revision.container[1].last_termination.finish_time,
    )
    for time in times:
        time.seconds, time.nanos = -(1 << 63), (1 << 31) - 1
    check_report(report)
    clean_report(report.revision)
    assert {MessageToDict(report.revision.ready)["lastTransitionTime"]} == {"0001-01-01T00:00:00.999999999Z"}
    MessageToDict(report)


def test_receipts_of_agents_are_dropped(report: ReportStatusRequest) -> None:
    for condition in (report.revision.installed, report.revision.ready):
        condition.receipt.decided_by = "an agent"
    check_report(report)
    clean_report(report.revision)
    assert not report.revision.installed.HasField("receipt")
    assert report.revision.ready == Condition(status=CONDITION_STATUS_TRUE)


def test_long_messages_are_cut_between_two_characters(report: ReportStatusRequest) -> None:
    main, sidecar = report.revision.container
    main.last_termination.message = sidecar.state.terminated.message = "ü" * 4096
    report.revision.ready.message = "x" + "ü" * 4096
    check_report(report)
    clean_report(report.revision)
    assert main.last_termination.message == sidecar.state.terminated.message == "ü" * 2048
    assert report.revision.ready.message == "x" + "ü" * 2047


def test_only_the_end_of_long_output_is_kept(report: ReportStatusRequest) -> None:
    main, sidecar = report.revision.container
    main.last_termination.output = sidecar.state.terminated.output = "ü" * 4096 + "x"
    check_report(report)
    clean_report(report.revision)
    assert main.last_termination.output == sidecar.state.terminated.output == "ü" * 2047 + "x"


def test_cleaning_does_not_create_absent_fields() -> None:
    status = RevisionStatus(id="r1")
    status.container.add(name="main")
    before = status.SerializeToString()
    clean_report(status)
    assert status.SerializeToString() == before


def test_check_report_checks_all_enums_of_a_report() -> None:
    known = {"revision.installed.status", "revision.ready.status"}
    assert set(paths_of_enums(ReportStatusRequest.DESCRIPTOR)) == known


def paths_of_enums(descriptor: Any) -> Iterator[str]:
    for field, enum in fields_towards_enums(descriptor):
        if enum is not None:
            yield field.name
        else:
            yield from (f"{field.name}.{deeper}" for deeper in paths_of_enums(field.message_type))
