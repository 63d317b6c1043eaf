"""Does a JSON value have the shape of a message? Stricter than json_format, and it says where.

json_format takes an empty list for an object, a fraction for an enum value, "1_0" for ten and one field by both of
its names, and it stops at the first fault without always saying where that is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from serving.errors import Violation

_MAX_VIOLATIONS: Final = 20
_MAX_NAME: Final = 50
_OBJECT: Final = "a JSON object"
_UPPER: Final = re.compile(r"\[[^\]]*\]|[A-Z]")
_NUMERAL: Final = re.compile(r"[-+.0-9A-Za-z]*")  # and nothing else that Python reads as a number
# Types with a JSON form of their own, and that form in words: json_format's messages speak of Python.
_FORMS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    "google.protobuf.Timestamp": (
        lambda text: Timestamp().FromJsonString(text),
        'a time such as "2026-01-31T09:30:00Z"',
    ),
    "google.protobuf.Duration": (
        lambda text: Duration().FromJsonString(text),
        'a duration in seconds, such as "90s" or "1.5s"',
    ),
    "google.protobuf.FieldMask": (
        lambda text: FieldMask().FromJsonString(text),
        'a list of field names in lowerCamelCase, such as "meta.labels,spec.nodeName"',
    ),
}
_SCALARS: Final[dict[int, tuple[tuple[type, ...], str]]] = {
    FieldDescriptor.TYPE_STRING: ((str,), "a string"),
    FieldDescriptor.TYPE_BYTES: ((str,), "a base64 string"),
    FieldDescriptor.TYPE_BOOL: ((bool,), "true or false"),
    FieldDescriptor.TYPE_ENUM: ((str, int), "the name of an enum value"),
}


def violations(value: dict[str, Any], descriptor: Descriptor) -> tuple[Violation, ...]:
    """Find wrong names and types in a JSON object. The range of numbers is left to json_format."""
    faults: list[Violation] = []
    for fault in _of_message(value, descriptor, ""):
        faults.append(fault)
        if len(faults) == _MAX_VIOLATIONS:
            break
    return tuple(faults)


def _of_message(value: Any, descriptor: Descriptor, path: str) -> Iterator[Violation]:
    if descriptor.full_name.startswith("google.protobuf."):
        yield from _of_well_known(value, descriptor.full_name, path)
        return
    if not isinstance(value, dict):
        yield _mismatch(path, value, _OBJECT)
        return
    fields = _fields(descriptor)
    seen: set[str] = set()
    for name, item in value.items():
        field = fields.get(name)
        # By its proto name, as every later check names it, whichever of the two the caller wrote.
        own_name = name if field is None else field.name
        where = f"{path}.{own_name}" if path else own_name
        if field is None:
            yield Violation(where, f"{descriptor.full_name} has no such field")
        elif own_name in seen:
            yield Violation(where, "the field is given twice, under both of its names")
        elif item is not None:
            seen.add(own_name)
            yield from _of_field(item, field, where)


def _of_well_known(value: Any, name: str, path: str) -> Iterator[Violation]:
    read, expected = _FORMS.get(name, (None, ""))
    if read is None:
        return
    if not isinstance(value, str):
        yield _mismatch(path, value, expected)
        return
    try:
        read(value)
    except ValueError:  # FieldMask's and Duration's errors are ValueErrors, too
        yield Violation(path, f"{value[:_MAX_NAME]!r} is not {expected}")


def _of_field(value: Any, field: FieldDescriptor, path: str) -> Iterator[Violation]:
    if _is_map(field):
        yield from _of_map(value, field, path)
    elif not field.is_repeated:
        yield from _of_single(value, field, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _of_single(item, field, f"{path}[{index}]")
    else:
        yield _mismatch(path, value, "a JSON array")


def _of_map(value: Any, field: FieldDescriptor, path: str) -> Iterator[Violation]:
    if not isinstance(value, dict):
        yield _mismatch(path, value, _OBJECT)
        return
    for key, item in value.items():
        yield from _of_single(item, _message_type(field).fields_by_name["value"], f"{path}[{key!r}]")


def _of_single(value: Any, field: FieldDescriptor, path: str) -> Iterator[Violation]:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        yield from _of_message(value, _message_type(field), path)
    elif field.type in _SCALARS:
        types, expected = _SCALARS[field.type]
        if type(value) not in types:
            yield _mismatch(path, value, expected)
        elif field.type == FieldDescriptor.TYPE_ENUM and isinstance(value, str):
            yield from _of_enum(value, field, path)
    elif isinstance(value, str) and not _NUMERAL.fullmatch(value):
        yield Violation(path, f"{value[:_MAX_NAME]!r} is not a number")


def _of_enum(name: str, field: FieldDescriptor, path: str) -> Iterator[Violation]:
    """Find a name that the enum lacks; a number in quotes is left to json_format."""
    names = _names(cast("EnumDescriptor", field.enum_type))
    if name not in names and not (name.isascii() and name.lstrip("-").isdecimal()):
        yield Violation(path, f"{name[:_MAX_NAME]!r} is not one of {', '.join(names)}")


def _mismatch(path: str, value: Any, expected: str) -> Violation:
    return Violation(path, f"expected {expected}, not {kind_of(value)}")


def proto_path(path: str) -> str:
    """A path of JSON names (`spec.nodeName`, `meta.labels[aKey]`) in the names of the proto; keys stay as they are."""
    return _UPPER.sub(lambda found: found[0] if found[0].startswith("[") else f"_{found[0].lower()}", path)


def kind_of(value: Any) -> str:
    """Return the type of a JSON value, for messages."""
    kinds = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(value), "null")


@lru_cache(maxsize=1_000)
def _fields(descriptor: Descriptor) -> Mapping[str, FieldDescriptor]:
    """Fields by the two names that they may have in JSON."""
    return {name: field for field in descriptor.fields for name in (field.name, field.json_name)}


@lru_cache(maxsize=1_000)
def _names(enum: EnumDescriptor) -> tuple[str, ...]:
    """The names of the enum. The descriptor's own container, asked for a lone surrogate, makes later code fail."""
    return tuple(enum.values_by_name)


@lru_cache(maxsize=10_000)
def _is_map(field: FieldDescriptor) -> bool:
    return field.type == FieldDescriptor.TYPE_MESSAGE and _message_type(field).GetOptions().map_entry


def _message_type(field: FieldDescriptor) -> Descriptor:
    return cast("Descriptor", field.message_type)
