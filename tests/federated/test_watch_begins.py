"""A watch that begins while the locations change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from tests.federated.conftest import StartFront, StartLocations


async def test_a_location_that_comes_at_the_moment_in_which_a_watch_begins_is_followed(
    start_locations: StartLocations, start_front: StartFront
) -> None:
    east, west = await start_locations("east", "west")
    east.put("a")
    west.put("b")
    front = await start_front([east, west])
    locations = front.front.locations
    both, locations.by_name = locations.by_name, {"east": locations.by_name["east"]}
    watching = front.front.watches.watch(pb.WatchInstancesRequest(), Call())
    try:
        await anext(watching)  # the locations as they were

        async def change() -> None:
            locations.by_name = both
            before, locations._changed = locations._changed, asyncio.Event()
            before.set()

        changing = asyncio.create_task(change())  # runs before any task that the watch makes
        told = pb.WatchInstancesResponse()
        async with asyncio.timeout(20):
            while not (told.kind == pb.WATCH_KIND_SYNCED and told.sources[0].cluster == "west"):
                told = pb.WatchInstancesResponse.FromString(await anext(watching))
        await changing
    finally:
        assert isinstance(watching, AsyncGenerator)
        await watching.aclose()
