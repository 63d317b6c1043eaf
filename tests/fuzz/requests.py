"""Requests made from the descriptors of the services, and spoiled as bytes or as JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import DecodeError, Message

from hqpb.v1 import admin_pb2, service_pb2
from tests.fuzz import words
from tests.fuzz.plausible import plausible

SERVICES: Final = (
    service_pb2.DESCRIPTOR.services_by_name["InstanceService"],
    admin_pb2.DESCRIPTOR.services_by_name["AdminService"],
)
METHODS: Final[list[MethodDescriptor]] = [m for service in SERVICES for m in service.methods]
_MAX_DEPTH: Final = 6
_TOKENS: Final = {"page_token", "resume_token", "epoch"}


@dataclass(slots=True)
class Known:
    """What a replica has said, to be handed back: tokens by field; and the share of requests that are right as such."""

    tokens: dict[str, str] = field(default_factory=dict)
    plausible_share: float = 0.0


def path_of(method: MethodDescriptor) -> str:
    """The method's path in a URL and in HTTP/2's :path."""
    return f"/{method.containing_service.full_name}/{method.name}"


def names_version(method: MethodDescriptor, body: bytes) -> bool:
    """Whether this body, protobuf or JSON, asks for a version that may be yet to come, by itself or by a token."""
    if any(name in body for name in (b"inVersion", b"min_version", b"Token", b"_token")):
        return True
    made = message_factory.GetMessageClass(method.input_type)()
    try:
        made.ParseFromString(body)
    except DecodeError:
        return False
    read = getattr(made, "read", None)
    return bool(getattr(read, "min_version", 0)) or any(getattr(made, name, "") for name in _TOKENS)


def message(rng: random.Random, method: MethodDescriptor, known: Known) -> Message:
    """A request of the right type, with values that may be right."""
    if rng.random() < known.plausible_share:
        return plausible(rng, method)
    made = message_factory.GetMessageClass(method.input_type)()
    _fill(rng, made, known, 0)
    return made


def spoiled(rng: random.Random, encoded: bytes) -> bytes:
    """The same bytes after up to five accidents."""
    data = bytearray(encoded or b"\x0a")
    for _ in range(rng.randrange(6)):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(7)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place:place] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 2:
            del data[place : place + rng.randrange(1, 9)]
        elif kind == 3:
            data[place:place] = b"\xff" * rng.randrange(1, 12)  # a varint that goes on
        elif kind == 4:
            data += data[place:]
        elif kind == 5:
            data[place:place] = b"\x0a\xff\xff\xff\x07"  # a length beyond the end
        else:
            data[place:place] = b"\x0b" * rng.randrange(1, 200)  # groups within groups
        data = data[:100_000] or bytearray(b"\x0a")
    return bytes(data)


def as_json(rng: random.Random, made: Message) -> bytes:
    """JSON of it, sometimes spoiled: values of other types, other keys, deep nesting, then as text."""
    try:
        # Sorted: maps come in another order each time, and a seed is to say it all.
        text = json_format.MessageToJson(made, preserving_proto_field_name=rng.random() < 0.2, sort_keys=True)
        tree = json.loads(text)
    except Exception:  # what JSON has no words for, e.g. a timestamp beyond the year 9999
        tree = {}
    for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
        _spoil_tree(rng, tree)
    body = json.dumps(tree, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    return spoiled(rng, body) if rng.random() < 0.3 else body


def _fill(rng: random.Random, made: Message, known: Known, depth: int) -> None:
    descriptor = cast("Descriptor", made.DESCRIPTOR)
    likely = 0.7 if depth < 2 else 0.35
    for each in descriptor.fields:
        if rng.random() > likely or (each.type == FieldDescriptor.TYPE_MESSAGE and depth >= _MAX_DEPTH):
            continue
        if each.is_repeated:
            _fill_repeated(rng, made, each, known, depth)
        elif each.type == FieldDescriptor.TYPE_MESSAGE:
            inner = getattr(made, each.name)
            inner.SetInParent()
            _fill(rng, inner, known, depth + 1)
        else:
            setattr(made, each.name, _scalar(rng, each, known))


def _fill_repeated(rng: random.Random, made: Message, each: FieldDescriptor, known: Known, depth: int) -> None:
    items = getattr(made, each.name)
    of = each.message_type
    for _ in range(rng.choice((1, 1, 2, 3))):
        if of is None:
            items.append(_scalar(rng, each, known))
        elif not of.GetOptions().map_entry:
            _fill(rng, items.add(), known, depth + 1)
        elif of.fields_by_name["value"].message_type is not None:
            _fill(rng, items[words.text(rng)], known, depth + 1)
        else:
            key, value = of.fields_by_name["key"], of.fields_by_name["value"]
            items[_scalar(rng, key, known)] = _scalar(rng, value, known)


_SCALARS: Final[Mapping[int, Callable[[random.Random], Any]]] = {
    FieldDescriptor.CPPTYPE_INT32: lambda rng: words.number(rng, 32, signed=True),
    FieldDescriptor.CPPTYPE_INT64: lambda rng: words.number(rng, 64, signed=True),
    FieldDescriptor.CPPTYPE_UINT32: lambda rng: words.number(rng, 32, signed=False),
    FieldDescriptor.CPPTYPE_UINT64: lambda rng: words.number(rng, 64, signed=False),
    FieldDescriptor.CPPTYPE_DOUBLE: lambda rng: rng.choice((0.0, -1.5, 1e308, float("inf"), float("nan"))),
    FieldDescriptor.CPPTYPE_FLOAT: lambda rng: rng.choice((0.0, -1.5, float("inf"), float("nan"))),
    FieldDescriptor.CPPTYPE_BOOL: lambda rng: rng.random() < 0.5,
}


def _scalar(rng: random.Random, each: FieldDescriptor, known: Known) -> Any:
    if each.type == FieldDescriptor.TYPE_BYTES:
        return rng.randbytes(rng.randrange(40))
    if each.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice((0, 1, 2, 3, 4, 99, -1))
    if each.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        given = known.tokens.get(each.name, "")
        return words.token(rng, given) if each.name in _TOKENS and rng.random() < 0.8 else words.text(rng)
    return _SCALARS[each.cpp_type](rng)


def _spoil_tree(rng: random.Random, tree: Any) -> None:
    """One accident somewhere in it."""
    while True:
        keys: list[Any] = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            if isinstance(tree, dict):
                tree[words.text(rng)] = words.json_value(rng)
            return
        key = rng.choice(keys)
        if isinstance(tree[key], dict | list) and rng.random() < 0.7:
            tree = tree[key]
            continue
        break
    kind = rng.randrange(4)
    if kind == 0 and isinstance(key, str):
        tree[key.upper() if rng.random() < 0.5 else words.text(rng)] = tree.pop(key)
    elif kind == 1:
        nested: Any = 1
        for _ in range(rng.choice((3, 63, 64, 65, 200))):
            nested = [nested] if rng.random() < 0.5 else {"read": nested}
        tree[key] = nested
    else:
        tree[key] = words.json_value(rng)
