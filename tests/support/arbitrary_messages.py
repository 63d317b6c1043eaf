"""Messages of any content: what a newer client, a careless one or an attacker may send."""

from functools import cache
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

from hq.validation.typed_fields import element_of, is_map

M = TypeVar("M", bound=Message)

FD = FieldDescriptor
EDGES = (0, 1, 2, 99, 65_535, 65_536, 0o10000, 1 << 31, 1 << 32, 1 << 50, 1 << 63, 1 << 64)
INTEGER_BITS = {
    FD.TYPE_INT32: (31, True),
    FD.TYPE_INT64: (63, True),
    FD.TYPE_UINT32: (32, False),
    FD.TYPE_UINT64: (64, False),
    FD.TYPE_FIXED64: (64, False),
    FD.TYPE_ENUM: (31, True),
}
WORDS = ("", "a", ".", "..", "/etc", "a/../b", "a b", "a=b", "\0", "ü" * 200, "x" * 300, "Word", "sha256:0")
TEXTS = st.sampled_from(WORDS) | st.text(max_size=20)


@st.composite
def wild(draw: st.DrawFn, kind: type[M]) -> M:
    """A message of this type with any values in any of its fields, at any depth, and unknown fields."""
    message = kind()
    _fill(draw, message)
    return message


def with_unknown_fields(messages: st.SearchStrategy[M]) -> st.SearchStrategy[M]:
    """The same messages, some with fields that today's proto files do not name."""
    return st.builds(_merged, messages, unknown_fields())


def draw_unknown_fields(draw: st.DrawFn, message: M) -> M:
    """The message itself, perhaps with such fields added."""
    return _merged(message, draw(unknown_fields()))


@cache
def unknown_fields() -> st.SearchStrategy[bytes]:
    """Encoded fields with numbers from 1000 on, of all wire types in use; often none."""
    return st.lists(st.builds(_encoded, _numbers, _payloads), max_size=2).map(b"".join)


_numbers = st.integers(1000, 1999)
_payloads = st.one_of(
    st.integers(0, (1 << 64) - 1).map(lambda value: (0, varint(value))),
    st.binary(min_size=8, max_size=8).map(lambda value: (1, value)),
    st.binary(max_size=40).map(lambda value: (2, varint(len(value)) + value)),
    st.binary(min_size=4, max_size=4).map(lambda value: (5, value)),
)


def _encoded(number: int, payload: tuple[int, bytes]) -> bytes:
    wire_type, encoded = payload
    return varint(number << 3 | wire_type) + encoded


def varint(value: int) -> bytes:
    """Written here anew, so that tests do not check HQ's own coding with itself."""
    low, high = value & 0x7F, value >> 7
    return bytes((low | 0x80,)) + varint(high) if high else bytes((low,))


def _merged(message: M, unknown: bytes) -> M:
    message.MergeFromString(unknown)
    return message


def _fill(draw: st.DrawFn, message: Message) -> None:
    for field in draw(_some_fields(message)):
        if is_map(field):
            _fill_map(draw, getattr(message, field.name), field)
        elif field.is_repeated:
            _fill_list(draw, getattr(message, field.name), field)
        elif field.message_type is None:
            setattr(message, field.name, draw(_scalars(field)))
        else:
            inner = getattr(message, field.name)
            inner.SetInParent()
            _fill(draw, inner)
    draw_unknown_fields(draw, message)


def _some_fields(message: Message) -> st.SearchStrategy[list[FieldDescriptor]]:
    fields: list[Any] = list(message.DESCRIPTOR.fields)
    one = st.sampled_from(fields) if fields else st.nothing()
    return st.lists(one, max_size=4, unique_by=lambda field: field.number)


def _fill_map(draw: st.DrawFn, values: Any, field: FieldDescriptor) -> None:
    value = element_of(field)
    for key in draw(st.lists(TEXTS, max_size=2)):
        if value.message_type is None:
            values[key] = draw(_scalars(value))
        else:
            _fill(draw, values[key])


def _fill_list(draw: st.DrawFn, values: Any, field: FieldDescriptor) -> None:
    for _ in range(draw(st.integers(0, 2))):
        if field.message_type is None:
            values.append(draw(_scalars(field)))
        else:
            _fill(draw, values.add())


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.type == FD.TYPE_STRING:
        return TEXTS
    if field.type == FD.TYPE_BOOL:
        return st.booleans()
    if field.type == FD.TYPE_BYTES:
        return st.binary(max_size=20)
    if field.type in (FD.TYPE_DOUBLE, FD.TYPE_FLOAT):
        return st.floats(width=32)
    bits, signed = INTEGER_BITS[field.type]
    lowest, highest = -(1 << bits) if signed else 0, (1 << bits) - 1
    edges = [edge for edge in EDGES if edge <= highest]
    return st.sampled_from(edges) | st.integers(lowest, highest)
