"""Reports that HQ refused for reasons of its own: refused is not silent.

A report that could be read counts for its revision; one that could not, for all of the node that its caller speaks
for. What that moves is bounded (`Deadlines.refused`), so that nobody stays alive by being refused.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from hq.liveness.deadlines import RevisionKey
from hq.liveness.tracker import Tracker
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hq.validation.values import is_id
from hqpb.v1 import service_pb2
from serving.clock import Clock
from serving.errors import NotLoaded

_NODE_SPACING_S: Final = 1.0  # a node's deadlines move at most so often
_NODES_OF_ONE: Final = 64  # behind an address with more nodes it is unknown which of them was refused
_NAMED: Final = 2_000  # revisions in a record; of more the nodes are named
_KEPT: Final = 50_000  # addresses, and nodes


class News(NamedTuple):
    """What other replicas are to be told of: revisions, by uid and id, and nodes."""

    revisions: list[tuple[int, str]]
    nodes: list[str]


class Refusals:
    """Counts them, moves deadlines, and knows what others are to be told of.

    Attributes:
        counted: by reason, for metrics.
    """

    def __init__(self, cache: Cache, tracker: Tracker, clock: Clock) -> None:
        self._cache, self._tracker, self._clock = cache, tracker, clock
        self._nodes_of: OrderedDict[str, dict[str, None]] = OrderedDict()  # by address, where nobody says who they are
        self._looked_at: OrderedDict[str, float] = OrderedDict()  # nodes
        # Since the last record: revisions, nodes with theirs, and nodes of which not all was read yet.
        self._revisions: dict[RevisionKey, Entry] = {}
        self._nodes: dict[str, list[RevisionKey]] = {}
        self._unjudged: set[str] = set()
        self.counted: Counter[str] = Counter()

    def heard_from(self, address: str, node: str) -> None:
        """A report of this node came from an address that nobody vouches for."""
        known = self._nodes_of.get(address)
        if known is None:
            known = self._nodes_of[address] = {}
            if len(self._nodes_of) > _KEPT:
                self._nodes_of.popitem(last=False)
        if node not in known and len(known) < _NODES_OF_ONE and is_id(node):
            known[node] = None

    def nodes_of(self, address: str) -> list[str]:
        """Which nodes reported from an address."""
        return list(self._nodes_of.get(address, ()))

    def report(self, report: service_pb2.ReportStatusRequest, reason: str) -> None:
        """A report that was read; it counts if it comes from whom HQ takes for the reporter."""
        self.counted[reason] += 1
        entry = self._cache.get(report.instance_id)
        # While this replica reads, no deadlines run here that would say whether the others are to know.
        if reason == NotLoaded.reason and len(self._unjudged) < _KEPT and is_id(report.node):
            self._unjudged.add(report.node)
        mark = entry.mark(report.revision.id) if entry is not None else None
        if entry is None or mark is None or entry.traits.node != report.node or entry.traits.uid != report.uid:
            return
        if mark.incarnation and mark.incarnation == report.revision.incarnation:
            self._tracker.refused(entry, mark)
            self._revisions[RevisionKey(entry.traits.id, mark.id)] = entry

    def unread(self, nodes: Iterable[str], reason: str) -> None:
        """One that was not read, from a caller who speaks for these nodes."""
        self.counted[reason] += 1
        for node in nodes:
            if keys := self.node(node):
                self._nodes[node] = keys

    def revision(self, uid: int, revision_id: str) -> None:
        """Another replica refused reports of this one."""
        entry = self._cache.by_uid(uid)
        mark = entry.mark(revision_id) if entry is not None else None
        if entry is not None and mark is not None:
            self._tracker.refused(entry, mark)

    def node(self, node: str) -> list[RevisionKey]:
        """Reports of a node were refused unread, here or by another replica; return which revisions may be meant."""
        now = self._clock.now()
        if now - self._looked_at.get(node, float("-inf")) < _NODE_SPACING_S:
            return []
        self._looked_at[node] = now
        self._looked_at.move_to_end(node)
        if len(self._looked_at) > _KEPT:
            self._looked_at.popitem(last=False)
        keys = []
        for entry in self._cache.on_node(node):
            for mark in entry.marks:
                self._tracker.refused(entry, mark)
                keys.append(RevisionKey(entry.traits.id, mark.id))
        return keys

    def many(self, for_s: float) -> None:
        """Another replica refuses the reports of more nodes than it can name."""
        self._tracker.many_refused_until = self._clock.now() + for_s

    def take_news(self) -> News:
        """What was refused since the last call, and not taken since, here or elsewhere."""
        revisions, nodes, unjudged = self._revisions, self._nodes, self._unjudged
        self._revisions, self._nodes, self._unjudged = {}, {}, set()
        refused = self._tracker.deadlines.is_refused
        named = {key: entry for key, entry in revisions.items() if refused(key)}
        coarse = unjudged.union(node for node, keys in nodes.items() if any(map(refused, keys)))
        if len(named) > _NAMED:
            coarse |= {entry.traits.node for entry in named.values()}
            named = {}
        return News([(entry.traits.uid, key.revision_id) for key, entry in named.items()], sorted(coarse))
