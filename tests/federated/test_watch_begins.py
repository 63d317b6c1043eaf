"""A watch that begins, or waits for its reader, while the locations change; and one that ends."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator

from federated.calls.watch import _Stream
from federated.locations.location import Location
from federated.locations.locations import Locations
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from tests.federated.conftest import StartPair
from tests.support.sample_instances import eventually


async def put_in_force(locations: Locations, by_name: dict[str, Location]) -> None:
    locations.by_name = by_name
    before, locations._changed = locations._changed, asyncio.Event()
    before.set()


async def until_told(watching: AsyncIterator[bytes], cluster: str, kind: pb.WatchKind) -> None:
    async with asyncio.timeout(20):
        while True:
            told = pb.WatchInstancesResponse.FromString(await anext(watching))
            if (told.kind, told.sources[0].cluster) == (kind, cluster):
                return


async def test_a_location_that_comes_at_the_moment_in_which_a_watch_begins_is_followed(start_pair: StartPair) -> None:
    _, _, gateway = await start_pair(east="a", west="b")
    locations = gateway.gateway.locations
    both, locations.by_name = locations.by_name, {"east": locations.by_name["east"]}
    watching = gateway.gateway.watches.watch(pb.WatchInstancesRequest(), Call())
    try:
        await anext(watching)  # the locations as they were

        changing = asyncio.create_task(put_in_force(locations, both))  # runs before any task that the watch makes
        await until_told(watching, "west", pb.WATCH_KIND_SYNCED)
        await changing
    finally:
        assert isinstance(watching, AsyncGenerator)
        await watching.aclose()


async def test_a_location_that_left_and_came_back_before_the_reader_read_on_is_followed(
    start_pair: StartPair,
) -> None:
    _, west, gateway = await start_pair()
    locations = gateway.gateway.locations
    both = locations.by_name
    watching = gateway.gateway.watches.watch(pb.WatchInstancesRequest(), Call())
    try:
        await until_told(watching, "west", pb.WATCH_KIND_SYNCED)
        await put_in_force(locations, {"east": both["east"]})
        for channel in both["west"].race.channels.values():
            channel.end_streams()
        await asyncio.sleep(0.5)  # until west is followed again
        await put_in_force(locations, both)
        west.put("b")
        await until_told(watching, "west", pb.WATCH_KIND_EVENTS)
    finally:
        assert isinstance(watching, AsyncGenerator)
        await watching.aclose()


async def test_a_watch_that_ended_leaves_nothing_for_the_collector_of_garbage(start_pair: StartPair) -> None:
    _, _, gateway = await start_pair(east="a", west="b")
    gc.collect()
    gc.disable()  # it looks after what is older only once in a long while, too
    try:
        watching = gateway.gateway.watches.watch(pb.WatchInstancesRequest(), Call())
        await until_told(watching, "west", pb.WATCH_KIND_SYNCED)
        assert isinstance(watching, AsyncGenerator)
        await watching.aclose()
        await eventually(lambda: not any(isinstance(one, _Stream) for one in gc.get_objects()))
    finally:
        gc.enable()
