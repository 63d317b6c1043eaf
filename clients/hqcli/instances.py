"""Instances written by hand: the proto3 JSON form of hq.v1.Instance, as YAML or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from hqcli.documents import BadDocument, documents_in, texts
from hqcli.shape import fill_message, kind
from hqpb.v1.instance_pb2 import Instance, InstanceRevision


@dataclass(frozen=True, slots=True)
class WrittenInstance:
    """One instance as written.

    Attributes:
        place: where it is, for messages: `web.yaml, document 2`.
    """

    place: str
    instance: Instance


def read_documents(names: tuple[str, ...], *, recursive: bool = False) -> list[WrittenInstance]:
    """The instances in files, folders (their .yaml, .yml and .json files) and `-` (stdin), in order.

    `recursive`: include subfolders.

    Raises:
        BadDocument: with one line for each fault found.
    """
    found: list[WrittenInstance] = []
    bad: list[str] = []
    deeper = "" if recursive else "; use -R to include its subfolders"
    for name, text in texts(names, recursive=recursive, hint=deeper):
        for place, value in _values(name, text, bad):
            try:
                found.append(WrittenInstance(place, parse_instance(value)))
            except BadDocument as fault:
                bad += _at(place, fault)
    if bad:
        raise BadDocument("\n".join(bad))
    return found


def parse_text(text: str, name: str = "the text") -> list[Instance]:
    """The instances in a text. Raises BadDocument with one line for each fault found."""
    bad: list[str] = []
    values = list(_values(name, text, bad))
    if bad:
        raise BadDocument("\n".join(bad))
    return [parse_instance(value) for _, value in values]


def read_revision(name: str) -> tuple[str, InstanceRevision]:
    """The one revision in a file, or in stdin (`-`), and its place. Raises BadDocument with one line for each fault."""
    bad: list[str] = []
    values = [found for source, text in texts((name,)) for found in _values(source, text, bad)]
    if bad:
        raise BadDocument("\n".join(bad))
    if len(values) != 1:
        raise BadDocument(f"{'stdin' if name == '-' else name}: must hold one revision (with id and target)")
    place, value = values[0]
    try:
        return place, _revision(value)
    except BadDocument as fault:
        raise BadDocument("\n".join(_at(place, fault))) from None


def _revision(value: Any) -> InstanceRevision:
    """A revision, without what only HQ sets. Raises BadDocument."""
    if not isinstance(value, dict):
        raise BadDocument("must hold one revision (with id and target)")
    if "meta" in value or "spec" in value:
        raise BadDocument("this is an instance; give one of its revisions (an item of spec.revision)")
    revision = InstanceRevision()
    _parse(value, revision)
    if not revision.id:
        raise BadDocument("id: is missing; every revision needs a name")
    revision.ClearField("secret_count")
    return revision


def parse_instance(value: Any) -> Instance:
    """An instance, without what only HQ sets. Raises BadDocument."""
    if not isinstance(value, dict):
        raise BadDocument(f"must be an instance (with meta and spec), not {kind(value)}")
    instance = Instance()
    _parse(value, instance)
    if not instance.meta.id:
        raise BadDocument("meta.id: is missing; every instance needs a name")
    return without_what_hq_sets(instance)


def without_what_hq_sets(instance: Instance) -> Instance:
    """Make the output of `get -o yaml` applicable: status, times and counts are dropped, meta.version stays."""
    instance.ClearField("status")
    for name in ("uid", "cluster", "creation_time", "modification_time", "status_version"):
        instance.meta.ClearField(name)
    for revision in instance.spec.revision:
        revision.ClearField("secret_count")
    return instance


def _at(place: str, fault: BadDocument) -> list[str]:
    return [f"{place}: {line}" for line in str(fault).splitlines()]


def _parse(value: dict[str, Any], message: Message) -> None:
    """Fill a message. Raises BadDocument with one line for each fault found."""
    if found := fill_message(value, message):
        raise BadDocument("\n".join(found))


def _values(name: str, text: str, bad: list[str]) -> Iterator[tuple[str, Any]]:
    """Values that should be instances, with their places. Lists and answers of HQ hold several."""
    for place, value in documents_in(name, text, bad):
        yield from _unwrap_items(place, value)


def _unwrap_items(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and ("items" in value or "instances" in value):
        value = value.get("items") or value.get("instances") or []
    elif isinstance(value, dict) and "instance" in value:
        value = value["instance"]
    if not isinstance(value, list):
        yield place, value
        return
    for number, item in enumerate(value, 1):
        yield f"{place}, item {number}", item
