"""Filters, compiled once per request and asked without decoding anything."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from hq.entry import Traits
from hqpb.v1 import service_pb2


class Query:
    """A compiled InstanceFilter. Equal filters have equal `digest`."""

    __slots__ = (
        "allocated",
        "clusters",
        "digest",
        "ids",
        "labels",
        "nodes",
        "ready",
        "revisions",
        "services",
    )

    def __init__(self, message: service_pb2.InstanceFilter) -> None:
        self.ids = frozenset(message.instance_id)
        self.services = frozenset(message.service_id)
        self.nodes = frozenset(message.node_name)
        self.revisions = frozenset(message.revision_id)
        self.clusters = frozenset(message.cluster)
        self.labels = tuple(sorted(message.labels.items()))
        self.ready = _tristate(message.readiness)
        self.allocated = _tristate(message.allocated)
        words = [sorted(s) for s in (self.ids, self.services, self.nodes, self.revisions, self.clusters)]
        described = repr((words, self.labels, self.ready, self.allocated)).encode()
        self.digest = hashlib.blake2b(described, digest_size=8).hexdigest()

    def matches(self, t: Traits) -> bool:
        """Whether an instance with these traits passes."""
        return (
            (not self.services or t.service in self.services)
            and (self.ready is None or t.ready is self.ready)
            and (not self.ids or t.id in self.ids)
            and (not self.nodes or t.node in self.nodes)
            and (not self.clusters or t.cluster in self.clusters)
            and (self.allocated is None or t.allocated is self.allocated)
            and (not self.revisions or not self.revisions.isdisjoint(t.revisions))
            and (not self.labels or _subset(self.labels, t.labels))
        )

    def is_bare(self, field: Iterable[str]) -> bool:
        """Whether a bucket that was chosen by `field` holds nothing but matches."""
        sets = (self.ids, self.services, self.nodes, self.revisions, self.clusters)
        others = any(s and s is not field for s in sets)
        return not others and not self.labels and self.ready is None and self.allocated is None


def _subset(wanted: tuple[tuple[str, str], ...], labels: tuple[tuple[str, str], ...]) -> bool:
    return all(pair in labels for pair in wanted)


def _tristate(value: int) -> bool | None:
    """1 is yes and 2 is no in both filters; 0 is either."""
    return None if value == 0 else value == 1
