"""Times that are stored for display: never a reason to refuse, but JSON must be able to say them."""

from collections.abc import Iterable
from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from hq.validation.descriptors import fields_towards, is_map

# What protobuf's JSON can say: the years 1 to 9999, and ten thousand years either way.
MIN_TIMESTAMP_S, MAX_TIMESTAMP_S = -62_135_596_800, 253_402_300_799
MAX_DURATION_S = 315_576_000_000
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
    """From 1970 to 2106, as times mostly are."""
    return 0 <= time.seconds <= 0xFFFF_FFFF and 0 <= time.nanos <= MAX_NANOS


def clean_timestamp(value: Timestamp) -> None:
    if not MIN_TIMESTAMP_S <= value.seconds <= MAX_TIMESTAMP_S:
        value.seconds = within(value.seconds, MIN_TIMESTAMP_S, MAX_TIMESTAMP_S)
    if not 0 <= value.nanos <= MAX_NANOS:
        value.nanos = within(value.nanos, 0, MAX_NANOS)


def clean_duration(value: Duration) -> None:
    seconds = within(value.seconds, -MAX_DURATION_S, MAX_DURATION_S)
    at_bound = abs(seconds) == MAX_DURATION_S
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
