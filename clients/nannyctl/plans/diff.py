"""The difference between two states of an instance, for people and programs. Pure.

An exact comparison decides whether anything differs; the fields only show it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict

from hqpb.v1 import instance_pb2

_NAMED = ("name", "id")
_TARGETS = {"REVISION_TARGET_READY": "READY", "REVISION_TARGET_INSTALLED": "INSTALLED"}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field. `before` or `after` is None where the field is not there."""

    field: str
    before: Any
    after: Any


def diff(before: instance_pb2.Instance | None, after: instance_pb2.Instance | None) -> tuple[FieldChange, ...]:
    """The changes, in order of fields; none: both are the same. meta.version does not count."""
    if before is not None and after is not None and _same(before, after):
        return ()
    old, new = _flat(before), _flat(after)
    names = dict.fromkeys([*new, *old])
    changes = (FieldChange(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name))
    found = tuple(sorted(changes, key=lambda change: _order(change.field)))
    return found or (FieldChange("spec", "other order of entries", "order of the description"),)


def _same(before: instance_pb2.Instance, after: instance_pb2.Instance) -> bool:
    return before.spec == after.spec and _without_version(before.meta) == _without_version(after.meta)


def _without_version(meta: instance_pb2.InstanceMeta) -> instance_pb2.InstanceMeta:
    copy = instance_pb2.InstanceMeta()
    copy.CopyFrom(meta)
    copy.ClearField("version")
    return copy


def _flat(instance: instance_pb2.Instance | None) -> dict[str, Any]:
    """Values by path: `spec.revision[v2].target`."""
    if instance is None:
        return {}
    told = MessageToDict(instance, preserving_proto_field_name=True)
    told.get("meta", {}).pop("version", None)
    return dict(_leaves(told, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and (name := _name_of(value)):
        for item in value:
            rest = {key: inner for key, inner in item.items() if key != name}
            yield from _leaves(rest or "", f"{path}[{item[name]}]")
    else:
        yield path, _TARGETS.get(value, value) if isinstance(value, str) else value


def _name_of(items: list[Any]) -> str:
    """The field that identifies the items of a list; empty: only their position does."""
    for name in _NAMED:
        names = [item.get(name) for item in items if isinstance(item, dict)]
        if len(names) == len(items) and all(names) and len(set(names)) == len(names):
            return name
    return ""


def _order(field: str) -> tuple[int, str]:
    """Targets come last: they are what an upload is about."""
    return (1 if field.endswith("].target") else 0), field


def format_value(value: Any, field: str = "") -> str:
    """A value on one line; permission bits as people write them."""
    if field.endswith(".mode") and isinstance(value, int):
        return f"{value:04o}"
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value, ensure_ascii=False)
