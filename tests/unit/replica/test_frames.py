"""Frames are spliced by hand; they must be what protobuf itself would have written and can read."""

from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hq.memory import frames
from hq.memory.frames import FrameParts, Shape
from hqpb.v1.instance_pb2 import Instance, InstanceMeta, InstanceSpec, InstanceStatus
from hqpb.v1.service_pb2 import FindInstancesResponse, GetInstanceResponse
from tests.support import arbitrary_messages as wild
from tests.support import value_strategies as words
from tests.support import wire_format
from tests.support.instance_strategies import instances

LAST_MS = 253_402_300_799_999  # of the year 9999
some = settings(suppress_health_check=list(HealthCheck))
versions = st.integers(0, (1 << 64) - 1)
heard_times = st.lists(
    st.tuples(words.ids(max_size=20), st.integers(0, LAST_MS)), max_size=3, unique_by=lambda pair: pair[0]
)


@st.composite
def stored_parts(draw: st.DrawFn) -> FrameParts:
    """Parts as HQ stores them, without the fields in the tails."""
    instance = draw(instances())
    instance.meta.ClearField("version")
    instance.meta.ClearField("status_version")
    instance.status.ClearField("last_heartbeat_time")
    instance.status.ClearField("heartbeat")
    return FrameParts(
        meta=instance.meta.SerializeToString(),
        spec=instance.spec.SerializeToString(),
        status=instance.status.SerializeToString(),
        version=draw(versions),
        status_version=draw(versions),
        heard=draw(heard_times),
    )


EMPTY = FrameParts(b"", b"", b"", 0, 0)


def merged(parts: FrameParts) -> Instance:
    """What the frame must mean, merged by protobuf."""
    instance = Instance(
        meta=InstanceMeta.FromString(parts.meta),
        spec=InstanceSpec.FromString(parts.spec),
        status=InstanceStatus.FromString(parts.status),
    )
    instance.meta.version = parts.version
    instance.meta.status_version = parts.status_version
    for revision_id, unix_ms in parts.heard:
        instance.status.heartbeat[revision_id].FromMilliseconds(unix_ms)
    if parts.heard:
        instance.status.last_heartbeat_time.FromMilliseconds(max(unix_ms for _, unix_ms in parts.heard))
    return instance


@pytest.mark.long
@some
@given(stored_parts())
@example(EMPTY)
def test_a_frame_is_the_instance_in_an_answer(parts: FrameParts) -> None:
    frame = frames.splice(parts)
    assert FindInstancesResponse.FromString(frame) == FindInstancesResponse(instances=[merged(parts)])
    assert GetInstanceResponse.FromString(frame) == GetInstanceResponse(instance=merged(parts))


@pytest.mark.long
@settings(some, max_examples=10)  # frames by themselves are the subject of the others
@given(st.lists(stored_parts(), max_size=3))
def test_joined_frames_are_a_list_in_their_order(many: Sequence[FrameParts]) -> None:
    answer = FindInstancesResponse.FromString(b"".join(map(frames.splice, many)))
    assert answer == FindInstancesResponse(instances=map(merged, many))


@pytest.mark.long
@some
@given(stored_parts())
@example(EMPTY)
def test_the_body_of_a_frame_is_the_encoded_instance(parts: FrameParts) -> None:
    assert Instance.FromString(frames.body(frames.splice(parts))) == merged(parts)


@pytest.mark.long
@some
@given(stored_parts())
def test_no_singular_field_occurs_twice_in_a_frame(parts: FrameParts) -> None:
    frame = frames.splice(parts)
    body = wire_format.payload(frame, 1)
    assert wire_format.repeated_singulars(frame, GetInstanceResponse) == []
    assert wire_format.repeated_singulars(body, Instance) == []
    for number, kind in ((1, InstanceMeta), (2, InstanceSpec), (3, InstanceStatus)):
        assert wire_format.repeated_singulars(wire_format.payload(body, number), kind) == []


@pytest.mark.long
@some
@given(stored_parts(), wild.unknown_fields())
def test_unknown_fields_survive_in_a_frame(parts: FrameParts, more: bytes) -> None:
    parts = parts._replace(meta=parts.meta + more, spec=more + parts.spec, status=parts.status + more)
    read = Instance.FromString(frames.body(frames.splice(parts)))
    assert unknown(read.meta) == unknown(InstanceMeta.FromString(parts.meta))
    assert unknown(read.spec) == unknown(InstanceSpec.FromString(parts.spec))
    assert unknown(read.status) == unknown(InstanceStatus.FromString(parts.status))
    assert [unknown(it) for it in read.spec.revision] == [
        unknown(it) for it in InstanceSpec.FromString(parts.spec).revision
    ]


def test_these_tests_can_see_unknown_fields() -> None:
    assert unknown(InstanceMeta.FromString(b"\xc2\x3e\x01x")) == [(1000, 2, b"x")]


@some
@given(stored_parts(), versions, heard_times)
@example(EMPTY, 1, [])
def test_the_stored_parts_come_out_of_a_frame_as_they_went_in(
    parts: FrameParts, version: int, heard: Sequence[tuple[str, int]]
) -> None:
    frame = frames.splice(parts._replace(version=version, heard=heard))
    assert frames.split_frame(frame, frames.shape(parts)) == (parts.meta, parts.spec, parts.status)


@pytest.mark.long
@some
@given(stored_parts())
def test_a_shape_has_the_lengths_of_the_stored_parts(parts: FrameParts) -> None:
    assert frames.shape(parts) == Shape(*(len(part) for part in parts[:3]))


@some
@given(st.integers(0, LAST_MS))
@example(0)
@example(999)
@example(1000)
def test_times_are_written_as_protobuf_writes_them(unix_ms: int) -> None:
    expected = Timestamp()
    expected.FromMilliseconds(unix_ms)
    assert frames.timestamp(unix_ms) == expected.SerializeToString()


def test_times_before_1970_become_1970() -> None:
    assert Timestamp.FromString(frames.timestamp(-1)) == Timestamp()


@some
@given(st.integers(0, (1 << 64) - 1), st.binary(max_size=5))
@example(127, b"")
@example(128, b"")
def test_numbers_are_written_as_protobuf_writes_them_and_read_back(number: int, rest: bytes) -> None:
    encoded = frames.varint(number)
    assert encoded == wild.varint(number)
    assert frames.read_varint(rest + encoded + rest, len(rest)) == (number, len(rest) + len(encoded))


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 300_000])
def test_parts_of_any_length_are_spliced(size: int) -> None:
    meta = InstanceMeta(id="x" * size).SerializeToString()
    parts = EMPTY._replace(meta=meta, spec=InstanceSpec(node_name="x" * size).SerializeToString())
    assert Instance.FromString(frames.body(frames.splice(parts))) == merged(parts)
    assert frames.split_frame(frames.splice(parts), frames.shape(parts))[0] == meta


def unknown(message: Message) -> list[tuple[int, int, object]]:
    found: Any = UnknownFieldSet(message)
    return [(field.field_number, field.wire_type, field.data) for field in found]
