"""Reports that HQ refused for reasons of its own, counted here and published to the other replicas.

An agent whose report was refused is not silent. A report that could be read counts for its revision; one that could
not, for all revisions on the caller's node. The effect is bounded (`Deadlines.record_refusal`), so that nobody stays
alive by being refused. An agent that reaches only one replica would expire at all others, so each replica publishes its
refusals in one record, while there are any. Expiries compare these records like heartbeats, so none is overlooked."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from hq.keys import HEARING, HqKeys
from hq.liveness.deadlines import RevisionKey
from hq.liveness.tracker import Tracker
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hq.validation.values import is_id
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import service_pb2
from serving.clock import Clock
from serving.errors import NotLoaded
from store.epoch import Epoch
from store.port import Store, StoreError, Write

_NODE_SPACING_S: Final = 1.0  # a node's deadlines move at most so often
_NODES_OF_ONE: Final = 64  # behind an address with more nodes it is unknown which of them was refused
_NAMED: Final = 2_000  # revisions in a record; if there are more, their nodes are named
_KEPT: Final = 50_000  # addresses, and nodes


class News(NamedTuple):
    """Refusals to publish to other replicas: revisions, by uid and id, and nodes."""

    revisions: list[tuple[int, str]]
    nodes: list[str]


class Refusals:
    """Counts refusals, moves deadlines, and collects what to tell other replicas.

    Attributes:
        counted: by reason, for metrics.
    """

    def __init__(self, cache: Cache, tracker: Tracker, clock: Clock) -> None:
        self._cache, self._tracker, self._clock = cache, tracker, clock
        self._nodes_of: OrderedDict[str, dict[str, None]] = OrderedDict()  # by address, of unauthenticated callers
        self._looked_at: OrderedDict[str, float] = OrderedDict()  # by node
        # Refused since this replica's last record, for the next one: revisions, nodes with the revisions affected, and
        # nodes refused while this replica loaded.
        self._revisions: dict[RevisionKey, Entry] = {}
        self._nodes: dict[str, list[RevisionKey]] = {}
        self._unjudged: set[str] = set()
        self.counted: Counter[str] = Counter()

    def heard_from(self, address: str, node: str) -> None:
        """Note that a report of this node came from an unauthenticated address."""
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
        """Count a report that was read and refused, if it comes from the current reporter."""
        self.counted[reason] += 1
        entry = self._cache.get(report.instance_id)
        # While this replica loads, no deadlines run here that would show whether other replicas must be told.
        if reason == NotLoaded.reason and len(self._unjudged) < _KEPT and is_id(report.node):
            self._unjudged.add(report.node)
        mark = entry.mark(report.revision.id) if entry is not None else None
        if entry is None or mark is None or entry.traits.node != report.node or entry.traits.uid != report.uid:
            return
        if mark.incarnation and mark.incarnation == report.revision.incarnation:
            self._tracker.record_refusal(entry, mark)
            self._revisions[RevisionKey(entry.traits.id, mark.id)] = entry

    def unread(self, nodes: Iterable[str], reason: str) -> None:
        """Count a report that was refused unread, from a caller who speaks for these nodes."""
        self.counted[reason] += 1
        for node in nodes:
            if keys := self.node(node):
                self._nodes[node] = keys

    def revision(self, uid: int, revision_id: str) -> None:
        """Note that another replica refused reports of this revision."""
        entry = self._cache.by_uid(uid)
        mark = entry.mark(revision_id) if entry is not None else None
        if entry is not None and mark is not None:
            self._tracker.record_refusal(entry, mark)

    def node(self, node: str) -> list[RevisionKey]:
        """Note that reports of a node were refused unread, here or elsewhere; return those that may be affected."""
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
                self._tracker.record_refusal(entry, mark)
                keys.append(RevisionKey(entry.traits.id, mark.id))
        return keys

    def many(self, for_s: float) -> None:
        """Note that another replica refuses the reports of more nodes than it can name."""
        self._tracker.many_refused_until = self._clock.now() + for_s

    def take_news(self) -> News:
        """Return reports refused since the last call, and not accepted since, here or elsewhere."""
        revisions, nodes, unjudged = self._revisions, self._nodes, self._unjudged
        self._revisions, self._nodes, self._unjudged = {}, {}, set()
        deadlines = self._tracker.deadlines

        def is_key_refused(key: RevisionKey) -> bool:
            return deadlines.of(key).is_refused(key)

        named = {key: entry for key, entry in revisions.items() if is_key_refused(key)}
        coarse = unjudged.union(node for node, keys in nodes.items() if any(map(is_key_refused, keys)))
        if len(named) > _NAMED:
            coarse |= {entry.traits.node for entry in named.values()}
            named = {}
        return News([(entry.traits.uid, key.revision_id) for key, entry in named.items()], sorted(coarse))


log = logging.getLogger(__name__)

_EVERY_S: Final = 5.0
_MANY_HOLDS_S: Final = 30.0
_MOST_NODES: Final = 1_000
_TIMEOUT_S: Final = 3.0


class PublishedRefusals:
    """Writes this replica's record, and takes in the others'."""

    def __init__(
        self,
        store: Store,
        keys: HqKeys,
        replica: str,
        epoch: Epoch,
        refusals: Refusals,
        clock: Clock,
        rng: random.Random,
        timeout_s: float,
    ) -> None:
        """`timeout_s`: of liveness."""
        self._store, self._epoch, self._refusals = store, epoch, refusals
        self._replica, self._key = replica, keys.of(HEARING, replica)
        self._clock, self._rng = clock, rng
        self._every_s = min(_EVERY_S, timeout_s / 10)

    def observe(self, replica: str, value: bytes) -> None:
        """Take in a replica's record from the watch. Raises DecodeError."""
        if replica == self._replica:
            return
        record = storage_pb2.HearingRecord.FromString(value)
        for revision in record.revision:
            self._refusals.revision(revision.uid, revision.id)
        for node in record.node[:_MOST_NODES]:
            self._refusals.node(node)
        if record.many:
            self._refusals.many(_MANY_HOLDS_S)

    async def run(self) -> None:
        """Publish refusals for ever: at most every few seconds, and nothing while nothing is refused."""
        while True:
            await asyncio.sleep(self._rng.uniform(0.8, 1.0) * self._every_s)
            news = self._refusals.take_news()
            if any(news):
                await self._tell(news)

    async def _tell(self, news: News) -> None:
        is_many = len(news.nodes) > _MOST_NODES
        record = storage_pb2.HearingRecord(
            revision=[storage_pb2.RefusedRevision(uid=uid, id=revision_id) for uid, revision_id in news.revisions],
            node=[] if is_many else news.nodes,
            many=is_many,
            unix_ms=self._clock.wall_ms(),
        )
        put = Write((), ((self._key, record.SerializeToString()),))
        try:
            await self._store.commit((self._epoch.guard(),), (put,), _TIMEOUT_S)
        except (StoreError, TimeoutError) as error:
            # The next refused reports are published again. A late record moves deadlines by less than allowed anyway.
            log.warning("could not publish which reports were refused: %s", error)
