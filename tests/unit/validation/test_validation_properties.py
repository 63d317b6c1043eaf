"""Over random messages: well-formed ones pass, faults are named, and nothing else ever happens."""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import DecodeError, Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hq.validation import (
    MAX_VIOLATIONS,
    check_enums,
    check_filter,
    check_guard_order,
    check_instance_update,
    check_new_instance,
    check_report,
    check_revision,
    check_suspension,
    clean_report,
    clean_times,
)
from hqpb.v1.admin_pb2 import ForceGuardRequest, SuspendNodeRequest
from hqpb.v1.instance_pb2 import Instance, InstanceRevision, InstanceStatus, RevisionStatus
from hqpb.v1.service_pb2 import InstanceFilter, ReportStatusRequest
from serving.errors import InvalidRequest
from tests.support.arbitrary_messages import wild
from tests.support.instance_strategies import instances, new_instances, reports, revisions
from tests.support.seeded_faults import faulty_instances

CHECKS: list[tuple[type[Message], Callable[[Any], None]]] = [
    (Instance, check_new_instance),
    (Instance, check_instance_update),
    (Instance, check_enums),
    (InstanceRevision, check_revision),
    (ReportStatusRequest, check_report),
    (InstanceFilter, check_filter),
    (ForceGuardRequest, check_guard_order),
    (SuspendNodeRequest, check_suspension),
]
each_check = pytest.mark.parametrize(("kind", "check"), CHECKS, ids=lambda it: it.__name__)
some = settings(suppress_health_check=list(HealthCheck))


@pytest.mark.long
@some
@given(new_instances())
def test_a_well_formed_new_instance_passes(instance: Instance) -> None:
    check_new_instance(instance)


@some
@given(revisions())
def test_a_well_formed_revision_passes(revision: InstanceRevision) -> None:
    check_revision(revision)


@some
@given(instances())
def test_an_instance_passes_as_an_update_just_as_it_was_read(instance: Instance) -> None:
    check_instance_update(instance)


@some
@given(reports())
def test_a_well_formed_report_passes(report: ReportStatusRequest) -> None:
    check_report(report)


@given(faulty_instances())
def test_one_fault_anywhere_is_named_by_its_path(faulty: tuple[Instance, str]) -> None:
    instance, path = faulty
    with pytest.raises(InvalidRequest) as refusal:
        check_new_instance(instance)
    assert [violation.field for violation in refusal.value.violations] == [f"instance.{path}"]
    assert all(violation.description for violation in refusal.value.violations)


@each_check
@some
@given(st.data())
def test_random_messages_are_accepted_or_refused_by_field_and_not_changed(
    kind: type[Message], check: Callable[[Any], None], data: st.DataObject
) -> None:
    _survives(check, data.draw(wild(kind)))


@each_check
@some
@given(raw=st.binary(max_size=60))
def test_random_bytes_that_decode_are_accepted_or_refused_and_not_changed(
    kind: type[Message], check: Callable[[Any], None], raw: bytes
) -> None:
    message = kind()
    try:
        message.ParseFromString(raw)
    except DecodeError:
        return
    _survives(check, message)


@some
@given(wild(InstanceStatus))
def test_cleaned_times_can_be_encoded_as_json(status: InstanceStatus) -> None:
    clean_times(status)
    MessageToJson(status)


@some
@given(wild(RevisionStatus))
def test_a_cleaned_report_can_be_encoded_as_json_and_stays_clean(status: RevisionStatus) -> None:
    clean_report(status)
    MessageToJson(status)
    before = status.SerializeToString(deterministic=True)
    clean_report(status)
    assert status.SerializeToString(deterministic=True) == before


@some
@given(reports())
def test_cleaning_changes_nothing_in_a_well_formed_report(report: ReportStatusRequest) -> None:
    before = report.SerializeToString(deterministic=True)
    clean_report(report.revision)
    assert report.SerializeToString(deterministic=True) == before


def _survives(check: Callable[[Any], None], message: Message) -> None:
    before = message.SerializeToString(deterministic=True)
    refusal = _refusal(check, message)
    assert message.SerializeToString(deterministic=True) == before
    if refusal is not None:
        assert 0 < len(refusal.violations) <= MAX_VIOLATIONS
        assert all(violation.description for violation in refusal.violations)
        assert str(refusal).isprintable()


def _refusal(check: Callable[[Any], None], message: Message) -> InvalidRequest | None:
    try:
        check(message)
    except InvalidRequest as refusal:
        return refusal
    return None
