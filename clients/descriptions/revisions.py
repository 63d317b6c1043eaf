"""Revisions in a description: hq.v1.InstanceRevision in proto3 JSON, with descriptors of secrets, never values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from descriptions.fields import ID_RULE, Fields, is_id, message_of
from hqpb.v1 import instance_pb2

_NOT_HERE = {
    "target": "say `ready: ID` beside `revisions`; all others are INSTALLED",
    "secretCount": "HQ counts them itself",
    "secret_count": "HQ counts them itself",
}


@dataclass(frozen=True, slots=True)
class Definition:
    """One revision as written.

    Attributes:
        message: its content; target is unset.
        tells_secrets: `secret` is present, even if empty (`secret: []` clears them). Absent: they stay as they are.
    """

    message: instance_pb2.InstanceRevision
    tells_secrets: bool = False

    @property
    def id(self) -> str:
        """The revision's id."""
        return self.message.id


def definitions_of(fields: Fields) -> tuple[Definition, ...]:
    """The list `revisions`."""
    found: list[Definition] = []
    seen: set[str] = set()
    for path, item in fields.items("revisions"):
        definition = _definition(item, path, fields.faults)
        if definition.id and definition.id in seen:
            fields.faults.append(f"{path}.id: {definition.id} is duplicated")
        seen.add(definition.id)
        found.append(definition)
    return tuple(found)


def _definition(value: object, path: str, faults: list[str]) -> Definition:
    if not isinstance(value, dict):
        faults.append(f"{path}: must be fields (`id: ...`, `container: ...`)")
        return Definition(instance_pb2.InstanceRevision())
    for name, instead in _NOT_HERE.items():
        if name in value:
            faults.append(f"{path}.{name}: does not belong here: {instead}")
    kept = {name: inner for name, inner in value.items() if name not in _NOT_HERE}
    before = len(faults)
    message = message_of(kept, instance_pb2.InstanceRevision(), path, faults)
    if len(faults) == before:
        faults += _faults(message, path)
    return Definition(message, tells_secrets="secret" in value)


def _faults(message: instance_pb2.InstanceRevision, path: str) -> Iterator[str]:
    """Faults that HQ would report for every instance, reported once and early. HQ checks more than this."""
    if not is_id(message.id):
        yield f"{path}.id: {f'{message.id!r} is malformed' if message.id else 'is missing'}: {ID_RULE}"
    for name in ("container", "file", "volume", "secret"):
        names = [item.name for item in getattr(message, name)]
        for number, inner in enumerate(names):
            if not inner:
                yield f"{path}.{name}[{number}].name: is missing"
        for inner, count in Counter(names).items():
            if inner and count > 1:
                yield f"{path}.{name}: {inner} occurs {count} times"
    for number, secret in enumerate(message.secret):
        yield from _secret_faults(secret, f"{path}.secret[{number}]")


def _secret_faults(secret: instance_pb2.SecretDescriptor, path: str) -> Iterator[str]:
    for name in ("provider", "id"):
        if not getattr(secret, name):
            yield f"{path}.{name}: is missing"
    if secret.WhichOneof("target") is None:
        yield f"{path}: has no target: set `file` or `environmentVariable`"
