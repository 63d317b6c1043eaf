"""The revision that runs: its containers together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from hqpb.v1.instance_pb2 import ContainerStatus, InstanceRevision
from instancectl.containers.container import SupervisedContainer
from instancectl.containers.workshop import Blueprint, Drain, Workshop, blueprints
from instancectl.processes.children import Child
from instancectl.state import RunningChild
from instancectl.wanted.desired import Desired, RevisionKey

Adopted = Mapping[str, tuple[Child, RunningChild]]


class Running:
    """The containers of one revision.

    Attributes:
        is_stopping: `stop` was called.
    """

    def __init__(self, key: RevisionKey, workshop: Workshop, drain: Drain, changed: Callable[[], None]) -> None:
        self.key = key
        self.is_stopping = False
        self._shop = workshop
        self._drain = drain
        self._changed = changed
        self._containers: dict[str, SupervisedContainer] = {}
        self._replacing: dict[str, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"Running({self.key}, {list(self._containers.values())})"

    @property
    def containers(self) -> list[SupervisedContainer]:
        return list(self._containers.values())

    def statuses(self) -> list[ContainerStatus]:
        return [container.status for container in self._containers.values()]

    def start(self, revision: InstanceRevision, desired: Desired, adopted: Adopted) -> None:
        """Start every container; those in `adopted`, by name, run already."""
        for name, blueprint in blueprints(self.key, revision, desired).items():
            self._begin(blueprint, *adopted.get(name, (None, None)))

    def update(self, revision: InstanceRevision, desired: Desired) -> None:
        """The wanted processes may have changed, but not the files: replace those that differ, leave the rest alone."""
        wanted = blueprints(self.key, revision, desired)
        for name in {**self._containers, **wanted}:
            container, blueprint = self._containers.get(name), wanted.get(name)
            is_same = container and blueprint and container.blueprint.digest == blueprint.digest
            if not is_same and name not in self._replacing:
                drain_s = container.leave() if container else 0.0
                self._replacing[name] = asyncio.create_task(self._replace(name, blueprint, drain_s))

    async def stop(self) -> None:
        """Stop every container by its policy, all at once, after the longest drain period of those that were ready."""
        self.is_stopping = True
        if drain_s := max((container.leave() for container in self._containers.values()), default=0.0):
            await self._drain(drain_s)
        if self._replacing:
            await asyncio.wait(self._replacing.values())
        await asyncio.gather(*(container.stop() for container in self._containers.values()))

    def _begin(self, blueprint: Blueprint, adopted: Child | None = None, record: RunningChild | None = None) -> None:
        container = SupervisedContainer(blueprint, self._shop, self._changed)
        self._containers[blueprint.container.name] = container
        container.start(adopted, record)

    async def _replace(self, name: str, blueprint: Blueprint | None, drain_s: float) -> None:
        container = self._containers.get(name)
        if drain_s:
            await self._drain(drain_s)
        if container is not None:
            await container.stop()
        if blueprint is None:
            self._containers.pop(name, None)
        elif not self.is_stopping:
            self._begin(blueprint)
        del self._replacing[name]
        self._changed()  # listeners compare again, in case it changed meanwhile
