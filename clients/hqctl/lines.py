"""A watch as lines: what is there, then what happens. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clients import progress
from clients.hqctl.rows import readiness, revision
from clients.hqctl.words import truth
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


class Lines:
    """Turns items of a watch into lines, with readiness as `before>after` where it changed."""

    def __init__(self, *, snapshot: bool) -> None:
        self._snapshot = snapshot
        self._readiness: dict[str, str] = {}
        self._shown = 0
        self._broken = False  # and told so
        self._widths = [16, 11, 6]  # of id, readiness, revision: as wide as the widest so far

    def of(self, item: progress.WatchItem) -> Iterator[tuple[str, str]]:
        """Kind and text of each line for an item."""
        match item:
            case progress.SnapshotPart(instances):
                yield from self._part(instances)
            case progress.Synced():
                yield "synced", f"{self._shown} there; changes follow"
            case progress.Changes(events):
                yield from map(self._event, events)
            case progress.Resync(reason, cluster):
                self._readiness.clear()
                self._shown = 0
                yield "resync", f"{reason}; everything{f' of {cluster}' if cluster else ''} is shown anew"
            case progress.Interrupted(error) if not self._broken:
                yield "broken", f"{error.message}; going on by itself"
        self._broken = isinstance(item, progress.Interrupted)

    def _part(self, instances: Sequence[instance_pb2.Instance]) -> Iterator[tuple[str, str]]:
        self._shown += len(instances)
        lines = [("is", self._text(instance)) for instance in instances]
        yield from lines if self._snapshot else ()

    def _event(self, event: pb.WatchEvent) -> tuple[str, str]:
        match event.WhichOneof("change"):
            case "put":
                return "put", self._text(event.put)
            case "delete":
                self._readiness.pop(event.delete.id, None)
                return "gone", event.delete.id
            case _:
                self._readiness.pop(event.left.id, None)
                return "left", f"{event.left.id}  no longer matches"

    def _text(self, instance: instance_pb2.Instance) -> str:
        cells = (instance.meta.id, self._ready(instance), revision(instance))
        self._widths = [max(len(cell), width) for cell, width in zip(cells, self._widths, strict=True)]
        aligned = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
        return "  ".join((*aligned, instance.spec.node_name or "-"))

    def _ready(self, instance: instance_pb2.Instance) -> str:
        now, word = readiness(instance), truth(instance.status.ready)
        before = self._readiness.get(instance.meta.id, word)
        self._readiness[instance.meta.id] = word
        return now if before == word else f"{before}>{now}"
