"""Rules for every field of a type, wherever it is in a message: enum values are known ones, times can be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from hq.validation.faults import Faults, entry, member

Goal = Callable[[FieldDescriptor], bool]


def fields_towards(goal: Goal, descriptor: Descriptor) -> tuple[FieldDescriptor, ...]:
    """The fields that are a goal, or whose messages hold one at any depth (of a map: its values)."""
    return tuple(field for field in descriptor.fields if leads_to(goal, field, frozenset()))


def leads_to(goal: Goal, field: FieldDescriptor, seen: frozenset[str]) -> bool:
    if goal(field):
        return True
    inner = field.message_type
    if inner is None or inner.full_name in seen:
        return False
    return any(leads_to(goal, deeper, seen | {inner.full_name}) for deeper in inner.fields)


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def element_of(field: FieldDescriptor) -> FieldDescriptor:
    """The field that describes one value: of a map, that of its values."""
    inner = field.message_type
    return inner.fields_by_name["value"] if inner is not None and is_map(field) else field


def values_of(message: Message, field: FieldDescriptor, path: str) -> Iterator[tuple[str, Any]]:
    """Path and value of what is set in the field. Enums without presence are always given."""
    here = member(path, field.name)
    value = getattr(message, field.name)
    if is_map(field):
        yield from ((entry(here, key), value[key]) for key in value)
    elif field.is_repeated:
        yield from ((f"{here}[{index}]", item) for index, item in enumerate(value))
    elif field.message_type is None or message.HasField(field.name):
        yield here, value


def check_enums(message: Message, prefix: str = "") -> None:
    """Check that every enum value in the message, at any depth, is one that the proto files name.

    Raises:
        InvalidRequest: some are not.
    """
    faults = Faults()
    note_enums(faults, message, prefix)
    faults.raise_any()


def note_enums(faults: Faults, message: Message, path: str) -> None:
    for field, enum in fields_towards_enums(message.DESCRIPTOR):
        if enum is not None and not getattr(message, field.name):
            continue  # zero, which every enum names, or an empty list
        for value_path, value in values_of(message, field, path):
            if enum is None:
                note_enums(faults, value, value_path)
            elif value not in enum.values_by_number:
                faults.add(value_path, f"{value} is not a valid {enum.name}: use {', '.join(enum.values_by_name)}")


@cache
def fields_towards_enums(descriptor: Descriptor) -> tuple[tuple[FieldDescriptor, EnumDescriptor | None], ...]:
    fields = fields_towards(is_enum, descriptor)
    return tuple((field, element_of(field).enum_type) for field in fields)


def is_enum(field: FieldDescriptor) -> bool:
    return field.enum_type is not None


# What protobuf's JSON can express: the years 1 to 9999, and ten thousand years either way.
MIN_TIMESTAMP_S, MAX_TIMESTAMP_S = -62_135_596_800, 253_402_300_799
MAX_PROTO_DURATION_S = 315_576_000_000
MAX_NANOS = 999_999_999
TIME_TYPES = (Timestamp.DESCRIPTOR.full_name, Duration.DESCRIPTOR.full_name)


def clean_times(message: Message) -> None:
    """Move every Timestamp and Duration in the message that is out of protobuf's range into it.

    In place, at any depth, in lists and maps too. What is in range or absent stays as it is. Each part goes
    to its nearest bound: seconds to the years 1 to 9999 (durations: 10,000 years either way), nanos to 0 to
    999,999,999 (durations: to the sign of their seconds, otherwise 0).
    """
    if isinstance(message, Timestamp):
        clean_timestamp(message)
    elif isinstance(message, Duration):
        clean_duration(message)
    else:
        for name, shape in fields_towards_times(message.DESCRIPTOR):
            for inner in messages_in(message, name, shape):
                clean_times(inner)


def is_plain_time(time: Timestamp) -> bool:
    """Whether a time is between 1970 and 2106, as nearly all are."""
    return 0 <= time.seconds <= 0xFFFF_FFFF and 0 <= time.nanos <= MAX_NANOS


def clean_timestamp(value: Timestamp) -> None:
    if not MIN_TIMESTAMP_S <= value.seconds <= MAX_TIMESTAMP_S:
        value.seconds = within(value.seconds, MIN_TIMESTAMP_S, MAX_TIMESTAMP_S)
    if not 0 <= value.nanos <= MAX_NANOS:
        value.nanos = within(value.nanos, 0, MAX_NANOS)


def clean_duration(value: Duration) -> None:
    seconds = within(value.seconds, -MAX_PROTO_DURATION_S, MAX_PROTO_DURATION_S)
    at_bound = abs(seconds) == MAX_PROTO_DURATION_S
    lowest = 0 if seconds > 0 or at_bound else -MAX_NANOS
    highest = 0 if seconds < 0 or at_bound else MAX_NANOS
    nanos = within(value.nanos, lowest, highest)
    if (seconds, nanos) != (value.seconds, value.nanos):
        value.seconds, value.nanos = seconds, nanos


def within(value: int, lowest: int, highest: int) -> int:
    return max(lowest, min(value, highest))


def messages_in(message: Message, name: str, shape: str) -> Iterable[Message]:
    if shape == "single":
        return (getattr(message, name),) if message.HasField(name) else ()
    values = getattr(message, name)
    return [values[key] for key in values] if shape == "map" else values


@cache
def fields_towards_times(descriptor: Descriptor) -> tuple[tuple[str, str], ...]:
    """Name and shape of fields."""
    return tuple((field.name, shape_of(field)) for field in fields_towards(is_time, descriptor))


def shape_of(field: FieldDescriptor) -> str:
    return "map" if is_map(field) else "list" if field.is_repeated else "single"


def is_time(field: FieldDescriptor) -> bool:
    inner = field.message_type
    return inner is not None and inner.full_name in TIME_TYPES
