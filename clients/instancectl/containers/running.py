"""The revision that runs: its containers together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from hqpb.v1.instance_pb2 import ContainerStatus, InstanceRevision
from instancectl.containers.container import AdoptedChild, SupervisedContainer
from instancectl.containers.workshop import Blueprint, Drain, Workshop, blueprints
from instancectl.reports import conditions
from instancectl.reports.conditions import ConditionVerdict
from instancectl.state import EndedContainer
from instancectl.wanted.desired import Desired, RevisionContentKey


class RunningContainers:
    """The containers of one revision.

    Attributes:
        leaving: why it is not ready from now on; None: it is not being stopped.
        spec_version: of the newest specification that would start the containers as they run.
    """

    def __init__(self, key: RevisionContentKey, workshop: Workshop, drain: Drain, changed: Callable[[], None]) -> None:
        self.key = key
        self.leaving: ConditionVerdict | None = None
        self.spec_version = 0
        self._shop = workshop
        self._drain = drain
        self._changed = changed
        self._containers: dict[str, SupervisedContainer] = {}
        self._replacing: dict[str, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"RunningContainers({self.key}, {list(self._containers.values())})"

    @property
    def containers(self) -> list[SupervisedContainer]:
        return list(self._containers.values())

    def runs_as_in(self, desired: Desired) -> bool:
        """Whether the running revision was started from this specification, as far as it matters to processes."""
        revision = desired.by_key.get(self.key)
        if revision is None or self._replacing:
            return False
        wanted = {name: each.digest for name, each in blueprints(self.key, revision, desired).items()}
        return wanted == {name: container.blueprint.digest for name, container in self._containers.items()}

    def statuses(self) -> list[ContainerStatus]:
        return [container.status for container in self._containers.values()]

    def start(self, revision: InstanceRevision, desired: Desired) -> None:
        """Start every container."""
        self.spec_version = desired.version
        for blueprint in blueprints(self.key, revision, desired).values():
            self._begin(blueprint)

    def adopt(
        self,
        revision: InstanceRevision,
        desired: Desired,
        running: Mapping[str, AdoptedChild],
        ended: Mapping[str, EndedContainer],
    ) -> None:
        """Supervise the containers, by name, that run already or ended for good; `update` starts the others."""
        self.spec_version = desired.version
        known = blueprints(self.key, revision, desired)
        for name, adopted in running.items():
            self._begin(known[name], adopted)
        for name, record in ended.items():
            self._begin(known[name], record)

    def update(self, revision: InstanceRevision, desired: Desired) -> None:
        """Replace the containers that differ from a specification with the same files; leave the others alone."""
        wanted = blueprints(self.key, revision, desired)
        for name in {**self._containers, **wanted}:
            container, blueprint = self._containers.get(name), wanted.get(name)
            if name in self._replacing:
                continue
            if container is None:
                self._begin(wanted[name])
            elif blueprint is None or container.blueprint.digest != blueprint.digest:
                drain_s = container.leave()
                self._replacing[name] = asyncio.create_task(self._replace(container, blueprint, drain_s))

    def begin_stop(self) -> None:
        """Set `leaving`, before `stop`: it says how far the containers had come."""
        containers = [each for each in self.containers if not conditions.has_completed(each.status)]
        if any(each.is_in_start_hook for each in containers):
            self.leaving = conditions.HOOK_CANCELLED
        else:
            has_served = all(each.was_ready for each in containers)
            self.leaving = conditions.STOPPING if has_served else conditions.START_CANCELLED

    async def stop(self) -> None:
        """Stop every container by its policy, all at once, after the longest drain period of those that were ready."""
        if self.leaving is None:
            self.begin_stop()
        if drain_s := max((container.leave() for container in self._containers.values()), default=0.0):
            await self._drain(drain_s)
        if self._replacing:
            await asyncio.wait(self._replacing.values())
        await asyncio.gather(*(container.stop() for container in self._containers.values()))

    async def detach(self) -> None:
        """Watch over them no longer; they run on."""
        if self._replacing:
            await asyncio.wait(self._replacing.values())
        await asyncio.gather(*(container.detach() for container in self._containers.values()))

    def _begin(self, blueprint: Blueprint, adopted: AdoptedChild | EndedContainer | None = None) -> None:
        container = SupervisedContainer(blueprint, self._shop, self._changed)
        self._containers[blueprint.container.name] = container
        container.start(adopted)

    async def _replace(self, container: SupervisedContainer, blueprint: Blueprint | None, drain_s: float) -> None:
        name = container.blueprint.container.name
        if drain_s:
            await self._drain(drain_s)
        await container.stop()
        if blueprint is None:
            self._containers.pop(name, None)
        elif self.leaving is None:
            self._begin(blueprint)
        del self._replacing[name]
        self._changed()  # listeners compare again, in case it changed meanwhile
