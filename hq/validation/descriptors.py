"""Walking messages by their descriptors, along those fields only that lead somewhere."""

from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from hq.validation.faults import entry, member

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
    """The field that says what one value is: of a map, its value."""
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
