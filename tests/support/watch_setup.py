"""A world, a replica that is told of its changes, and watches of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from hqpb.v1 import service_pb2 as pb
from tests.support.stepped_replica import SteppedReplica
from tests.support.store_histories import World, spec_of

ALL = pb.InstanceFilter()
SNAPSHOT, SYNCED = pb.WATCH_KIND_SNAPSHOT, pb.WATCH_KIND_SYNCED
EVENTS, BOOKMARK, RESYNC = pb.WATCH_KIND_EVENTS, pb.WATCH_KIND_BOOKMARK, pb.WATCH_KIND_RESYNC
Stream = AsyncGenerator[pb.WatchInstancesResponse, None]


class Scene:
    """A world, and a replica that is told of its changes."""

    def __init__(self, **settings: Any) -> None:
        self.world = World()
        self.still = SteppedReplica(**settings)
        self.put("a")
        self.still.list(self.world.records(), self.world.version)

    def put(self, *ids: str, service: str = "s", text: str = "") -> None:
        puts: dict[bytes, bytes | None] = {}
        for instance_id in ids:
            self.world.uids.setdefault(instance_id, self.world.next())
            labels = {"text": text} if text else {}
            puts[self.world.keys.spec(instance_id)] = spec_of(self.world, instance_id, service, "n", labels, 1)
        batch = self.world.change(puts)
        if self.still.replica.loading.loaded.is_set():
            self.still.apply(batch)

    def watch(self, token: str = "", wanted: pb.InstanceFilter = ALL) -> Stream:
        return self.still.watch(wanted, token)


async def synced(stream: Stream) -> pb.WatchInstancesResponse:
    while (message := await anext(stream)).kind != SYNCED:
        assert message.kind == SNAPSHOT
    return message


async def some(stream: Stream, count: int) -> list[pb.WatchInstancesResponse]:
    return [await anext(stream) for _ in range(count)]
