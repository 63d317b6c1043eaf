"""A service's description: what a person or a tool wrote, checked. It is independent of what HQ holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from descriptions.fields import Fields, message_of
from descriptions.installations import addresses_of
from descriptions.resources import allocation_of, request_of
from descriptions.revisions import Definition, definitions_of
from hqcli.shape import kind
from hqpb.v1 import instance_pb2

OTHERS = "others"
MAX_WEIGHT = 1000


@dataclass(frozen=True, slots=True)
class Placement:
    """One instance that the service shall have.

    Attributes:
        place: where it is written, for messages.
        installation: the one that shall hold it; empty: the only one.
        node: empty: left to the scheduler, as allocation None is.
        labels: in addition to the service's; None: remove the label.
        weight: its share of new traffic; None: left unchanged.
    """

    place: str
    id: str
    installation: str = ""
    node: str = ""
    allocation: instance_pb2.ResourceAllocation | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    weight: int | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """The desired state of a service.

    Attributes:
        place: where it is written, for messages.
        labels: to set; None: to remove. Other labels are left unchanged.
        resources: what every instance asks for; None: left unchanged.
        liveness: the times of every instance; empty: the installation's; None: left unchanged.
        definitions: revisions to add or to replace, in order.
        ready: the revision that shall run; empty: targets stay as they are.
        installed: revisions that stay on the node for a roll-back.
        drop: revisions to remove.
        drop_others: remove every revision that is not named here.
        placements: the instances, in order.
        installations: addresses by name, as far as they are written here.
    """

    place: str
    service: str
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    resources: instance_pb2.ResourceRequest | None = None
    liveness: instance_pb2.LivenessSettings | None = None
    definitions: tuple[Definition, ...] = ()
    ready: str = ""
    installed: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    drop_others: bool = False
    placements: tuple[Placement, ...] = ()
    installations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def kept(self) -> frozenset[str]:
        """The revisions named to be kept or added."""
        return frozenset((*self.installed, *(d.id for d in self.definitions), *([self.ready] if self.ready else [])))


def parse_description(value: Any, place: str, faults: list[str]) -> Description:
    """The description in a document. Appends `path: what is wrong` lines to `faults`; then do not use the result."""
    fields = Fields(value, "", faults)
    drop, drop_others = _drops(fields)
    description = Description(
        place=place,
        service=fields.id("service", needed=True),
        labels=_labels(fields),
        annotations=fields.texts("annotations"),
        resources=_resources(fields),
        liveness=_liveness(fields),
        definitions=definitions_of(fields),
        ready=fields.id("ready"),
        installed=fields.ids("installed"),
        drop=drop,
        drop_others=drop_others,
        placements=tuple(_placements(fields, place)),
        installations=_installations(fields),
    )
    fields.done()
    faults += _contradictions(description)
    return description


def _labels(fields: Fields) -> dict[str, str | None]:
    """The labels, with those that have fields of their own: `engine` and `allocator`."""
    labels = fields.texts("labels")
    for name in ("engine", "allocator"):
        value = fields.text(name)
        if value and labels.setdefault(name, value) != value:
            fields.fault(name, f"is {value!r}, and labels.{name} is {labels[name]!r}: write it once")
    return labels


def _resources(fields: Fields) -> instance_pb2.ResourceRequest | None:
    value = fields.raw("resources")
    return None if value is None else request_of(value, fields.at("resources"), fields.faults)


def _liveness(fields: Fields) -> instance_pb2.LivenessSettings | None:
    """`{}` is a value: back to the installation's times."""
    value = fields.raw("liveness")
    if value is None:
        return None
    return message_of(value, instance_pb2.LivenessSettings(), fields.at("liveness"), fields.faults)


def _drops(fields: Fields) -> tuple[tuple[str, ...], bool]:
    value = fields.raw("drop")
    if value == OTHERS:
        return (), True
    if isinstance(value, str):
        fields.fault("drop", f"must be a list of revisions, or `{OTHERS}`, not {value!r}")
        return (), False
    return fields.ids("drop"), False


def _placements(fields: Fields, place: str) -> Iterator[Placement]:
    defaults = fields.raw("allocation")
    if defaults is not None and not isinstance(defaults, dict):
        fields.fault("allocation", f"must be fields, not {kind(defaults)}")
        defaults = None
    # Read once, and shared by all instances that add nothing to it: a copy for each of many would fill the memory.
    shared = None if defaults is None else allocation_of(None, defaults, fields.at("allocation"), fields.faults)
    weights = _Weights(fields)
    for path, item in fields.items("instances"):
        inner = Fields(item, path, fields.faults)
        yield Placement(
            place=f"{place}: {path}",
            id=inner.id("id", needed=True),
            installation=inner.id("installation"),
            node=inner.id("node"),
            allocation=_allocation(inner, defaults, shared),
            labels=inner.texts("labels"),
            weight=weights.of(inner),
        )
        inner.done()
    weights.done()


class _Weights:
    """`weight` of a service: a number for all of its instances, or one for each installation."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        value = fields.raw("weight")
        self._for_all = None if isinstance(value, dict) else _weight(fields)
        inner = Fields(value, fields.at("weight"), fields.faults) if isinstance(value, dict) else None
        self._by_installation = {str(name): _weight(inner, str(name)) for name in value} if inner is not None else {}
        self._unused = set(self._by_installation)

    def of(self, inner: Fields) -> int | None:
        """The instance's own, else that of its installation, else the service's."""
        installation = inner.raw("installation")
        self._unused.discard(installation if isinstance(installation, str) else "")
        own = _weight(inner)
        return own if own is not None else self._by_installation.get(str(installation), self._for_all)

    def done(self) -> None:
        """Report installations that no instance names."""
        for name in sorted(self._unused):
            self._fields.fault(f"weight.{name}", "no instance names this installation")


def _weight(fields: Fields, name: str = "weight") -> int | None:
    value = fields.raw(name)
    if value is None or (type(value) is int and 0 <= value <= MAX_WEIGHT):
        return value
    fields.fault(name, f"is {value!r}: write a number from 0 (no new traffic) to {MAX_WEIGHT}; 100 is the usual one")
    return None


def _allocation(
    fields: Fields, defaults: Any, shared: instance_pb2.ResourceAllocation | None
) -> instance_pb2.ResourceAllocation | None:
    """The instance's own over the service's; `allocation:` with nothing leaves it to the scheduler."""
    value = fields.raw("allocation")
    if value is None:
        return None if fields.has("allocation") else shared
    return allocation_of(value, defaults or {}, fields.at("allocation"), fields.faults)


def _installations(fields: Fields) -> dict[str, tuple[str, ...]]:
    value = fields.raw("installations")
    return {} if value is None else addresses_of(value, fields.at("installations"), fields.faults)


def _contradictions(description: Description) -> Iterator[str]:
    """Faults between fields."""
    defined, kept = {d.id for d in description.definitions}, description.kept
    for number, revision in enumerate(description.drop):
        if revision in kept:
            named = "ready" if revision == description.ready else "revisions" if revision in defined else "installed"
            yield f"drop[{number}]: {revision} is also under {named}: keep it or drop it"
    for number, revision in enumerate(description.installed):
        if revision == description.ready:
            yield f"installed[{number}]: {revision} is the READY one, which is installed anyway"
    if description.drop_others and not kept:
        yield f"drop: `{OTHERS}` would leave no revision at all: name those that stay under `ready` or `installed`"
    seen: set[str] = set()
    for number, placement in enumerate(description.placements):
        if placement.id and placement.id in seen:
            yield f"instances[{number}].id: {placement.id} is duplicated"
        seen.add(placement.id)
