"""The items of a watch, where it can resume, and which instances the items add up to. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hqclient.errors import HqApiError
from hqpb.v1 import instance_pb2, service_pb2


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """Some instances of a snapshot. Complete only when Synced follows."""

    instances: tuple[instance_pb2.Instance, ...]


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything was shown: the snapshot, or what was held before a resume.

    From a gateway: of the clusters in `sources`, and of no others.
    """

    resume_token: str
    sources: tuple[service_pb2.Source, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Events in order of their versions, never a part of a version.

    Attributes:
        collapsed: steps in between are missing: the replica itself had missed them.
    """

    events: tuple[service_pb2.WatchEvent, ...]
    resume_token: str
    sources: tuple[service_pb2.Source, ...]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing was missed up to the version in sources."""

    resume_token: str
    sources: tuple[service_pb2.Source, ...]


@dataclass(frozen=True, slots=True)
class Resync:
    """Forget what this watch has shown of `cluster` (empty: of all): a fresh snapshot of that follows."""

    reason: str
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """There is no stream at the moment, so the state may be getting stale. The watch reconnects by itself."""

    error: HqApiError
    retry_in_s: float


WatchItem = SnapshotPart | Synced | Changes | Bookmark | Resync | Interrupted


class WatchProgress:
    """Turns the messages of successive streams into one unbroken sequence of items.

    A gateway multiplexes its locations on one stream; a message with one source is about that cluster.
    """

    def __init__(self, resume_token: str = "") -> None:
        self.resume_token = resume_token
        self._complete: set[str] = set()  # clusters
        self._partial: set[str] = set()  # clusters whose snapshot was shown in part
        self._brought = bool(resume_token)  # a caller with a token holds the state that belongs to it, of all clusters
        self._pending: list[service_pb2.WatchEvent] = []  # of a version whose events are not complete
        self._collapsed = False

    def __repr__(self) -> str:
        state = "partial" if self._partial else "complete" if self._has_state() else "empty"
        return f"WatchProgress({state}, resume_token={self.resume_token!r})"

    def apply_message(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        """Return the items for a message. Unknown kinds (of a later API) are ignored."""
        match message.kind:
            case service_pb2.WATCH_KIND_SNAPSHOT:
                return self._snapshot(message)
            case service_pb2.WATCH_KIND_SYNCED:
                return self._on_synced(message)
            case service_pb2.WATCH_KIND_EVENTS:
                return self._events(message)
            case service_pb2.WATCH_KIND_BOOKMARK:
                return self._bookmark(message)
            case service_pb2.WATCH_KIND_RESYNC:
                return self._resync(message)
            case _:
                return []

    def on_stream_end(self) -> list[WatchItem]:
        """The stream ended for any reason; return what to show for it. Later messages come from another stream."""
        self._pending.clear()
        cut, self._partial = sorted(self._partial), set()
        return [Resync("the stream ended before the snapshot was complete", cluster) for cluster in cut]

    def start_over(self, reason: str) -> list[WatchItem]:
        """Start over from a snapshot, e.g. when the server refuses the token; return what to show for it."""
        shown = self._has_state() or self._partial
        self._complete.clear()
        self._partial.clear()
        self._pending.clear()
        self._brought = self._collapsed = False
        self.resume_token = ""
        return [Resync(reason)] if shown else []

    def _has_state(self) -> bool:
        return self._brought or bool(self._complete)

    def _snapshot(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        cluster = _cluster(message)
        # The contract announces a second snapshot by RESYNC. Even without it we must not mix the two.
        is_second = self._brought or cluster in self._complete
        unannounced = self.start_over("a new snapshot began") if is_second and cluster not in self._partial else []
        self._partial.add(cluster)
        instances = tuple(event.put for event in message.events if event.HasField("put"))
        return [*unannounced, SnapshotPart(instances)] if instances else unannounced

    def _on_synced(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        self._partial.discard(_cluster(message))
        self._complete.add(_cluster(message))
        self._move(message)
        return [Synced(self.resume_token, tuple(message.sources))]

    def _events(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        self._pending.extend(message.events)
        self._collapsed |= message.collapsed
        if not message.resume_token:
            return []
        changes = Changes(tuple(self._pending), message.resume_token, tuple(message.sources), self._collapsed)
        self._pending.clear()
        self._collapsed = False
        self._move(message)
        return [changes]

    def _bookmark(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        self._move(message)
        return [Bookmark(self.resume_token, tuple(message.sources))]

    def _resync(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        cluster = _cluster(message)
        reason = message.reason or "the server lost continuity"
        others = self._partial - {cluster} if cluster else set()
        if not message.resume_token and not self._complete - {cluster}:
            self.start_over(reason)
        self._complete.discard(cluster)
        self._partial = others | ({cluster} if self._brought else set())
        self._pending.clear()
        # A gateway's RESYNC brings a token without that location; one of a single HQ brings none.
        self.resume_token = message.resume_token
        return [Resync(reason, cluster)]

    def _move(self, message: service_pb2.WatchInstancesResponse) -> None:
        if self._has_state() and message.resume_token:
            self.resume_token = message.resume_token


def _cluster(message: service_pb2.WatchInstancesResponse) -> str:
    """The cluster that a message is about; empty: all clusters."""
    return message.sources[0].cluster if len(message.sources) == 1 else ""


Key = tuple[str, str]
"""Cluster and instance id: an id is unique in its cluster only."""


class Shown:
    """Follows a watch item by item. A gateway completes its clusters one by one, and may show one again.

    Attributes:
        instances: by cluster and id.
    """

    def __init__(self) -> None:
        self.instances: dict[Key, instance_pb2.Instance] = {}
        self._known: set[str] = set()  # clusters
        self._complete: set[str] = set()

    @property
    def is_whole(self) -> bool:
        """Whether every cluster that was named has been shown completely."""
        return bool(self._complete) and self._known <= self._complete

    @property
    def missing(self) -> list[str]:
        """Clusters that were named, and not shown completely."""
        return sorted(self._known - self._complete)

    def apply_item(self, item: WatchItem) -> None:
        """Apply an item."""
        match item:
            case SnapshotPart(instances):
                self._add_instances(instances)
            case Synced():
                self._complete |= {source.cluster for source in item.sources} or {*self._known, ""}
            case Changes(events):
                self._change(events)
            case Bookmark():
                self._known |= {source.cluster for source in item.sources}
            case Resync(_, cluster):
                self._forget(cluster)

    def add_page(self, page: service_pb2.FindInstancesResponse) -> None:
        """Add a page of a list; clusters whose source did not answer count as missing."""
        self._add_instances(page.instances)
        self._known |= {source.cluster for source in page.sources}
        self._complete |= {source.cluster for source in page.sources if source.replica or not source.error}

    def _add_instances(self, instances: Iterable[instance_pb2.Instance]) -> None:
        for instance in instances:
            self._known.add(instance.meta.cluster)
            self.instances[instance.meta.cluster, instance.meta.id] = instance

    def _change(self, events: Iterable[service_pb2.WatchEvent]) -> None:
        for event in events:
            if event.HasField("put"):
                self.instances[event.put.meta.cluster, event.put.meta.id] = event.put
            else:
                gone = event.delete if event.HasField("delete") else event.left
                self.instances.pop((gone.cluster, gone.id), None)

    def _forget(self, cluster: str) -> None:
        if cluster:
            self.instances = {key: kept for key, kept in self.instances.items() if key[0] != cluster}
            self._complete.discard(cluster)
            self._known.add(cluster)
        else:
            self.instances, self._known, self._complete = {}, set(), set()
