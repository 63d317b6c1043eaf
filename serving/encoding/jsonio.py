"""Requests and answers in protobuf's two encodings. At worst, parsing raises InvalidRequest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, Final, NoReturn, TypeVar, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from serving.encoding.jsondict import message_to_dict
from serving.encoding.jsonshape import kind_of, proto_path, violations
from serving.errors import InvalidRequest, Violation, invalid

M = TypeVar("M", bound=Message)

_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_MAX_DESCRIPTION: Final = 300
MAX_DEPTH: Final = 128  # whatever the limit is: what Python's own stack can easily take
MOST_ITEMS: Final = 20_000  # of one list; methods have lower bounds of their own
_MOST_VALUES: Final = 200_000  # in all lists of a request together
_MOST_SIGNS: Final = 400_000  # commas and brackets of a body of JSON: each takes ten microseconds and more
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKETS: Final = bytes(sorted(set(range(256)) - set(b"[]{}")))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NUMBER: Final = re.compile(r"(?:invalid literal for int\(\) with base 10|could not convert string to float): ")
_FAILED: Final = re.compile(r"^Failed to parse (\w+) field: ")
_WHERE: Final = re.compile(r" at \w+\.([\w.\[\]]*\w\]?)\.*$")


def parse_proto(message_type: type[M], most: int | None = MOST_ITEMS) -> Callable[[bytes], M]:
    """A parser of the binary encoding; it raises InvalidRequest. `most`: items of one list; None: the caller checks."""
    name = message_type.DESCRIPTOR.full_name
    from_string = message_type.FromString

    def parse(body: bytes) -> M:
        try:
            message = from_string(body)
        except DecodeError as error:
            raise invalid("", f"the body is not a valid binary {name}") from error
        if most is not None and len(body) > most:
            refuse_long_lists(message, most)
        return message

    return parse


def parse_json(message_type: type[M], most: int | None = MOST_ITEMS) -> Callable[[bytes], M]:
    """A parser of proto3 JSON; it raises InvalidRequest, which names what is wrong, and where. `most`: as above."""

    def parse(body: bytes) -> M:
        value = _load(body)
        if not isinstance(value, dict):
            raise invalid("", f"the body is {kind_of(value)}, not a JSON object: send at least {{}}")
        if most is not None and len(body) > most:
            _refuse_many(value, most)
        faults = violations(value, cast("Descriptor", message_type.DESCRIPTOR))
        if faults:
            raise InvalidRequest(*faults)
        try:
            message = json_format.ParseDict(value, message_type(), max_recursion_depth=MAX_DEPTH)
        except json_format.ParseError as error:
            raise InvalidRequest(_violation(error)) from error
        # json_format fails on unforeseen shapes in many ways; its own Parse catches all of them, too.
        except Exception as error:
            raise invalid(
                "", _short(f"the JSON does not match the message: {type(error).__name__}: {error}")
            ) from error
        if most is not None and len(body) > most:
            refuse_long_lists(message, most)
        return message

    return parse


def refuse_long_lists(message: Message, most: int, path: str = "", before: int = 0) -> int:
    """Refuse lists longer than any call can use: an item may take one byte, and cost much more than that.

    Also refuse too many items in all lists together, counted in messages of over `most` bytes only. Returns `before`,
    the items counted so far, plus those of this message.

    Raises InvalidRequest, naming the list.
    """
    if message.ByteSize() <= most:
        return before
    for field, value in message.ListFields():
        here = f"{path}{field.name}"
        if field.is_repeated:
            if len(value) > most:
                raise invalid(here, f"{len(value)} items are too many: send at most {most} at once")
            before += len(value)
            if before > _MOST_VALUES:
                raise invalid(here, f"{before} items in all are too many: send at most {_MOST_VALUES} at once")
        for one in _messages_in(field, value):
            before = refuse_long_lists(one, most, f"{here}.", before)
    return before


def refuse_unknown_numbers(message: Message, path: str = "") -> None:
    """Refuse numbers that no enum value has: any number parses, and once stored fails wherever its name is looked up.

    Raises InvalidRequest, naming the field.
    """
    for field, value in message.ListFields():
        here = f"{path}{field.name}"
        if field.enum_type is not None:
            known = field.enum_type.values_by_number
            for number in value if field.is_repeated else [value]:
                if number not in known:
                    names = ", ".join(field.enum_type.values_by_name)
                    raise invalid(here, f"{number} is not one of {names}")
        for one in _messages_in(field, value):
            refuse_unknown_numbers(one, f"{here}.")


def _messages_in(field: Any, value: Any) -> Iterable[Message]:
    """The messages that a field holds."""
    if field.message_type is None:
        return ()
    if field.message_type.GetOptions().map_entry:
        return [one for one in value.values() if isinstance(one, Message)]
    return cast("Iterable[Message]", value if field.is_repeated else [value])


def to_json(message: Message) -> bytes:
    """Proto3 JSON: lowerCamelCase, fields without a value left out, no white space."""
    return _COMPACT.encode(message_to_dict(message)).encode()


class MessageAnswer:
    """An Answer that is a message."""

    __slots__ = ("_message",)

    def __init__(self, message: Message) -> None:
        self._message = message

    def proto(self) -> bytes:
        return self._message.SerializeToString()

    async def json(self) -> bytes:
        return to_json(self._message)


# --- JSON, strictly -----------------------------------------------------------------------------------------


def _load(body: bytes) -> Any:
    if not body.strip():
        raise invalid("", "the body is empty: send at least {}")
    refuse_deep(body, MAX_DEPTH)
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise invalid("", f"the body is not UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise invalid("", f"the body is not JSON: {_short(str(error))}") from error
    except (ValueError, RecursionError) as error:  # e.g. an integer of thousands of digits
        raise invalid("", f"cannot parse the JSON: {_short(str(error))}") from error


def _refuse_many(value: Any, most: int) -> None:
    """Refuse long lists before a message is made, which takes a hundred times as long. Raises InvalidRequest."""
    left: list[tuple[_Place, Any]] = [((), value)]
    while left:
        place, one = left.pop()
        if len(one) > most:
            raise invalid(_path_of(place), f"{len(one)} items are too many: send at most {most} at once")
        named = one.items() if isinstance(one, dict) else (("", item) for item in one)
        left += [((place, name), item) for name, item in named if isinstance(item, dict | list)]


_Place = tuple[Any, ...]
"""Empty, or the place of the value around this one, and its name in that: whole paths could fill the memory."""


def _path_of(place: _Place) -> str:
    names = list[str]()
    while place:
        place, name = place
        names.append(name)
    return proto_path(_short(".".join(filter(None, reversed(names)))))


def refuse_deep(body: bytes, max_depth: int) -> None:
    """Refuse deep or huge JSON by its brackets and commas alone, before anything is parsed.

    Raises:
        InvalidRequest: more than `max_depth` brackets are open at the same time, or it has very many values.
    """
    is_long = _signs(body) > _MOST_SIGNS and _signs(_STRING.sub(b"", body)) > _MOST_SIGNS
    if _deeper_than(body[:_MOST_SIGNS] if is_long else body, max_depth):
        error = invalid("", f"the JSON is nested deeper than {max_depth} levels")
        error.limit = "max_json_depth"
        raise error
    if is_long:
        raise invalid("", f"more than {_MOST_SIGNS} commas and brackets are too many for JSON: send application/proto")


def _signs(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _deeper_than(body: bytes, max_depth: int) -> bool:
    """Whether more than `max_depth` brackets are open somewhere. Most bodies have fewer to begin with."""
    if body.count(b"[") + body.count(b"{") <= max_depth:
        return False
    brackets = _STRING.sub(b"", body).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > max_depth


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise invalid("", f'the key "{_short(twice)}" occurs twice in one JSON object')
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise invalid("", f"{name} is not JSON; put it in quotes (float fields only)")


def _violation(error: json_format.ParseError) -> Violation:
    """The fault in an error's text, a chain: each link names one more field, the last one says what is wrong."""
    names: list[str] = []
    text = str(error)
    while failed := _FAILED.search(text):
        names.append(failed[1])
        text = text[failed.end() :]
    text = _NUMBER.sub("not a number: ", text)
    where = _WHERE.search(text)
    if where is not None:
        return Violation(proto_path(where[1]), _short(text[: where.start()]))
    return Violation(proto_path(".".join(names)), _short(text.rstrip(".")))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_DESCRIPTION else text[:_MAX_DESCRIPTION] + "…"
