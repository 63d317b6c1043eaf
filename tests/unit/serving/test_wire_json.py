"""JSON and protobuf requests: whatever comes in, InvalidRequest is the worst."""

from __future__ import annotations

import json
import re
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding import jsonio
from serving.encoding.jsondict import message_to_dict
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto, to_json
from serving.errors import InvalidRequest
from tests.support.arbitrary_messages import wild
from wallepb.v1 import project_pb2
from wallepb.v1 import service_pb2 as walle_pb2

find = parse_json(service_pb2.FindInstancesRequest)
create = parse_json(service_pb2.CreateInstanceRequest)

# Names that exist make the search reach deeper than random ones.
NAMES = st.sampled_from(
    [
        *(
            f.json_name
            for d in (service_pb2, instance_pb2)
            for m in vars(d).values()
            if hasattr(m, "DESCRIPTOR") and hasattr(m.DESCRIPTOR, "fields")
            for f in m.DESCRIPTOR.fields
        ),
        "@type",
        "[x.y]",
        "",
    ]
) | st.text(max_size=3)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["1.5s", "READY", "2020-01-01T00:00:00Z", "a.b", "-1", "1e9", "AAAA"])
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)


def fault_of(body: bytes, parse: Any = find) -> list[tuple[str, str]]:
    with pytest.raises(InvalidRequest) as raised:
        parse(body)
    return [(v.field, v.description) for v in raised.value.violations]


KINDS: list[type[Message]] = [
    instance_pb2.Instance,
    service_pb2.ExplainInstanceResponse,
    service_pb2.FindInstancesRequest,
    walle_pb2.GetHostResponse,
    walle_pb2.Order,
]


@given(st.sampled_from(KINDS).flatmap(wild))
def test_our_json_of_any_message_equals_that_of_the_library(message: Message) -> None:
    try:
        expected = json_format.MessageToDict(message)
    except Exception:
        with pytest.raises((ValueError, TypeError, json_format.Error)):
            message_to_dict(message)
    else:
        assert message_to_dict(message) == expected
        assert json.loads(to_json(message)) == expected


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_an_invalid_one(body: bytes) -> None:
    for parse in (find, parse_proto(service_pb2.FindInstancesRequest)):
        with suppress(InvalidRequest):
            parse(body)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_any_json_is_a_request_or_an_invalid_one(value: dict[str, Any]) -> None:
    for parse in (find, create):
        with suppress(InvalidRequest):
            parse(json.dumps(value).encode())


@given(st.integers(0, 80), st.text(alphabet='"\\[]{}a', max_size=20))
def test_depth_is_counted_outside_of_strings(depth: int, text: str) -> None:
    body = b"[" * depth + json.dumps(text).encode() + b"]" * depth
    assert jsonio._deeper_than(body, 64) == (depth > 64)


def test_an_encoded_request_can_be_read() -> None:
    request = service_pb2.FindInstancesRequest(page_size=3)
    request.filter.service_id.extend(["web", "dö"])
    request.filter.labels["a.b/c"] = "d"
    request.read.min_version = 2**63
    request.field_mask.paths.append("meta.service_id")
    assert find(to_json(request)) == request
    assert to_json(request).startswith(b'{"filter":{"serviceId":["web","d\xc3\xb6"],"labels"')


async def test_an_answer_is_made_in_both_encodings() -> None:
    message = service_pb2.DeleteInstanceResponse(version=7)
    answer = MessageAnswer(message)
    assert answer.proto() == message.SerializeToString()
    assert await answer.json() == b'{"version":"7"}'


def test_fields_may_go_by_either_name() -> None:
    assert find(b'{"page_size":1}') == find(b'{"pageSize":1}')


def test_null_is_absent() -> None:
    assert find(b'{"filter":null,"pageSize":null}') == service_pb2.FindInstancesRequest()


def test_all_wrong_types_and_fields_are_reported_at_once_with_their_paths() -> None:
    body = b'{"filter":{"serviceId":["web",7],"labels":{"a":1},"nope":1},"read":[],"pageSize":1}'
    assert fault_of(body) == [
        ("filter.service_id[1]", "expected a string, not a number"),
        ("filter.labels['a']", "expected a string, not a number"),
        ("filter.nope", "hq.v1.InstanceFilter has no such field"),
        ("read", "expected a JSON object, not an array"),
    ]


def test_the_list_of_faults_is_bounded() -> None:
    body = json.dumps({f"f{n}": 1 for n in range(10_000)}).encode()
    assert len(fault_of(body)) == 20


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        (b'{"pageSize":1e30}', "page_size", "out of range"),
        (b'{"pageSize":"x"}', "page_size", "not a number: 'x'"),
        (b'{"pageSize":"1_0"}', "page_size", "'1_0' is not a number"),
        ('{"read":{"minVersion":"\u0661"}}'.encode(), "read.min_version", "'\u0661' is not a number"),
        ('{"filter":{"readiness":"\u0661"}}'.encode(), "filter.readiness", "'\u0661' is not one of "),
        (b'{"read":{"minVersion":-1}}', "read.min_version", "out of range"),
        (b'{"filter":{"readiness":"MAYBE"}}', "filter.readiness", "is not one of READINESS_FILTER_UNSPECIFIED, "),
        (b'{"filter":{"readiness":1.5}}', "filter.readiness", "name of an enum value"),
        (b'{"fieldMask":"a..b,"}', "", ""),
    ],
)
def test_a_value_of_the_wrong_form_is_reported_with_its_path(body: bytes, field: str, says: str) -> None:
    if field:
        ((where, description),) = fault_of(body)
        assert where == field
        assert says in description
    else:
        find(body)


