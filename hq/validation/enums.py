"""Enum values: proto3 lets any number through, HQ only those it knows."""

from functools import cache

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from hq.validation.descriptors import element_of, fields_towards, values_of
from hq.validation.faults import Faults


def check_enums(message: Message, prefix: str = "") -> None:
    """Every enum value in the message, at any depth, is one that the proto files name.

    Raises:
        InvalidRequest: some are not.
    """
    faults = Faults()
    note_enums(faults, message, prefix)
    faults.raise_any()


def note_enums(faults: Faults, message: Message, path: str) -> None:
    for field, enum in fields_towards_enums(message.DESCRIPTOR):
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
