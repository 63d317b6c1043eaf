"""Instances written by hand: the proto3 JSON form of hq.v1.Instance, as YAML or JSON."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml
from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from clients.hqctl.shape import faults, kind
from hqpb.v1 import instance_pb2

SUFFIXES = (".yaml", ".yml", ".json")

_STEP = re.compile(r"Failed to parse (\w+) field: ")


class BadDocument(Exception):
    """A document is no instance; str() says where and why."""


@dataclass(frozen=True, slots=True)
class Document:
    """One instance as written.

    Attributes:
        place: where it is, for messages: `web.yaml, document 2`.
    """

    place: str
    instance: instance_pb2.Instance


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML with the words of YAML 1.2: only true and false are booleans, times stay text; no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.value != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is there twice", key.start_mark
                )
            seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
    ]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_TRUE_OR_FALSE = re.compile(r"^(?:true|false)$", re.IGNORECASE)
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _TRUE_OR_FALSE, list("tTfF"))


def read_documents(names: tuple[str, ...], *, recursive: bool = False) -> list[Document]:
    """The instances in files, folders (their .yaml, .yml and .json files) and `-` (stdin), in order.

    `recursive`: folders with all folders in them.

    Raises:
        BadDocument: with one line for each fault found.
    """
    found: list[Document] = []
    bad: list[str] = []
    for name, text in _texts(names, recursive=recursive):
        for place, value in _values(name, text, bad):
            try:
                found.append(Document(place, parse_instance(value)))
            except BadDocument as fault:
                bad += [f"{place}: {line}" for line in str(fault).splitlines()]
    if bad:
        raise BadDocument("\n".join(bad))
    return found


def parse_text(text: str, name: str = "the text") -> list[instance_pb2.Instance]:
    """The instances in a text. Raises BadDocument with one line for each fault found."""
    bad: list[str] = []
    values = list(_values(name, text, bad))
    if bad:
        raise BadDocument("\n".join(bad))
    return [parse_instance(value) for _, value in values]


def read_revision(name: str) -> instance_pb2.InstanceRevision:
    """The one revision in a file, or in stdin (`-`). Raises BadDocument."""
    bad: list[str] = []
    values = [value for place, text in _texts((name,)) for _, value in _values(place, text, bad)]
    if bad:
        raise BadDocument("\n".join(bad))
    if len(values) != 1 or not isinstance(values[0], dict):
        raise BadDocument(f"{name}: must hold one revision (with id and target)")
    revision = instance_pb2.InstanceRevision()
    _parse(values[0], revision)
    if not revision.id:
        raise BadDocument(f"{name}: id: is missing; every revision needs a name")
    revision.ClearField("secret_count")
    return revision


def parse_instance(value: Any) -> instance_pb2.Instance:
    """An instance, without what only HQ sets. Raises BadDocument."""
    if not isinstance(value, dict):
        raise BadDocument(f"must be an instance (with meta and spec), not {kind(value)}")
    instance = instance_pb2.Instance()
    _parse(value, instance)
    if not instance.meta.id:
        raise BadDocument("meta.id: is missing; every instance needs a name")
    return without_what_hq_sets(instance)


def _parse(value: dict[str, Any], message: Message) -> None:
    """Fill a message. Raises BadDocument with one line for each fault found."""
    if found := list(faults(value, cast("Descriptor", message.DESCRIPTOR))):
        raise BadDocument("\n".join(found))
    try:
        ParseDict(value, message)
    except ParseError as error:
        raise BadDocument(_where_and_why(str(error))) from None


def without_what_hq_sets(instance: instance_pb2.Instance) -> instance_pb2.Instance:
    """What `get -o yaml` showed can be applied: status, times and counts are dropped, meta.version stays."""
    instance.ClearField("status")
    for name in ("uid", "cluster", "creation_time", "modification_time", "status_version"):
        instance.meta.ClearField(name)
    for revision in instance.spec.revision:
        revision.ClearField("secret_count")
    return instance


def _texts(names: tuple[str, ...], *, recursive: bool = False) -> Iterator[tuple[str, str]]:
    for name in names:
        if name == "-":
            yield "stdin", sys.stdin.read()
            continue
        path = Path(name)
        files = _files_in(path, recursive) if path.is_dir() else [path]
        if not files:
            deeper = "" if recursive else "; -R looks into the folders in it, too"
            raise BadDocument(f"{name}: there is no {', '.join(SUFFIXES)} file in this folder{deeper}")
        for file in files:
            yield str(file), _text_of(file)


def _files_in(folder: Path, recursive: bool) -> list[Path]:
    return sorted(p for p in folder.glob("**/*" if recursive else "*") if p.suffix in SUFFIXES and p.is_file())


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadDocument(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadDocument(f"{file}: is not UTF-8 text") from None


def _values(name: str, text: str, bad: list[str]) -> Iterator[tuple[str, Any]]:
    """Values that should be instances, with their places. Lists and answers of HQ hold several."""
    try:
        documents = [value for value in yaml.load_all(text, Loader=_Loader) if value is not None]
    except yaml.YAMLError as error:
        bad.append(f"{name}: {_yaml_fault(error)}")
        return
    if not documents:
        bad.append(f"{name}: there is nothing in it")
    for number, value in enumerate(documents, 1):
        place = f"{name}, document {number}" if len(documents) > 1 else name
        yield from _unwrapped(place, value)


def _unwrapped(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and ("items" in value or "instances" in value):
        value = value.get("items") or value.get("instances") or []
    elif isinstance(value, dict) and "instance" in value:
        value = value["instance"]
    if not isinstance(value, list):
        yield place, value
        return
    for number, item in enumerate(value, 1):
        yield f"{place}, item {number}", item


def _yaml_fault(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)


def _where_and_why(text: str) -> str:
    """What protobuf says of a fault, as `path.of.field: what is wrong`."""
    path = ".".join(_STEP.findall(text))
    why = _STEP.sub("", text).strip().rstrip(".")
    return f"{path}: {why}" if path else why
