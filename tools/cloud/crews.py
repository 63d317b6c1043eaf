"""All agents of one location: they learn from their own HQ what shall run, and can be silenced."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Container

from hqclient.client import Client, ClientSettings
from hqclient.retry import RetrySettings
from hqclient.watch import WatchSettings
from hqclient.watch_items import Changes, SnapshotPart
from tools.cloud.locations import Location
from tools.cloud.nodes import Node
from tools.cloud.setting import node_name

# A location that was stopped shall be found again while somebody looks.
SETTINGS = ClientSettings(max_probe_s=1.0, watch=WatchSettings(backoff=RetrySettings(0.2, 1.0)))


class Crew:
    """The agents of a location, on so many nodes."""

    def __init__(self, location: Location, nodes: int, rng: random.Random) -> None:
        self.name = location.name
        self._client = Client(location.addresses, settings=SETTINGS)
        names = [node_name(location.name, number + 1) for number in range(nodes)]
        self._nodes = {name: Node(name, self._client, rng) for name in names}

    def silence_only(self, names: Container[str]) -> None:
        """Silence these nodes, and wake all others."""
        for node in self._nodes.values():
            if (node.name in names) != node.silent:
                node.wake() if node.silent else node.silence()

    async def run(self) -> None:
        """Play all agents until cancelled."""
        async with self._client, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            for node in self._nodes.values():
                tasks.create_task(node.run())

    async def _follow(self) -> None:
        async with self._client.watch() as items:
            async for item in items:
                match item:
                    case SnapshotPart(instances):
                        changed = list(instances)
                    case Changes(events):
                        changed = [event.put for event in events if event.HasField("put")]
                    case _:
                        changed = []
                for instance in changed:
                    if node := self._nodes.get(instance.spec.node_name):
                        node.told(instance)
