"""What HQ knows of the revisions that instancectl reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hqclient.client import Client
from hqclient.watch_items import Changes
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.sample_instances import eventually

TRUE, FALSE = model.CONDITION_STATUS_TRUE, model.CONDITION_STATUS_FALSE


async def told(client: Client, revision_id: str = "r1", instance_id: str = "i-1") -> model.RevisionStatus:
    """What HQ knows of a revision."""
    revisions = (await client.get(instance_id)).instance.status.revision
    return next((r for r in revisions if r.id == revision_id), model.RevisionStatus())


async def until_ready(client: Client, revision_id: str = "r1", instance_id: str = "i-1") -> None:
    async def ready() -> bool:
        return (await told(client, revision_id, instance_id)).ready.status == TRUE

    await eventually(ready, what=f"{instance_id}/{revision_id} ready in HQ")


async def until_not_ready(client: Client, reason: str, revision_id: str = "r1") -> None:
    async def seen() -> bool:
        found = (await told(client, revision_id)).ready
        return found.status == FALSE and found.reason == reason

    await eventually(seen, what=f"{revision_id} not ready in HQ: {reason}")


@asynccontextmanager
async def watched(client: Client) -> AsyncIterator[list[model.Instance]]:
    """Every instance that a watcher of HQ sees, as often as it changes."""
    seen: list[model.Instance] = []

    async def follow() -> None:
        async with client.watch(pb.InstanceFilter(service_id=["svc"])) as items:
            async for item in items:
                if isinstance(item, Changes):
                    seen.extend(event.put for event in item.events)

    task = asyncio.create_task(follow())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait({task})


def statuses(seen: list[model.Instance]) -> list[model.RevisionStatus]:
    """Statuses of all revisions that were seen."""
    return [status for instance in seen for status in instance.status.revision]
