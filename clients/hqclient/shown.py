"""The instances that a watch has shown so far, and whether that is all there are. Decisions only, no I/O."""

from __future__ import annotations

from collections.abc import Iterable

from hqclient.progress import Bookmark, Changes, Resync, SnapshotPart, Synced, WatchItem
from hqpb.v1 import instance_pb2, service_pb2

Key = tuple[str, str]
"""Cluster and instance id: an id is unique in its cluster only."""


class Shown:
    """Follows a watch item by item. A front completes its clusters one by one, and may show one of them anew.

    Attributes:
        instances: by cluster and id.
    """

    def __init__(self) -> None:
        self.instances: dict[Key, instance_pb2.Instance] = {}
        self._known: set[str] = set()  # clusters
        self._complete: set[str] = set()

    @property
    def is_whole(self) -> bool:
        """Every cluster that was named has been shown completely."""
        return bool(self._complete) and self._known <= self._complete

    @property
    def missing(self) -> list[str]:
        """Clusters that were named, and not shown completely."""
        return sorted(self._known - self._complete)

    def took(self, item: WatchItem) -> None:
        """Something came."""
        match item:
            case SnapshotPart(instances):
                self._put(instances)
            case Synced():
                self._complete |= {source.cluster for source in item.sources} or {*self._known, ""}
            case Changes(events):
                self._change(events)
            case Bookmark():
                self._known |= {source.cluster for source in item.sources}
            case Resync(_, cluster):
                self._forget(cluster)

    def found(self, page: service_pb2.FindInstancesResponse) -> None:
        """A page of a list came: what a source of it does not answer for is missing."""
        self._put(page.instances)
        self._known |= {source.cluster for source in page.sources}
        self._complete |= {source.cluster for source in page.sources if source.replica or not source.error}

    def _put(self, instances: Iterable[instance_pb2.Instance]) -> None:
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
