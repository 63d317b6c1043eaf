"""Turns one location's watch into records: changes with their time, and gaps in which nothing was heard. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from historypb.v1 import history_pb2 as pb
from hqclient.watch_items import Bookmark, Changes, Interrupted, Resync, Shown, Synced, WatchItem
from hqpb.v1 import instance_pb2, service_pb2

CREATED: Final = pb.EVENT_KIND_CREATED
DELETED: Final = pb.EVENT_KIND_DELETED
READY: Final = pb.EVENT_KIND_READY
NOT_READY: Final = pb.EVENT_KIND_NOT_READY
CHANGED: Final = pb.EVENT_KIND_CHANGED


class Row(NamedTuple):
    """One change of one instance.

    Attributes:
        version: HQ's; 0: it was found after a gap.
        body: the encoded Instance after the change; empty: it was deleted.
    """

    at_ms: int
    kind: int
    cluster: str
    instance: str
    service: str
    node: str
    version: int
    ready: bool
    reason: str
    message: str
    body: bytes


@dataclass(slots=True)
class Step:
    """The rows that an item of the watch adds to the record.

    Attributes:
        gap: a gap began, and why; empty: none did.
        is_current: everything up to now is known, so an open gap ends.
    """

    rows: list[Row] = field(default_factory=list)
    gap: str = ""
    is_current: bool = False


class ObservedLocation:
    """Compares what a watch shows with what was recorded.

    After a gap the difference is recorded at the time it is found: the past is never made up.
    """

    def __init__(self, cluster: str, recorded: Mapping[str, instance_pb2.Instance]) -> None:
        """`recorded`: the instances by id, as the record has them."""
        self.cluster = cluster
        self._shown = Shown()
        self._recorded = encode_all(recorded)
        self._is_resumed = False  # the stream goes on from before: what was missed comes after its SYNCED

    def __len__(self) -> int:
        return len(self._recorded)

    def apply(self, item: WatchItem, now_ms: int) -> Step:
        """The step that an item makes."""
        match item:
            case Interrupted(error, _):
                self._is_resumed = True
                return Step(gap=f"HQ could not be followed: {error}")
            case Resync(reason, _):
                self._is_resumed = False
                self._shown.apply_item(item)
                return Step(gap=f"HQ lost continuity: {reason}")
            case Changes(events):
                self._shown.apply_item(item)
                return Step([row for event in events for row in self._event_rows(event, now_ms)])
            case Synced():
                self._shown.apply_item(item)
                return Step(self.difference(now_ms), is_current=self._shown.is_whole and not self._is_resumed)
            case Bookmark():  # after a resume, what was missed comes before it
                self._shown.apply_item(item)
                return Step(is_current=self._shown.is_whole)
            case _:
                self._shown.apply_item(item)
                return Step()

    def start_from(self, recorded: Mapping[str, instance_pb2.Instance]) -> None:
        """Go on from what the record has: it could not be written, and is behind."""
        self._recorded = encode_all(recorded)

    def difference(self, now_ms: int) -> list[Row]:
        """Return what the watch shows and the record lacks."""
        if not self._shown.is_whole:
            return []
        shown = {id_: instance for (_, id_), instance in self._shown.instances.items()}
        ids = sorted(self._recorded.keys() | shown.keys())
        return [row for id_ in ids for row in self._replace(id_, shown.get(id_), 0, now_ms)]

    def _event_rows(self, event: service_pb2.WatchEvent, now_ms: int) -> Iterable[Row]:
        if event.HasField("put"):
            return self._replace(event.put.meta.id, event.put, event.version, now_ms)
        gone = event.delete if event.HasField("delete") else event.left
        return self._replace(gone.id, None, event.version, now_ms)

    def _replace(self, id_: str, after: instance_pb2.Instance | None, version: int, now_ms: int) -> Iterator[Row]:
        known, body = self._recorded.get(id_, b""), b""
        if after is not None:
            after = recordable(after)
            after.meta.cluster = after.meta.cluster or self.cluster
            body = after.SerializeToString()
        before = instance_pb2.Instance.FromString(known) if known != body and known else None
        if known == body or before == after:  # equal maps may be encoded in another order
            return
        if after is None:
            del self._recorded[id_]
        else:
            self._recorded[id_] = body
        either = after if after is not None else before
        assert either is not None
        kind, ready = change_kind(before, after), either.status.ready
        is_failure = kind == NOT_READY
        yield Row(
            now_ms,
            kind,
            self.cluster,
            id_,
            either.meta.service_id,
            either.spec.node_name,
            version,
            after is not None and is_ready(after),
            ready.reason if is_failure else "",
            ready.message if is_failure else "",
            body,
        )


def encode_all(instances: Mapping[str, instance_pb2.Instance]) -> dict[str, bytes]:
    """Encode instances by id: encoded they take a tenth of the memory."""
    return {id_: one.SerializeToString() for id_, one in instances.items()}


def recordable(instance: instance_pb2.Instance) -> instance_pb2.Instance:
    """A copy without what never enters the record: output of programs, and times of heartbeats."""
    copy = instance_pb2.Instance()
    copy.CopyFrom(instance)
    copy.status.ClearField("heartbeat")
    copy.status.ClearField("last_heartbeat_time")
    for revision in copy.status.revision:
        for container in revision.container:
            if container.state.HasField("terminated"):
                container.state.terminated.ClearField("output")
            if container.HasField("last_termination"):
                container.last_termination.ClearField("output")
    return copy


def change_kind(before: instance_pb2.Instance | None, after: instance_pb2.Instance | None) -> int:
    """Return the kind of a change, by what people look for first: made, gone, ready, not ready, anything else."""
    if before is None:
        return CREATED
    if after is None:
        return DELETED
    if is_ready(before) != is_ready(after):
        return READY if is_ready(after) else NOT_READY
    return CHANGED


def is_ready(instance: instance_pb2.Instance) -> bool:
    """Whether HQ says that the instance is ready."""
    return instance.status.ready.status == instance_pb2.CONDITION_STATUS_TRUE
