"""The instances of services as a list or a watch shows them, while somebody waits for the agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from hqclient.client import STRONG, Client
from hqclient.watch_items import Changes, Shown, Synced
from hqpb.v1 import service_pb2 as pb


async def instances_now(client: Client, services: Sequence[str]) -> Shown:
    """The current instances; incomplete if a gateway misses a location."""
    shown = Shown()
    async for page in client.find(pb.InstanceFilter(service_id=services), read=STRONG):
        shown.add_page(page)
    return shown


async def instances_as_they_change(client: Client, services: Sequence[str]) -> AsyncGenerator[Shown, None]:
    """The instances after each change; never part of a snapshot, nor without one of a gateway's locations.

    Ends only when the caller stops iterating.
    """
    shown = Shown()
    async with client.watch(pb.InstanceFilter(service_id=services)) as items:
        async for item in items:
            shown.apply_item(item)
            if isinstance(item, Synced | Changes) and shown.is_whole:
                yield shown
