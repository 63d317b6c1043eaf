"""What the reading calls refuse before they look anything up."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import cast

import pytest

from hq.api.lookups import Lookups, parsed_find, parsed_get
from hq.registry.registry import Registry
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import InvalidRequest
from tests.support.in_process_replica import running
from tests.support.virtual_time import VirtualClock, in_virtual_time


async def test_an_unknown_consistency_is_refused_rather_than_ignored() -> None:
    read = pb.ReadOptions.FromString(b"\x18\x09")
    count = Lookups(cast("Registry", None), 0).count(pb.CountInstancesRequest(read=read), Call())
    with pytest.raises(InvalidRequest, match=r"^read\.consistency: 9 is not a valid ReadConsistency"):
        await count
    for parse in (
        lambda: parsed_get(pb.GetInstanceRequest(id="a", read=read)),
        lambda: parsed_find(pb.FindInstancesRequest(read=read)),
    ):
        with pytest.raises(InvalidRequest, match=r"^read\.consistency: 9 is not a valid ReadConsistency"):
            parse()


@pytest.mark.parametrize(("asked_s", "gets_s"), [(0, 5), (3, 5), (20, 20), (60, 60)])
@in_virtual_time
async def test_a_watch_gets_bookmarks_at_the_interval_it_asks_for(asked_s: int, gets_s: int) -> None:
    """The first may come sooner: all watches of a connection get theirs at one moment."""
    request, times_s = pb.WatchInstancesRequest(bookmark_interval={"seconds": asked_s}), list[float]()

    async def follow(registry: Registry) -> None:
        async for answer in Lookups(registry, 0).watch(request, Call()):
            kind = pb.WatchInstancesResponse.FromString(answer.proto()).kind
            assert kind == (pb.WATCH_KIND_BOOKMARK if times_s else pb.WATCH_KIND_SYNCED)
            times_s.append(asyncio.get_running_loop().time())

    async with running(clock=VirtualClock()) as registry:
        following = asyncio.create_task(follow(registry))
        await asyncio.sleep(3.5 * gets_s)
        following.cancel()
    begun, first, *others = times_s
    assert first - begun <= 1.01 * gets_s
    assert [round(later - one, 3) for one, later in pairwise([first, *others])] == [gets_s] * len(others)
    assert len(others) in (2, 3)


@pytest.mark.parametrize("seconds", [-1, 61])
async def test_bookmarks_come_at_least_once_a_minute(seconds: int) -> None:
    request = pb.WatchInstancesRequest(bookmark_interval={"seconds": seconds})
    with pytest.raises(InvalidRequest, match=r"^bookmark_interval: .* use (0s to|at most) 60s"):
        await anext(Lookups(cast("Registry", None), 0).watch(request, Call()))
