"""The instances of the services watched: built from the items of a watch. Decisions only, no I/O."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from hqclient.discovery.doubts import BELIEVE_AFTER_S, Doubts
from hqclient.discovery.endpoint import Key, KnownInstance, ready_instance
from hqclient.watch_items import Bookmark, Changes, Interrupted, Resync, SnapshotPart, Synced, WatchItem
from hqpb.v1 import instance_pb2, service_pb2

Keep = Callable[[instance_pb2.Instance], KnownInstance | None]

_DOUBTED: Final = service_pb2.EPOCH_TRUST_DOUBTED


class Origin(enum.Enum):
    """Where the list comes from."""

    NONE = "nothing is known yet"
    SAVED = "the file of an earlier process; HQ has not answered since"
    KEPT = "the last good state; HQ is away, or a new snapshot is on its way"
    LIVE = "a watch that stands"


@dataclass(frozen=True, slots=True)
class Delta:
    """One step: (before, after) of each instance that differs; None: not in the list.

    Attributes:
        version: HQ's version of the step; 0: the step comes from a snapshot.
        resync: why continuity was lost before this step; empty: nothing is left out.
        collapsed: HQ itself omitted steps before this one.
    """

    changes: Mapping[Key, tuple[KnownInstance | None, KnownInstance | None]]
    version: int = 0
    resync: str = ""
    collapsed: bool = False

    def by_service(self) -> dict[str, Delta]:
        """The step, split by service; an instance that went from one service to another is in both parts."""
        parts: dict[str, dict[Key, tuple[KnownInstance | None, KnownInstance | None]]] = {}
        for key, change in self.changes.items():
            for service in {instance.service for instance in change if instance is not None}:
                parts.setdefault(service, {})[key] = change
        return {service: replace(self, changes=changes) for service, changes in parts.items()}


class Roster:
    """The list, and how far it can be trusted.

    A snapshot is built separately and replaces the list when it is complete; until then the old list stays in use.
    """

    def __init__(self, believe_after_s: float = BELIEVE_AFTER_S, keep: Keep = ready_instance) -> None:
        """`believe_after_s`: instances that a new epoch of the store lacks are kept for at most this time.

        `keep`: reduces an instance to what is kept; None: leave it out of the list.
        """
        self._keep = keep
        self._doubts = Doubts(believe_after_s)
        self.instances: dict[Key, KnownInstance] = {}
        self.origin = Origin.NONE
        self.resyncs = 0
        self.source_is_stale = False
        self._as_of = -math.inf  # the list was complete at this moment
        self._snapshot: dict[Key, KnownInstance] | None = {}  # being built; None: none is expected
        self._anew: dict[str, dict[Key, KnownInstance]] = {}  # by cluster: a gateway's snapshot, being built
        self._members: set[str] = set()  # clusters that the server says it answers for
        self._away: set[str] = set()  # of these, those that a gateway cannot reach
        self._heard: set[str] = set()  # clusters that have sent this process a complete snapshot
        self._resync = ""
        self._unconfirmed: dict[str, set[Key]] = {}  # by cluster, away or doubted: kept from an older list

    def __repr__(self) -> str:
        return f"Roster({len(self.instances)} instances, {self.origin.name}, resyncs={self.resyncs})"

    @property
    def is_known(self) -> bool:
        """Whether there is a list, possibly an empty one."""
        return self.origin is not Origin.NONE

    @property
    def is_whole(self) -> bool:
        """Whether no snapshot is in progress, except of unreachable clusters: a resume token belongs to this list."""
        return self._snapshot is None and self._anew.keys() <= self._away

    @property
    def is_resumable(self) -> bool:
        """Whether the list is exactly what the token covers: nothing in it is kept from an older list."""
        return self.is_whole and not any(self._unconfirmed.values())

    @property
    def away(self) -> frozenset[str]:
        """Clusters that a federation gateway currently cannot reach."""
        return frozenset(self._away)

    @property
    def heard(self) -> frozenset[str]:
        """Clusters that have sent this process a complete snapshot: what is missing here does not exist there."""
        return frozenset(self._heard)

    @property
    def unheard(self) -> frozenset[str]:
        """Known clusters that have sent no complete snapshot: any of their instances may be missing in the list."""
        return frozenset(self._members - self._heard)

    @property
    def epochs(self) -> Mapping[str, str]:
        """The trusted epoch of each cluster's store."""
        return self._doubts.believed

    def doubt(self) -> str:
        """Why instances are kept that HQ no longer shows; empty: there are none."""
        return self._doubts.words()

    def age_s(self, now: float) -> float:
        """The list was complete so many seconds ago; infinite: unknown, or there is none."""
        return max(0.0, now - self._as_of)

    def restore(
        self, instances: Iterable[KnownInstance], *, as_of: float, resumable: bool, epochs: Mapping[str, str]
    ) -> None:
        """Start from an earlier process's list. `resumable`: the watch continues from where that list ended."""
        self._doubts.believed.update(epochs)
        self.instances = {instance.key: instance for instance in instances}
        self.origin, self._as_of = Origin.SAVED, as_of
        if resumable:
            self._snapshot = None

    def apply(self, item: WatchItem, now: float) -> list[Delta]:
        """Apply an item of the watch; return the steps that it made."""
        match item:
            case SnapshotPart():
                self._collect(item)
            case Synced():
                return self._on_synced(item, now)
            case Changes():
                self._confirm_sources(item.sources, now)
                return [*self._version_deltas(item), *self._drop_unconfirmed(item.sources, now)]
            case Bookmark():
                self._update_members(item.sources)
                self._confirm_sources(item.sources, now)
                return self._drop_unconfirmed(item.sources, now)
            case Resync():
                self._on_resync(item)
            case Interrupted():
                self._lost_touch()
        return []

    def _on_resync(self, item: Resync) -> None:
        if not item.cluster:
            self._restart_snapshot(item.reason)
        elif self._snapshot is not None:  # keep the other clusters' parts: they are not sent again
            self._snapshot = {key: shown for key, shown in self._snapshot.items() if key[0] != item.cluster}
        else:
            self._anew[item.cluster] = {}
            self.resyncs += 1
            self._resync = item.reason
            self._lost_touch()

    def _update_members(self, sources: Iterable[service_pb2.Source]) -> None:
        told = {source.cluster: _is_away(source) for source in sources}
        self._members |= told.keys()
        self._away = self._away - told.keys() | {cluster for cluster, is_away in told.items() if is_away}

    def _collect(self, part: SnapshotPart) -> None:
        cluster = part.instances[0].meta.cluster if part.instances else ""
        self._away.discard(cluster)
        if self._snapshot is None and cluster not in self._anew:
            if any(key[0] == cluster for key in self.instances) or cluster not in self._members:
                self._restart_snapshot("a snapshot began")
            else:
                self._anew[cluster] = {}
        building = self._anew[cluster] if self._snapshot is None else self._snapshot
        found = (self._keep(instance) for instance in part.instances)
        building.update((instance.key, instance) for instance in found if instance is not None)

    def _on_synced(self, item: Synced, now: float) -> list[Delta]:
        # After a resume, missed changes are still to come: only the bookmark or change after them makes the list fresh.
        if self._snapshot is None:
            return self._replace_clusters(item, now)
        new, self._snapshot = self._snapshot, None
        self._set_apart(new, item.sources)
        self._keep_some(new, item.sources, now)
        delta = Delta(self._difference(new), resync=self._resync)
        self.instances, self._resync = new, ""
        self._confirm_sources(item.sources, now)
        return [delta] if delta.changes or delta.resync else []

    def _set_apart(self, new: dict[Key, KnownInstance], sources: Iterable[service_pb2.Source]) -> None:
        """A gateway completes its locations one by one: keep the old list for those still to come."""
        to_come = self._members - {source.cluster for source in sources}
        for cluster in to_come:
            keys = [key for key in new if key[0] == cluster]
            self._anew[cluster] = {key: new.pop(key) for key in keys}
            new.update((key, kept) for key, kept in self.instances.items() if key[0] == cluster)

    def _replace_clusters(self, item: Synced, now: float) -> list[Delta]:
        clusters = {source.cluster for source in item.sources} & self._anew.keys()
        if not clusters:
            return []
        new = {key: kept for key, kept in self.instances.items() if key[0] not in clusters}
        for cluster in clusters:
            new.update(self._anew.pop(cluster))
        self._keep_some(new, [s for s in item.sources if s.replica and s.cluster in clusters], now)
        delta = Delta(self._difference(new), resync=self._resync)
        self.instances, self._resync = new, ""
        if gone := {source.cluster for source in item.sources if _is_away(source)}:  # not known to the gateway any more
            self._members, self._away, self._heard = self._members - gone, self._away - gone, self._heard - gone
            self.origin = Origin.LIVE if self.is_whole else self.origin
        else:
            self._confirm_sources(item.sources, now)
        return [delta] if delta.changes or delta.resync else []

    def _version_deltas(self, item: Changes) -> Iterator[Delta]:
        collapsed = item.collapsed
        for version, events in groupby(item.events, lambda event: event.version):
            delta = Delta(self._step(events), version, collapsed=collapsed)
            if delta.changes or delta.collapsed:
                yield delta
                collapsed = False

    def _step(
        self, events: Iterable[service_pb2.WatchEvent]
    ) -> dict[Key, tuple[KnownInstance | None, KnownInstance | None]]:
        before: dict[Key, KnownInstance | None] = {}
        for event in events:
            key, after = self._event_change(event)
            before.setdefault(key, self.instances.get(key))
            self._unconfirmed.get(key[0], set()).discard(key)
            if after is None:
                self.instances.pop(key, None)
            else:
                self.instances[key] = after
        return {k: (was, self.instances.get(k)) for k, was in before.items() if was != self.instances.get(k)}

    def _event_change(self, event: service_pb2.WatchEvent) -> tuple[Key, KnownInstance | None]:
        if event.HasField("put"):
            return (event.put.meta.cluster, event.put.meta.id), self._keep(event.put)
        ref = event.left if event.HasField("left") else event.delete
        return (ref.cluster, ref.id), None

    def _difference(
        self, new: Mapping[Key, KnownInstance]
    ) -> dict[Key, tuple[KnownInstance | None, KnownInstance | None]]:
        old = self.instances
        return {key: (old.get(key), new.get(key)) for key in old.keys() | new.keys() if old.get(key) != new.get(key)}

    def _keep_some(self, new: dict[Key, KnownInstance], sources: Iterable[service_pb2.Source], now: float) -> None:
        """Keep instances missing from a snapshot if their location does not answer or its store may have lost them."""
        for source in sources:
            old = {key for key in self.instances if key[0] == source.cluster}
            shown = sum(key[0] == source.cluster for key in new)
            missing = old - new.keys()
            is_doubted = self._doubts.is_snapshot_doubted(source, shown, len(old), now) and bool(missing)
            self._unconfirmed[source.cluster] = missing if source.error or is_doubted else set()
            new.update((key, self.instances[key]) for key in self._unconfirmed[source.cluster])

    def _drop_unconfirmed(self, sources: Iterable[service_pb2.Source], now: float) -> list[Delta]:
        """A location is back and complete, or its store is trusted again: drop instances that it did not confirm."""
        gone: dict[Key, tuple[KnownInstance | None, KnownInstance | None]] = {}
        for source in sources:
            if self._doubts.believes(source, now) and not (source.error and source.trust != _DOUBTED):
                keys = self._unconfirmed.pop(source.cluster, set())
                gone.update((key, (self.instances.pop(key), None)) for key in keys if key in self.instances)
        return [Delta(gone, collapsed=True)] if gone else []

    def _confirm_sources(self, sources: tuple[service_pb2.Source, ...], now: float) -> None:
        staleness_s = max((_seconds(source) for source in sources), default=0.0)
        answering = {source.cluster for source in sources if source.replica}
        self._away -= answering
        if self._snapshot is None:
            self._heard |= answering - self._anew.keys()
        self.source_is_stale = bool(self._away) or any(source.stale or source.error for source in sources)
        # While a new snapshot is in progress the old list is shown, and its age keeps growing.
        if self.is_whole:
            self.origin, self._as_of = Origin.LIVE, now - staleness_s

    def _restart_snapshot(self, reason: str) -> None:
        if self.is_known:
            self.resyncs += 1
            self._resync = reason
        self._snapshot = {}
        self._anew.clear()
        self._lost_touch()

    def _lost_touch(self) -> None:
        if self.origin is Origin.LIVE:
            self.origin = Origin.KEPT


def _is_away(source: service_pb2.Source) -> bool:
    """Whether a gateway reports that it cannot reach this location."""
    return bool(source.error and not source.replica)


def _seconds(source: service_pb2.Source) -> float:
    return max(0.0, source.staleness.seconds + source.staleness.nanos / 1e9)
