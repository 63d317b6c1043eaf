"""Does a value written by hand have the shape of a message? All faults at once, each with its path.

protobuf's own parser stops at the first fault and leaves out positions in lists. What this lets pass
(numbers out of range, malformed times) the parser still refuses.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

_INTEGERS = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)
_UPPER = re.compile("[A-Z]")
_STEP = re.compile(r"Failed to parse (\w+) field: ")
_ALIKE = 0.65  # similarity of names: node and nodeName pass, spec and secret do not
_AS_TEXT = {
    "google.protobuf.Timestamp": 'a time in quotes, e.g. "2026-01-31T12:00:00Z"',
    "google.protobuf.Duration": 'a duration in quotes, in seconds, e.g. "10s"',
}


def faults(value: Any, message: Descriptor, path: str = "") -> Iterator[str]:
    """`path: what is wrong`, for each fault; none: the shape is right."""
    if message.full_name in _AS_TEXT:
        if not isinstance(value, str):
            yield f"{path}: must be {_AS_TEXT[message.full_name]}, not {kind(value)}"
        return
    if not isinstance(value, dict):
        yield f"{path}: must hold the fields {_names(message)}, not {kind(value)}"
        return
    for name, inner in value.items():
        field = _field(message, name)
        own_name = name if field is None else field.name  # the name that HQ's own errors use
        inner_path = f"{path}.{own_name}" if path else str(own_name)
        if field is None:
            yield f"{inner_path}: unknown field; {_instead(str(name), _field_names(message))}"
        elif inner is not None:
            yield from _field_faults(inner, field, inner_path)


def fill_message(value: Any, message: Message, path: str = "") -> list[str]:
    """Fill a message with its proto3 JSON form; return `path: what is wrong` for each fault, if there are any."""
    found = list(faults(value, cast("Descriptor", message.DESCRIPTOR), path))
    if not found:
        try:
            ParseDict(value, message)
        except ParseError as error:
            found = [_where_and_why(path, str(error))]
    return found


def _where_and_why(path: str, text: str) -> str:
    """Protobuf's description of a fault in what is at `path`, as `path.of.field: what is wrong`."""
    inner = _UPPER.sub(lambda found: f"_{found[0].lower()}", ".".join(_STEP.findall(text)))
    where = ".".join(filter(None, (path, inner)))
    why = _STEP.sub("", text).strip().rstrip(".")
    return f"{where}: {why}" if where else why


def kind(value: Any) -> str:
    """Name the type of a value."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return {str: "text", list: "a list", dict: "fields", type(None): "nothing"}.get(type(value), "this")


def no_text(value: Any) -> str:
    """Describe a value that stands where text belongs. Quotes can fix a scalar only."""
    quotes = ": put it in quotes" if isinstance(value, int | float) else ""
    return f"must be text, not {kind(value)}{quotes}"


def _field_faults(value: Any, field: FieldDescriptor, path: str) -> Iterator[str]:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        yield from _map_faults(value, entry.fields_by_name["value"], path)
    elif not field.is_repeated:
        yield from _value_faults(value, field, path)
    elif not isinstance(value, list):
        yield f"{path}: must be a list (start each item with a dash), not {kind(value)}"
    else:
        for number, item in enumerate(value):
            yield from _value_faults(item, field, f"{path}[{number}]")


def _map_faults(value: Any, field: FieldDescriptor, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: must be `key: value` lines, not {kind(value)}"
        return
    for key, inner in value.items():
        yield from _value_faults(inner, field, f"{path}.{key}")


def _value_faults(value: Any, field: FieldDescriptor, path: str) -> Iterator[str]:
    if field.message_type is not None:
        yield from faults(value, field.message_type, path)
    elif field.enum_type is not None:
        yield from _enum_faults(value, field.enum_type, path)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING and not isinstance(value, str):
        quoted = f', e.g. "{str(value).lower()}"' if isinstance(value, int | float) else ""
        yield f"{path}: {no_text(value)}{quoted}"
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL and not isinstance(value, bool):
        yield f"{path}: must be true or false, not {kind(value)}"
    elif field.cpp_type in _INTEGERS and not _is_integer(value):
        yield f"{path}: must be a whole number, not {value!r}"


def _enum_faults(value: Any, enum: EnumDescriptor, path: str) -> Iterator[str]:
    if isinstance(value, str) and value not in enum.values_by_name:
        yield f"{path}: {value!r} is not a valid value; {_instead(value, [v.name for v in enum.values])}"


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, str) and value.lstrip("-").isdecimal())


def _field(message: Descriptor, name: Any) -> FieldDescriptor | None:
    return message.fields_by_camelcase_name.get(name) or message.fields_by_name.get(name)


def _field_names(message: Descriptor) -> list[str]:
    return [field.camelcase_name for field in message.fields]


def _names(message: Descriptor) -> str:
    return ", ".join(_field_names(message))


def _instead(name: str, known: Iterable[str]) -> str:
    known = list(known)
    suffixed = [one for one in known if name and one.upper().endswith("_" + name.upper())]
    close = suffixed or difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
