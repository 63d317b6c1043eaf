"""A list that a gateway follows starts over now and then, so that lost changes are mended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from federated.followed.followed import _RENEW_S, _Filter
from hqapi.pieces import Pieces
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.virtual_time import VirtualClock, in_virtual_time


class Location:
    """Shows `ids` to each stream, and nothing afterwards but bookmarks."""

    def __init__(self) -> None:
        self.ids: tuple[str, ...] = ("a", "b")
        self.health = SimpleNamespace(record_source=lambda source: None, is_up=True)

    def own(self) -> tuple[()]:
        return ()

    async def stream(self, method: str, request: bytes, metadata: Any) -> AsyncIterator[bytes]:
        source = pb.Source(cluster="c", replica="r")
        asked = pb.WatchInstancesRequest.FromString(request)
        events = [pb.WatchEvent(put=model.Instance(meta=model.InstanceMeta(id=name))) for name in self.ids]
        if not asked.resume_token:
            kind = pb.WATCH_KIND_SNAPSHOT
            yield pb.WatchInstancesResponse(kind=kind, events=events, sources=[source]).SerializeToString()
        for kind in (pb.WATCH_KIND_SYNCED, *[pb.WATCH_KIND_BOOKMARK] * 1_000_000):
            yield pb.WatchInstancesResponse(kind=kind, resume_token="t", sources=[source]).SerializeToString()
            await asyncio.sleep(5)


@in_virtual_time
async def test_a_lost_deletion_a_lost_creation_and_both_at_once_are_mended() -> None:
    location = Location()
    locations: Any = SimpleNamespace(by_name={"c": location}, get=lambda name: location)
    clock: Any = VirtualClock()
    clock.sleep = asyncio.sleep
    followed = _Filter(locations, pb.InstanceFilter(), clock, random.Random(1), 1 << 20, Pieces(1 << 20))
    picture = followed._pictures["c"]
    await asyncio.sleep(1)
    assert set(picture.frames) == {b"a", b"b"}
    for now in (("a",), ("a", "b", "c"), ("a", "d")):
        location.ids = now  # and no stream tells of it
        await asyncio.sleep(1.3 * _RENEW_S)
        assert {one.decode() for one in picture.frames} == set(now)
        assert picture.is_usable(clock.now())
    followed.end()
