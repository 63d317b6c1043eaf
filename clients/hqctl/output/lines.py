"""A watch as lines: what is there, then what happens. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hqclient import watch_items
from hqclient.watch_items import Key
from hqctl.output.rows import readiness, revision
from hqctl.words import truth
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

# Colours of the kinds of lines.
KIND_STYLES = {
    "gone": "red",
    "left": "yellow",
    "synced": "green",
    "resync": "magenta",
    "broken": "red",
}


class Lines:
    """Turns items of a watch into lines, with readiness as `before>after` where it changed.

    From a front, an instance is `CLUSTER/ID`: an id is unique in its cluster only.
    """

    def __init__(self, *, snapshot: bool) -> None:
        self._snapshot = snapshot
        self._readiness: dict[Key, str] = {}  # of all that are there
        self._spans_clusters = False
        self._broken = False  # and told so
        self._widths = [16, 11, 6]  # of id, readiness, revision: as wide as the widest so far

    def of(self, item: watch_items.WatchItem) -> Iterator[tuple[str, str]]:
        """Kind and text of each line for an item."""
        match item:
            case watch_items.SnapshotPart(instances):
                lines = [("is", self._text(instance)) for instance in instances]
                yield from lines if self._snapshot else ()
            case watch_items.Synced():
                yield "synced", self._complete(item.sources)
            case watch_items.Changes(events):
                yield from map(self._event, events)
            case watch_items.Bookmark(_, sources):
                self._spans_clusters = self._spans_clusters or len(sources) > 1
            case watch_items.Resync(reason, cluster):
                self._readiness = {k: word for k, word in self._readiness.items() if cluster and k[0] != cluster}
                yield "resync", f"{reason}; everything{f' of {cluster}' if cluster else ''} is shown anew"
            case watch_items.Interrupted(error) if not self._broken:
                yield "broken", f"{error.message}; resuming automatically"
        self._broken = isinstance(item, watch_items.Interrupted)

    def _complete(self, sources: Sequence[pb.Source]) -> str:
        clusters = {source.cluster for source in sources}
        if not self._spans_clusters or not clusters:
            return f"{len(self._readiness)} there; changes follow"
        count = sum(key[0] in clusters for key in self._readiness)
        return f"{count} there in {', '.join(sorted(clusters))}; changes follow"

    def _event(self, event: pb.WatchEvent) -> tuple[str, str]:
        match event.WhichOneof("change"):
            case "put":
                return "put", self._text(event.put)
            case "delete":
                return "gone", self._gone(event.delete)
            case _:
                return "left", f"{self._gone(event.left)}  no longer matches"

    def _gone(self, ref: pb.InstanceRef) -> str:
        self._readiness.pop((ref.cluster, ref.id), None)
        return self._name((ref.cluster, ref.id))

    def _text(self, instance: instance_pb2.Instance) -> str:
        key = (instance.meta.cluster, instance.meta.id)
        cells = (self._name(key), self._ready(key, instance), revision(instance))
        self._widths = [max(len(cell), width) for cell, width in zip(cells, self._widths, strict=True)]
        aligned = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
        return "  ".join((*aligned, instance.spec.node_name or "-"))

    def _name(self, key: Key) -> str:
        return "/".join(key) if self._spans_clusters else key[1]

    def _ready(self, key: Key, instance: instance_pb2.Instance) -> str:
        now, word = readiness(instance), truth(instance.status.ready)
        before = self._readiness.get(key, word)
        self._readiness[key] = word
        return now if before == word else f"{before}>{now}"
