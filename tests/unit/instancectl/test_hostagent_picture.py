"""A host agent reads the instances of its node anew now and then, so that lost changes are mended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from instancectl.hostagent.picture import _RENEW_S, NodeInstances
from tests.support.virtual_time import VirtualClock, in_virtual_time

SOON_S = 1.3 * _RENEW_S


class Hq:
    """Shows `ids` to a stream without a token, and nothing afterwards but bookmarks; each stream lasts `lasts_s`."""

    def __init__(self, lasts_s: float) -> None:
        self.ids: tuple[str, ...] = ("a", "b")
        self._lasts_s = lasts_s

    async def watch(self, request: bytes) -> AsyncGenerator[bytes, None]:
        ends = asyncio.get_running_loop().time() + self._lasts_s
        if not pb.WatchInstancesRequest.FromString(request).resume_token:
            events = [pb.WatchEvent(put=model.Instance(meta=model.InstanceMeta(id=name))) for name in self.ids]
            yield pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SNAPSHOT, events=events).SerializeToString()
        yield pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SYNCED, resume_token="t").SerializeToString()
        while asyncio.get_running_loop().time() < ends:
            yield pb.WatchInstancesResponse(kind=pb.WATCH_KIND_BOOKMARK, resume_token="t").SerializeToString()
            await asyncio.sleep(5)


class Supervisor:
    """Follows the instances of its node by the messages it gets."""

    def __init__(self) -> None:
        self.knows: set[str] = set()

    async def run(self, picture: NodeInstances) -> None:
        async for message in picture.watch(("a", "b", "c", "d"), resumes=False):
            if message.kind == pb.WATCH_KIND_RESYNC:
                self.knows.clear()
            self.knows.update(event.put.meta.id for event in message.events)


@pytest.mark.parametrize("lasts_s", [1e9, 600.0], ids=["one stream", "streams that end"])
@in_virtual_time
async def test_a_lost_deletion_a_lost_creation_and_both_at_once_are_mended(lasts_s: float) -> None:
    hq, supervisor = Hq(lasts_s), Supervisor()
    clock: Any = VirtualClock()
    clock.sleep = asyncio.sleep
    picture = NodeInstances("node-1", hq.watch, clock, random.Random(1))
    tasks = [asyncio.create_task(picture.run()), asyncio.create_task(supervisor.run(picture))]
    await asyncio.sleep(1)
    assert supervisor.knows == {"a", "b"}
    for now in (("a",), ("a", "b", "c"), ("a", "b", "d")):  # and no stream tells of it
        hq.ids = now
        await asyncio.sleep(SOON_S)
        assert supervisor.knows == set(now)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
