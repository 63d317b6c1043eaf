"""Filters, compiled once per request and asked without decoding anything."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from typing import NamedTuple

from hq.memory.entry import Entry, Traits
from hqpb.v1 import service_pb2

_SETS = ("ids", "services", "nodes", "revisions", "clusters", "labels", "label_rules")
_NONE: frozenset[str] = frozenset()  # there are many watches, and each empty set takes 200 bytes


class Lookup(NamedTuple):
    """An index that can narrow a query down.

    Attributes:
        name: of the index: "services", "nodes", "revisions", "labels", "unready" or "unallocated".
        words: instances under any of them are candidates.
        settles: the field of the query that all of these match; empty: none.
    """

    name: str
    words: Sequence[Hashable]
    settles: str


class LabelRule(NamedTuple):
    """A condition on one label.

    Attributes:
        is_one_of: the label must have one of `values`; else none of them, or be absent.
        values: rising; empty: any value.
    """

    key: str
    is_one_of: bool
    values: tuple[str, ...]

    def is_met_by(self, labels: Iterable[tuple[str, str]]) -> bool:
        has_it = any(key == self.key and (not self.values or self._names(value)) for key, value in labels)
        return has_it is self.is_one_of

    def _names(self, value: str) -> bool:
        """Whether `values` has this one. Bisected: there may be thousands, and each watch may compare an instance."""
        place = bisect_left(self.values, value)
        return place < len(self.values) and self.values[place] == value


class Query:
    """A compiled InstanceFilter. Equal filters have equal `digest`.

    Attributes:
        fields: names of those that are set.
        listing: the service and the readiness it asks for, if it asks for nothing else: such lists are kept.
        lookups: the indexes that can narrow it down.
    """

    __slots__ = (
        *("_digest", "_lookups", "allocated", "clusters", "fields", "ids", "label_rules", "labels", "listing"),
        *("nodes", "ready", "revisions", "services", "silent"),
    )

    def __init__(self, message: service_pb2.InstanceFilter) -> None:
        # Slices: an iterator over a repeated field costs twice as much, also over an empty one.
        self.ids = frozenset(message.instance_id[:]) or _NONE
        self.services = frozenset(message.service_id[:]) or _NONE
        self.nodes = frozenset(message.node_name[:]) or _NONE
        self.revisions = frozenset(message.revision_id[:]) or _NONE
        self.clusters = frozenset(message.cluster[:]) or _NONE
        self.labels = tuple(sorted(message.labels.items())) if message.labels else ()
        self.label_rules = tuple(sorted(set(map(_label_rule, message.label_requirement[:]))))
        self.ready = _tristate(message.readiness)
        self.allocated = _tristate(message.allocated)
        self.silent = _tristate(message.agent)
        self.fields = self._fields()
        self.listing = (min(self.services), self.ready) if self._is_of_one_service() else None
        self._digest = ""
        self._lookups: tuple[Lookup, ...] | None = None

    # Most queries ask for a kept list, or for ids, and need neither of these.

    @property
    def digest(self) -> str:
        if not self._digest:
            words = [sorted(s) for s in (self.ids, self.services, self.nodes, self.revisions, self.clusters)]
            # What is not asked for is left out: tokens of an older version keep their meaning.
            silent = () if self.silent is None else (self.silent,)
            rules = (self.label_rules,) if self.label_rules else ()
            described = repr((words, self.labels, self.ready, self.allocated, *silent, *rules)).encode()
            self._digest = hashlib.blake2b(described, digest_size=8).hexdigest()
        return self._digest

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        if self._lookups is None:
            self._lookups = tuple(self._found_lookups())
        return self._lookups

    def of_unready(self) -> Query:
        """The same filter, of instances that are not ready."""
        made = copy(self)
        made.ready, made.fields, made.listing = False, self.fields | {"ready"}, None
        made._digest, made._lookups = "", None  # noqa: SLF001  # a copy of our own
        return made

    def matches(self, t: Traits) -> bool:
        """Whether an instance with these traits passes."""
        return (
            (not self.services or t.service in self.services)
            and (self.ready is None or t.ready is self.ready)
            and (not self.ids or t.id in self.ids)
            and (not self.nodes or t.node in self.nodes)
            and (not self.clusters or t.cluster in self.clusters)
            and (self.allocated is None or t.allocated is self.allocated)
            and (self.silent is None or t.silent is self.silent)
            and (not self.revisions or not self.revisions.isdisjoint(t.revisions))
            and (not self.labels or all(label in t.labels for label in self.labels))
            and (not self.label_rules or all(rule.is_met_by(t.labels) for rule in self.label_rules))
        )

    def passing(self, entries: Sequence[Entry], fields: Iterable[str]) -> Sequence[Entry]:
        """Entries that pass these fields of the query. One pass for each field costs less than one that tests all of
        them.
        """
        for field in fields:
            entries = _PASSING[field](self, entries)
        return entries

    def _fields(self) -> frozenset[str]:
        said = [name for name in _SETS if getattr(self, name)]
        if self.ready is not None:
            said.append("ready")
        if self.allocated is not None:
            said.append("allocated")
        if self.silent is not None:
            said.append("silent")
        return frozenset(said)

    def _is_of_one_service(self) -> bool:
        return len(self.services) == 1 and self.fields <= {"services", "ready"}

    def _found_lookups(self) -> list[Lookup]:
        sets = (("services", self.services), ("nodes", self.nodes), ("revisions", self.revisions))
        lookups = [Lookup(name, sorted(words), name) for name, words in sets if words]
        settles = "labels" if len(self.labels) == 1 else ""
        lookups += [Lookup("labels", (label,), settles) for label in self.labels]
        rules = [rule for rule in self.label_rules if rule.is_one_of and rule.values]
        settles = "label_rules" if len(self.label_rules) == 1 else ""
        lookups += [Lookup("labels", [(rule.key, value) for value in rule.values], settles) for rule in rules]
        if self.ready is False or self.silent:  # silent instances are all among the unready
            lookups.append(Lookup("unready", UNREADY, "ready" if self.ready is False else ""))
        if self.allocated is False:
            lookups.append(Lookup("unallocated", UNALLOCATED, "allocated"))
        return lookups


def _filter_by_labels(query: Query, entries: Sequence[Entry]) -> Sequence[Entry]:
    for label in query.labels:
        entries = [entry for entry in entries if label in entry.traits.labels]
    return entries


def _filter_by_label_rules(query: Query, entries: Sequence[Entry]) -> Sequence[Entry]:
    return [e for e in entries if all(rule.is_met_by(e.traits.labels) for rule in query.label_rules)]


_PASSING: dict[str, Callable[[Query, Sequence[Entry]], Sequence[Entry]]] = {
    "ids": lambda q, entries: [e for e in entries if e.traits.id in q.ids],
    "services": lambda q, entries: [e for e in entries if e.traits.service in q.services],
    "nodes": lambda q, entries: [e for e in entries if e.traits.node in q.nodes],
    "revisions": lambda q, entries: [e for e in entries if not q.revisions.isdisjoint(e.traits.revisions)],
    "clusters": lambda q, entries: [e for e in entries if e.traits.cluster in q.clusters],
    "labels": _filter_by_labels,
    "label_rules": _filter_by_label_rules,
    "ready": lambda q, entries: [e for e in entries if e.traits.ready is q.ready],
    "silent": lambda q, entries: [e for e in entries if e.traits.silent is q.silent],
    "allocated": lambda q, entries: [e for e in entries if e.traits.allocated is q.allocated],
}
# These indexes have one word each: the state that most instances are in needs no index.
UNREADY, UNALLOCATED = ("unready",), ("unallocated",)


def _label_rule(message: service_pb2.LabelRequirement) -> LabelRule:
    is_one_of = message.operator in (service_pb2.LABEL_OPERATOR_IN, service_pb2.LABEL_OPERATOR_EXISTS)
    return LabelRule(message.key, is_one_of, tuple(sorted(set(message.value))))


def _tristate(value: int) -> bool | None:
    """1 is yes and 2 is no in both filters; 0 is either."""
    return None if value == 0 else value == 1
