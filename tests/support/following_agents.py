"""Agents that follow HQ, in this process: they do what it wants of their services within a second or two."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from hqclient import Changes, Client, SnapshotPart
from hqpb.v1 import service_pb2 as pb
from tools.cloud.nodes import Node


@asynccontextmanager
async def following_agents(
    client: Client, services: Iterable[str], rng: random.Random
) -> AsyncIterator[dict[str, Node]]:
    """They live as long as the block; the nodes that there are by now, by name."""
    nodes: dict[str, Node] = {}
    agents = asyncio.create_task(_play(client, services, rng, nodes))
    try:
        yield nodes
    finally:
        agents.cancel()
        await asyncio.gather(agents, return_exceptions=True)


async def _play(client: Client, services: Iterable[str], rng: random.Random, nodes: dict[str, Node]) -> None:
    async with asyncio.TaskGroup() as tasks, client.watch(pb.InstanceFilter(service_id=services)) as items:
        async for item in items:
            changed = item.instances if isinstance(item, SnapshotPart) else ()
            if isinstance(item, Changes):
                changed = tuple(event.put for event in item.events if event.HasField("put"))
            for instance in changed:
                name = instance.spec.node_name
                if name not in nodes:
                    nodes[name] = Node(name, client, rng)
                    tasks.create_task(nodes[name].run())
                nodes[name].told(instance)