def test_a_fault_that_quotes_its_value_is_cut_short() -> None:
    ((_, description),) = fault_of(b'{"fieldMask":' + b"9" * 4_000 + b"}")
    assert len(description) < 400


ITEMS = jsonio.MOST_ITEMS + 1
LONG = [
    ("filter.service_id", service_pb2.FindInstancesRequest, {"filter": {"serviceId": ["w"] * ITEMS}}),
    ("filter.labels", service_pb2.FindInstancesRequest, {"filter": {"labels": {str(n): "" for n in range(ITEMS)}}}),
    ("field_mask.paths", service_pb2.GetInstanceRequest, {"fieldMask": ",".join(["meta"] * ITEMS)}),
    ("report", service_pb2.ReportStatusesRequest, {"report": [{}] * ITEMS}),
    (
        "report.revision.container",
        service_pb2.ReportStatusesRequest,
        {"report": [{"revision": {"container": [{}] * ITEMS}}]},
    ),
    ("step", project_pb2.Scheme, {"step": [1] * ITEMS}),  # packed: a byte each
    ("limits.pair", walle_pb2.UpdateProjectRequest, {"limits": {"ssh": {"pair": [{}] * ITEMS}}}),
]


def test_lists_within_their_limits_may_be_too_long_together() -> None:
    """Otherwise two million containers would be checked for 1.5 s before the caller's rights are."""
    request = service_pb2.ReportStatusesRequest()
    for _ in range(100):
        request.report.add().revision.MergeFromString(b"\x22\x00" * 19_900)
    with pytest.raises(InvalidRequest, match="items in all are too many: send at most 200000 at once"):
        parse_proto(service_pb2.ReportStatusesRequest)(request.SerializeToString())
    del request.report[9:]
    parse_proto(service_pb2.ReportStatusesRequest)(request.SerializeToString())


@pytest.mark.parametrize(("where", "request_type", "value"), LONG, ids=[row[0] for row in LONG])
def test_a_list_too_long_for_any_call_is_refused_by_name_in_both_encodings(
    where: str, request_type: type[Message], value: dict[str, Any]
) -> None:
    """An item takes two bytes: four megabytes would be two million checks, audit lines or faults."""
    body = json.dumps(value).encode()
    wire = json_format.Parse(body, request_type()).SerializeToString()
    for parse, sent in ((parse_json(request_type), body), (parse_proto(request_type), wire)):
        with pytest.raises(InvalidRequest, match=f"{ITEMS} items are too many: send at most 20000 at once") as refused:
            parse(sent)
        assert [one.field.replace(".ssh.", ".") for one in refused.value.violations] == [where]  # JSON names the key


@pytest.mark.parametrize(
    "value",
    [
        {"filter": {"labelRequirement": [{}] * 1_000_000}},
        {"filter": {"labelRequirement": [{"value": [""] * 10_000}] * 100}},
        {"filter": {"labels": {str(n): "" for n in range(300_000)}}},
    ],
    ids=["one list", "lists in lists", "a map"],
)
def test_json_with_too_many_values_is_refused_before_it_is_parsed_into_a_message(
    value: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing four megabytes took a minute of the one thread that reads long JSON for all callers."""
    monkeypatch.setattr(json_format, "ParseDict", None)
    with pytest.raises(InvalidRequest, match="are too many"):
        parse_json(service_pb2.FindInstancesRequest)(json.dumps(value).encode())


def test_a_long_key_is_kept_once_and_not_for_each_of_its_items() -> None:
    """Otherwise a request of 120 KB would take a gigabyte."""
    body = json.dumps({"k" * 60_000: [{}] * 20_000}).encode()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRequest):
            parse_json(service_pb2.GetInstanceRequest)(body)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_commas_inside_a_text_do_not_count_as_values() -> None:
    text = ",[{" * 100_000
    assert parse_json(service_pb2.GetInstanceRequest)(json.dumps({"id": text}).encode()).id == text


def test_lists_of_a_long_request_that_are_short_enough_are_taken() -> None:
    request = service_pb2.ReportStatusesRequest(report=[service_pb2.ReportStatusRequest(instance_id="x" * 100)] * 1_000)
    assert parse_proto(service_pb2.ReportStatusesRequest)(request.SerializeToString()) == request


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ({"meta": {"creationTime": "yesterday"}}, "'yesterday' is not a time such as "),
        ({"meta": {"creationTime": "2026-13-01T00:00:00Z"}}, "'2026-13-01T00:00:00Z' is not a time such as "),
        ({"meta": {"creationTime": "2026-02-30T00:00:00Z"}}, "'2026-02-30T00:00:00Z' is not a time such as "),
        ({"meta": {"creationTime": 5}}, "expected a time such as "),
        (
            {"spec": {"liveness": {"timeout": "999999999999s"}}},
            "'999999999999s' is not a duration in seconds, such as ",
        ),
        ({"spec": {"liveness": {"timeout": "5m"}}}, "'5m' is not a duration in seconds, such as "),
        ({"spec": {"liveness": {"timeout": {}}}}, "expected a duration in seconds, such as "),
    ],
)
def test_malformed_times_and_durations_are_refused_with_an_example(sent: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(wanted)):
        create(json.dumps({"instance": sent}).encode())


@pytest.mark.parametrize("mask", ["*", "", "meta.labels,spec.nodeName"])
def test_a_field_mask_may_be_a_star_empty_or_names(mask: str) -> None:
    paths = parse_json(service_pb2.UpdateInstanceRequest)(json.dumps({"updateMask": mask}).encode()).update_mask.paths
    assert list(paths) == [{"spec.nodeName": "spec.node_name"}.get(one, one) for one in mask.split(",") if one]
