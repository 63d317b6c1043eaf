"""Items of a watch as discovery gets them, and what its list makes of them."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from hqclient.discovery.endpoint import KnownInstance, ready_instance
from hqclient.discovery.roster import Delta, Roster
from hqclient.errors import HqApiError
from hqclient.watch_items import Changes, Interrupted, SnapshotPart, Synced, WatchItem
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

AWAY = Interrupted(HqApiError(grpc.StatusCode.UNAVAILABLE, "refused"), 0.1)
TRUE = instance_pb2.CONDITION_STATUS_TRUE


def instance(id_: str, *, cluster: str = "c", tag: str = "", ready: bool = True) -> instance_pb2.Instance:
    made = instance_pb2.Instance()
    made.meta.id, made.meta.cluster, made.meta.service_id = id_, cluster, "web"
    if tag:
        made.meta.labels["tag"] = tag
    made.status.ready.status = TRUE if ready else instance_pb2.CONDITION_STATUS_FALSE
    return made


def kept(id_: str, **facts: str) -> KnownInstance:
    made = ready_instance(instance(id_, **facts))  # type: ignore[arg-type]
    assert made is not None
    return made


def part(*ids: str, cluster: str = "c") -> SnapshotPart:
    return SnapshotPart(tuple(instance(i, cluster=cluster) for i in ids))


def put(id_: str, version: int, *, cluster: str = "c", tag: str = "", ready: bool = True) -> pb.WatchEvent:
    return pb.WatchEvent(version=version, put=instance(id_, cluster=cluster, tag=tag, ready=ready))


def gone(id_: str, version: int) -> pb.WatchEvent:
    return pb.WatchEvent(version=version, delete=pb.InstanceRef(id=id_, cluster="c"))


def left(id_: str, version: int) -> pb.WatchEvent:
    return pb.WatchEvent(version=version, left=pb.InstanceRef(id=id_, cluster="c"))


def changes(*events: pb.WatchEvent, collapsed: bool = False) -> Changes:
    return Changes(events, "t", (), collapsed)


def synced(*sources: pb.Source) -> Synced:
    return Synced("t", sources)


def fed(*items: WatchItem, roster: Roster | None = None, now: float = 100.0) -> tuple[Roster, list[Delta]]:
    roster = roster or Roster()
    return roster, [delta for item in items for delta in roster.apply(item, now)]


def ids(roster: Roster) -> list[str]:
    return sorted(id_ for _, id_ in roster.instances)


def shown(deltas: Iterable[Delta]) -> list[list[str]]:
    """`+id` came, `-id` went, `~id` changed, step by step."""

    def sign(before: object, after: object) -> str:
        return "+" if before is None else "-" if after is None else "~"

    return [[sign(*d.changes[key]) + key[1] for key in sorted(d.changes)] for d in deltas]
