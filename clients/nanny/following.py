"""The instances of services as a watch shows them, for as long as somebody waits for the agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from clients.client import Client
from clients.progress import Changes, Interrupted, Resync, SnapshotPart, Synced, WatchItem
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

Instances = dict[str, instance_pb2.Instance]


async def instances_now(client: Client, services: Sequence[str]) -> Instances:
    """By id, as of now."""
    from clients.client import STRONG

    pages = client.find(pb.InstanceFilter(service_id=services), read=STRONG)
    return {instance.meta.id: instance async for page in pages for instance in page.instances}


async def instances_as_they_change(client: Client, services: Sequence[str]) -> AsyncGenerator[Instances, None]:
    """By id, each time something changed; never a part of a snapshot. Ends with the caller only."""
    held: Instances = {}
    complete = False
    async with client.watch(pb.InstanceFilter(service_id=services)) as items:
        async for item in items:
            if isinstance(item, Resync):
                held, complete = {}, False
            elif not isinstance(item, Interrupted):
                complete = complete or isinstance(item, Synced)
                if _take(held, item) and complete:
                    yield held


def _take(held: Instances, item: WatchItem) -> bool:
    """Take what an item shows; say whether there may be news."""
    if isinstance(item, SnapshotPart):
        held.update((instance.meta.id, instance) for instance in item.instances)
    elif isinstance(item, Changes):
        for event in item.events:
            if event.HasField("put"):
                held[event.put.meta.id] = event.put
            else:
                held.pop(event.delete.id or event.left.id, None)
    return isinstance(item, Synced | Changes)
