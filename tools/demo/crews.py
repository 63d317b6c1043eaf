"""All agents of one location: they learn from their own HQ what shall run, and can be silenced."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Container

from hqclient.client import Client, ClientSettings
from hqclient.retry import RetrySettings
from hqclient.watch import WatchSettings
from hqclient.watch_items import Changes, SnapshotPart
from tools.demo.events import Events
from tools.demo.locations import Location
from tools.demo.nodes import Node
from tools.demo.setting import node_name

# A location that was stopped shall be found again while somebody looks.
SETTINGS = ClientSettings(max_probe_s=1.0, watch=WatchSettings(backoff=RetrySettings(0.2, 1.0)))


class Crew:
    """The agents of a location, on so many nodes."""

    def __init__(self, location: Location, nodes: int, rng: random.Random, events: Events) -> None:
        self.name = location.name
        self._client = Client(location.addresses, settings=SETTINGS)
        names = [node_name(location.name, number + 1) for number in range(nodes)]
        self._nodes = {name: Node(name, self._client, rng, events) for name in names}

    @property
    def silent(self) -> int:
        """How many agents say nothing."""
        return sum(len(node.agents) for node in self._nodes.values() if node.silent)

    @property
    def total(self) -> int:
        """How many agents there are."""
        return sum(len(node.agents) for node in self._nodes.values())

    def silence(self, count: int) -> list[str]:
        """Silence so many more nodes, with all agents on them; return their names."""
        chosen = [node for node in self._nodes.values() if not node.silent][:count]
        for node in chosen:
            node.silence()
        return [node.name for node in chosen]

    def wake(self) -> list[str]:
        """Wake all nodes; return those that were silent."""
        woken = [node for node in self._nodes.values() if node.silent]
        for node in woken:
            node.wake()
        return [node.name for node in woken]

    def silence_only(self, names: Container[str]) -> None:
        """These nodes are silent, all others are not."""
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
