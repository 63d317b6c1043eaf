"""What readers and operators may ask for."""

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from hq.validation import (
    check_duration,
    check_enums,
    check_field_mask,
    check_filter,
    check_guard_order,
    check_id,
    check_item_count,
    check_page_size,
    check_request_id,
    check_suspension,
    require,
)
from hqpb.v1.admin_pb2 import ForceGuardRequest, ReleaseGuardRequest, SuspendNodeRequest
from hqpb.v1.instance_pb2 import Instance
from hqpb.v1.service_pb2 import (
    LABEL_OPERATOR_DOES_NOT_EXIST,
    LABEL_OPERATOR_EXISTS,
    LABEL_OPERATOR_IN,
    LABEL_OPERATOR_NOT_IN,
    CountInstancesRequest,
    FindInstancesRequest,
    InstanceFilter,
    LabelRequirement,
)
from serving.errors import InvalidRequest


def fields_of(refusal: pytest.ExceptionInfo[InvalidRequest]) -> list[str]:
    return [violation.field for violation in refusal.value.violations]


def test_an_empty_filter_means_all() -> None:
    check_filter(InstanceFilter())


def test_a_filter_value_that_could_never_match_is_refused() -> None:
    wanted = InstanceFilter(service_id=["search", ""], cluster=["eu west"], labels={"a b": "x"})
    with pytest.raises(InvalidRequest) as refusal:
        check_filter(wanted)
    assert fields_of(refusal) == ["filter.service_id[1]", "filter.cluster[0]", 'filter.labels["a b"]']


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (LabelRequirement(key="a b", operator=LABEL_OPERATOR_EXISTS), ".key"),
        (LabelRequirement(key="a"), ".operator"),
        (LabelRequirement(key="a", operator=LABEL_OPERATOR_NOT_IN), ".value"),
        (LabelRequirement(key="a", operator=LABEL_OPERATOR_EXISTS, value=["b"]), ".value"),
        (LabelRequirement(key="a", operator=LABEL_OPERATOR_NOT_IN, value=["b", "\0"]), ".value[1]"),
        (LabelRequirement(key="a", operator=LABEL_OPERATOR_NOT_IN, value=["b"] * 10_001), ""),
    ],
)
def test_a_label_requirement_is_checked(wanted: LabelRequirement, field: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_filter(InstanceFilter(label_requirement=[wanted]))
    prefix = "filter.label_requirement"
    assert fields_of(refusal) == [f"{prefix}[0]{field}" if field else prefix]


def test_lists_of_a_filter_are_limited_together() -> None:
    """Lists that are each within their limit would together stop the server for two thirds of a second."""
    wanted = LabelRequirement(key="tier", operator=LABEL_OPERATOR_IN, value=["v"] * 101)
    with pytest.raises(InvalidRequest, match=r"filter\.label_requirement: 10100 values are too many"):
        check_filter(InstanceFilter(label_requirement=[wanted] * 100))
    with pytest.raises(InvalidRequest, match=r"filter\.labels: 101 are too many"):
        check_filter(InstanceFilter(labels={f"k{number}": "v" for number in range(101)}))
    check_filter(InstanceFilter(labels={f"k{number}": "v" for number in range(100)}))


def test_unknown_filters_are_refused_rather_than_ignored() -> None:
    wanted = InstanceFilter.FromString(b"\x38\x09\x40\x09")
    with pytest.raises(InvalidRequest) as refusal:
        check_filter(wanted)
    assert fields_of(refusal) == ["filter.readiness", "filter.allocated"]


def test_the_number_of_label_requirements_is_limited() -> None:
    absent = [LabelRequirement(key=f"k{n}", operator=LABEL_OPERATOR_DOES_NOT_EXIST) for n in range(101)]
    check_filter(InstanceFilter(label_requirement=absent[1:]))
    with pytest.raises(InvalidRequest) as refusal:
        check_filter(InstanceFilter(label_requirement=absent))
    assert fields_of(refusal) == ["filter.label_requirement"]


def test_the_number_of_values_of_a_filter_is_limited() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_filter(InstanceFilter(instance_id=["a"] * 10_001))
    assert fields_of(refusal) == ["filter.instance_id"]


def test_unknown_enum_values_are_named_in_any_request() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_enums(CountInstancesRequest.FromString(b"\x10\x09\x1a\x02\x18\x09"))
    assert fields_of(refusal) == ["group_by", "read.consistency"]
    check_enums(FindInstancesRequest())


@pytest.mark.parametrize(
    "path", ["*", "meta", "meta.labels", "spec.allocation", "spec.revision.secret", "status.ready.receipt"]
)
def test_a_mask_may_name_fields_inside_lists(path: str) -> None:
    check_field_mask(FieldMask(paths=[path]), Instance.DESCRIPTOR)


@pytest.mark.parametrize("path", ["", "Meta", "meta.", "meta.nothing", "meta.id.x", "meta.labels.engine", "a..b"])
def test_a_path_of_a_mask_that_names_no_field_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_field_mask(FieldMask(paths=["spec", path]), Instance.DESCRIPTOR, "update_mask")
    assert fields_of(refusal) == ["update_mask.paths[1]"]


def test_page_sizes_may_be_of_any_size_but_not_negative() -> None:
    assert check_page_size(0) is check_page_size(1 << 30) is None
    assert check_page_size(-1)


def test_request_ids_are_printable_and_short() -> None:
    assert check_request_id("") is check_request_id("ü" * 64) is None
    assert check_request_id("ü" * 65)
    assert check_request_id("a\nb")


def test_the_number_of_items_is_limited() -> None:
    assert check_item_count(1000, "report") is None
    assert check_item_count(1001, "report")


def test_require_raises_all_violations_and_ignores_valid_values() -> None:
    require(check_id("a", "id"), check_page_size(1))
    with pytest.raises(InvalidRequest) as refusal:
        require(check_id("", "id"), check_page_size(1), check_id("?", "node"))
    assert fields_of(refusal) == ["id", "node"]


@pytest.mark.parametrize("seconds", [-1, 11])
def test_durations_lie_between_zero_and_their_limit(seconds: int) -> None:
    assert check_duration(Duration(), "duration", 10) is None
    assert check_duration(Duration(seconds=10), "duration", 10) is None
    assert check_duration(Duration(seconds=seconds), "duration", 10)
    assert check_duration(Duration(seconds=10, nanos=1), "duration", 10)


def test_guard_orders_last_a_day_at_most() -> None:
    check_guard_order(ReleaseGuardRequest())
    check_guard_order(ForceGuardRequest(duration=Duration(seconds=86_400), reason="planned", by="me"))
    with pytest.raises(InvalidRequest) as refusal:
        check_guard_order(ForceGuardRequest(duration=Duration(seconds=86_401), by="x" * 254))
    assert fields_of(refusal) == ["duration", "by"]


def test_planned_work_has_a_node_and_an_end_within_a_week() -> None:
    check_suspension(SuspendNodeRequest(node_name="node-1", duration=Duration(seconds=7 * 86_400)))
    with pytest.raises(InvalidRequest) as refusal:
        check_suspension(SuspendNodeRequest())
    assert fields_of(refusal) == ["node_name", "duration"]


def test_the_reason_for_an_order_cannot_begin_a_line_of_its_own_in_the_log() -> None:
    for words in ("planned\n2026-11-21 ERROR", "a\r", "\x1b[2J", "\x00"):
        with pytest.raises(InvalidRequest, match="control characters"):
            check_guard_order(ReleaseGuardRequest(reason=words))
        with pytest.raises(InvalidRequest, match="control characters"):
            check_guard_order(ForceGuardRequest(by=words))
