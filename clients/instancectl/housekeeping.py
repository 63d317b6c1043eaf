"""What an earlier supervisor left: its directory is kept tidy, its processes go on or are stopped, never doubled."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection, Iterable
from pathlib import Path

from instancectl.background import in_thread
from instancectl.containers.workshop import blueprints
from instancectl.content import volumes
from instancectl.content.directories import remove_tree
from instancectl.content.fetch import Store
from instancectl.layout import Layout, directory_name
from instancectl.processes.children import Child, Children, adopt, stop
from instancectl.processes.limits import Grip
from instancectl.state import RunningChild, StateFile
from instancectl.wanted.desired import Desired, RevisionKey, is_wanted_created

Found = dict[str, tuple[Child, RunningChild]]


class WrongDirectory(Exception):
    """The directory belongs to another instance, or to the same one on another node."""


class Housekeeping:
    """Keeps one directory tidy."""

    def __init__(self, layout: Layout, state: StateFile) -> None:
        self._layout = layout
        self._state = state
        self._store = Store(layout.store)

    def claim(self, desired: Desired) -> None:
        """The directory is this instance's. A mistyped name must not make us remove what belongs to another one.

        Raises:
            WrongDirectory: it is another one's.
        """
        owner, mine = self._state.state.belongs_to, (desired.instance_id, desired.node)
        if owner == ("", ""):
            self._state.belongs_to(*mine)
        elif owner != mine:
            there, here = (f"instance {instance} on node {node}" for instance, node in (owner, mine))
            raise WrongDirectory(f"{self._layout.root} belongs to {there}, not to {here}: choose another directory")

    def occupied_by(self) -> RevisionKey | None:
        """A revision whose processes live on from an earlier supervisor."""
        children = self._state.state.children.values()
        return next((child.revision for child in children if child.process.exists()), None)

    async def tidy(self, known: Collection[RevisionKey]) -> None:
        """Remove what an interrupted preparation left behind."""
        names = {directory_name(key) for key in known}
        for path in self._layout.revisions.iterdir():
            if path.name not in names:
                await in_thread(lambda _, path=path: remove_tree(path))  # type: ignore[misc]
        for path in self._layout.store.glob(".*.part"):
            if self._layout.owns_store:
                path.unlink(missing_ok=True)

    async def drop_traces(self, key: RevisionKey, still_wanted: Collection[RevisionKey]) -> None:
        """Remove pipes and logs of a revision; logs only if no other content of the same revision writes to them."""
        for pipe in self._layout.pipes_of(key):
            pipe.unlink(missing_ok=True)
        if key.id not in {other.id for other in still_wanted}:
            await in_thread(lambda _: remove_tree(self._layout.logs_of(key.id)))

    async def drop_unused_contents(self, *, is_idle: bool) -> None:
        """Remove contents that no installed revision uses; those of a shared store may be used by others."""
        if is_idle and self._layout.owns_store:
            await in_thread(lambda _: self._store.keep_only(self._state.contents_in_use))

    async def free(self, last: Desired | None, *, keep_data: bool) -> None:
        """Remove everything of the instance; `keep_data`: but not what lies in persistent volumes."""
        await in_thread(lambda _: self._free(last, keep_data))
        self._state.forget()

    def _free(self, last: Desired | None, keep_data: bool) -> None:
        self._layout.last_good.unlink(missing_ok=True)
        self._layout.free(volumes=not keep_data)
        if last is not None and not keep_data:
            for place in volumes.persistent_places(last):
                remove_tree(place)
        self._layout.make()


def is_wanted(record: RunningChild, desired: Desired) -> bool:
    """The revision is still in the spec with the same content, and the container is what it was."""
    revision = desired.by_key.get(record.revision)
    if revision is None or is_wanted_created(revision):
        return False
    blueprint = blueprints(record.revision, revision, desired).get(record.container)
    return blueprint is not None and blueprint.digest == record.container_digest


def chosen(records: Iterable[RunningChild], desired: Desired) -> RevisionKey | None:
    """The revision whose processes go on; None: none do. Decided by the records alone."""
    wanted = {record.revision for record in records if is_wanted(record, desired)}
    if desired.ready_key in wanted:
        return desired.ready_key
    return min(wanted, default=None)


async def take_over(state: StateFile, desired: Desired, children: Children) -> tuple[RevisionKey | None, Found]:
    """The revision that runs already and its processes by container; all other processes of ours have been ended."""
    records = list(state.state.children.values())
    key = chosen(records, desired)
    kept: Found = {}
    leaving: list[tuple[Child, RunningChild]] = []
    for record in records:
        child = adopt(record.process, record.mark, _grip(record))
        if child is None:
            state.ended(record.revision, record.container)
        elif record.revision == key and is_wanted(record, desired):
            kept[record.container] = (child, record)
        else:
            leaving.append((child, record))
    await asyncio.gather(*(_end(child, record, state) for child, record in leaving))
    _end_strangers(children, kept)
    return (key if kept else None), kept


async def end_all(state: StateFile, children: Children) -> None:
    """End every process that an earlier supervisor left: nothing of it is wanted."""
    await take_over(state, Desired("", ""), children)


def _grip(record: RunningChild) -> Grip:
    group = Path(record.group) if record.group else None
    return Grip(group=group, description=record.limits)


async def _end(child: Child, record: RunningChild, state: StateFile) -> None:
    # The stop script went away with the specification; the grace was written down.
    await stop(child, record.grace_s, None)
    state.ended(record.revision, record.container)


def _end_strangers(children: Children, kept: Found) -> None:
    """Scripts and checks that were under way, and what ended containers left behind."""
    for pid in children.strangers({child.mark for child, _ in kept.values()}):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
