"""The revision that runs: its sections together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from hqpb.v1.instance_pb2 import ContainerStatus, InstanceRevision
from instancectl.processes.children import Child
from instancectl.sections.section import Section
from instancectl.sections.workshop import Blueprint, Drain, Workshop, blueprints
from instancectl.state import RunningChild
from instancectl.wanted.desired import Desired
from instancectl.wanted.fingerprint import RevisionKey

Adopted = Mapping[str, tuple[Child, RunningChild]]


class Running:
    """Sections of one revision.

    Attributes:
        is_stopping: `stop` was called.
    """

    def __init__(self, key: RevisionKey, workshop: Workshop, drain: Drain, changed: Callable[[], None]) -> None:
        self.key = key
        self.is_stopping = False
        self._shop = workshop
        self._drain = drain
        self._changed = changed
        self._sections: dict[str, Section] = {}
        self._replacing: dict[str, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"Running({self.key}, {list(self._sections.values())})"

    @property
    def sections(self) -> list[Section]:
        return list(self._sections.values())

    def statuses(self) -> list[ContainerStatus]:
        return [section.status for section in self._sections.values()]

    def start(self, revision: InstanceRevision, desired: Desired, adopted: Adopted) -> None:
        """Start every section; those in `adopted`, by name, run already."""
        for name, blueprint in blueprints(self.key, revision, desired).items():
            self._begin(blueprint, *adopted.get(name, (None, None)))

    def update(self, revision: InstanceRevision, desired: Desired) -> None:
        """The processes wanted may have changed, the files have not: replace what differs, leave the rest alone."""
        wanted = blueprints(self.key, revision, desired)
        for name in {**self._sections, **wanted}:
            section, blueprint = self._sections.get(name), wanted.get(name)
            is_same = section and blueprint and section.blueprint.digest == blueprint.digest
            if not is_same and name not in self._replacing:
                drain_s = section.leave() if section else 0.0
                self._replacing[name] = asyncio.create_task(self._replace(name, blueprint, drain_s))

    async def stop(self) -> None:
        """Stop every section by its policy, all at once, after the longest drain period of those that were ready."""
        self.is_stopping = True
        if drain_s := max((section.leave() for section in self._sections.values()), default=0.0):
            await self._drain(drain_s)
        if self._replacing:
            await asyncio.wait(self._replacing.values())
        await asyncio.gather(*(section.stop() for section in self._sections.values()))

    def _begin(self, blueprint: Blueprint, adopted: Child | None = None, record: RunningChild | None = None) -> None:
        section = Section(blueprint, self._shop, self._changed)
        self._sections[blueprint.container.name] = section
        section.start(adopted, record)

    async def _replace(self, name: str, blueprint: Blueprint | None, drain_s: float) -> None:
        section = self._sections.get(name)
        if drain_s:
            await self._drain(drain_s)
        if section is not None:
            await section.stop()
        if blueprint is None:
            self._sections.pop(name, None)
        elif not self.is_stopping:
            self._begin(blueprint)
        del self._replacing[name]
        self._changed()  # and whoever listens compares again, should it have changed meanwhile
