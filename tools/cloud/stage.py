"""Locations, a gateway over them, and the agents of their instances: started in order, ended in order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from hqclient.calls import MetadataSource
from hqclient.client import Client
from tools.cloud.crews import Crew
from tools.cloud.gateway import Gateway
from tools.cloud.locations import Location
from tools.cloud.setting import LOCATIONS, START_S, instances_of

CLUSTER_HEADER = "x-hq-cluster"
_CALL_S = 3.0


class Refused(Exception):
    """The gateway did not take the first instances; str() says why."""


class Stage:
    """Runs with `play`, until cancelled; whatever happened, `end` stops every process.

    Attributes:
        crews: by location, once locations and gateway have started.
    """

    def __init__(self, directory: Path, rng: random.Random, nodes: Mapping[str, int]) -> None:
        self.locations = {name: Location(name, directory / name) for name in LOCATIONS}
        self.gateway = Gateway(directory)
        self.crews: dict[str, Crew] = {}
        self._nodes, self._rng = nodes, rng

    async def play(self) -> None:
        """Start everything and go on. Raises an ExceptionGroup of ChildFailed, EtcdFailed and the like."""
        async with asyncio.TaskGroup() as tasks:
            for location in self.locations.values():
                tasks.create_task(location.start())
        await self.gateway.start(self.locations.values())
        self.crews = {name: Crew(place, self._nodes[name], self._rng) for name, place in self.locations.items()}
        async with asyncio.TaskGroup() as tasks:
            for crew in self.crews.values():
                tasks.create_task(crew.run())
            await self._create_instances()

    async def end(self) -> None:
        """Stop every process, in order."""
        await self.gateway.stop()
        await asyncio.gather(*(location.end() for location in self.locations.values()))

    async def _create_instances(self) -> None:
        """Write all instances of all locations. Raises HqApiError, Refused."""
        async with AsyncExitStack() as stack:
            clients = {
                name: await stack.enter_async_context(
                    Client([self.gateway.grpc], timeout_s=_CALL_S, metadata=_header(name))
                )
                for name in LOCATIONS
            }
            answers = await asyncio.gather(
                *(
                    client.apply(instances_of(name, self._nodes[name]), timeout_s=START_S)
                    for name, client in clients.items()
                )
            )
        failed = [result.error.message for answer in answers for result in answer.result if result.HasField("error")]
        if failed:
            raise Refused(f"{len(failed)} instances were refused: {failed[0]}")


def _header(location: str) -> MetadataSource:
    return lambda: [(CLUSTER_HEADER, location)]
