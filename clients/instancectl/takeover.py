"""Processes that an earlier supervisor left: those still wanted keep running, all others are ended; none runs twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from instancectl.containers.workshop import blueprints
from instancectl.processes import procfs
from instancectl.processes.child import Child, stop
from instancectl.processes.children import Children
from instancectl.processes.limits import Grip
from instancectl.state import EndedContainer, RunningChild, StateFile, SupervisorState
from instancectl.wanted.desired import Desired, RevisionContentKey, is_wanted_created

Found = dict[str, tuple[Child, RunningChild]]
ContainerRecord = RunningChild | EndedContainer


def is_wanted(record: ContainerRecord, desired: Desired) -> bool:
    """Whether the revision is still in the spec with the same content, and the container is unchanged."""
    revision = desired.by_key.get(record.revision)
    if revision is None or is_wanted_created(revision):
        return False
    blueprint = blueprints(record.revision, revision, desired).get(record.container)
    return blueprint is not None and blueprint.is_origin_of(record.container_digest)


def known_containers(state: SupervisorState) -> list[ContainerRecord]:
    """Containers that were running when the state was written, and those that ended since the machine booted."""
    ended = (each for each in state.ended.values() if each.boot_id == procfs.boot_id())
    return [*state.children.values(), *ended]


def revision_to_keep(records: Iterable[ContainerRecord], desired: Desired) -> RevisionContentKey | None:
    """The revision whose processes keep running; None: none do. Decided from the records alone."""
    wanted = {record.revision for record in records if is_wanted(record, desired)}
    if desired.ready_key in wanted:
        return desired.ready_key
    return min(wanted, default=None)


def spec_to_adopt_by(records: Collection[ContainerRecord], last_good: Desired | None, new: Desired) -> Desired:
    """The specification by which to adopt: the last good copy, if it wants any of the processes, else the new one.

    So a process that is no longer wanted as it is gets drained, as if we had been there when that changed.
    """
    return last_good if last_good is not None and revision_to_keep(records, last_good) else new


class TakenOver(NamedTuple):
    """The processes of a revision and its containers that ended, by name; `key` None: there are none."""

    key: RevisionContentKey | None
    running: Found
    ended: dict[str, EndedContainer]


async def take_over(state: StateFile, desired: Desired, children: Children) -> TakenOver:
    """Find the running processes of the revision that is wanted, and end all others that we left."""
    records = known_containers(state.state)
    key = revision_to_keep(records, desired)
    kept: Found = {}
    ended: dict[str, EndedContainer] = {}
    leaving: list[tuple[Child, RunningChild]] = []
    for record in records:
        is_kept = record.revision == key and is_wanted(record, desired)
        if isinstance(record, EndedContainer):
            if is_kept:
                ended[record.container] = record
            continue
        child = children.find(record.process, record.mark, _grip(record))
        if child is None:
            state.remove_child(record.revision, record.container)
        elif is_kept:
            kept[record.container] = (child, record)
        else:
            leaving.append((child, record))
    await asyncio.gather(*(_end(child, record, state) for child, record in leaving))
    _end_strangers(children, kept)
    return TakenOver(key if kept or ended else None, kept, ended)


async def end_all(state: StateFile, children: Children) -> None:
    """End every process that an earlier supervisor left: none of them is wanted."""
    await take_over(state, Desired("", ""), children)


def _grip(record: RunningChild) -> Grip:
    group = Path(record.group) if record.group else None
    return Grip(group=group, description=record.limits)


async def _end(child: Child, record: RunningChild, state: StateFile) -> None:
    # The stop script is unknown without the specification; the grace period was recorded.
    await stop(child, record.grace_s, None, signal.Signals[record.stop_signal])
    state.remove_child(record.revision, record.container)


def _end_strangers(children: Children, kept: Found) -> None:
    """End scripts and checks that were running, and what ended containers left behind."""
    for pid in children.strangers({child.mark for child, _ in kept.values()}):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
