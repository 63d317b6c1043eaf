"""Processes that an earlier supervisor left: those still wanted keep running, all others are ended; none runs twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection, Iterable
from pathlib import Path

from instancectl.containers.workshop import blueprints
from instancectl.processes.children import Child, Children, adopt, stop
from instancectl.processes.limits import Grip
from instancectl.state import RunningChild, StateFile
from instancectl.wanted.desired import Desired, RevisionContentKey, is_wanted_created

Found = dict[str, tuple[Child, RunningChild]]


def is_wanted(record: RunningChild, desired: Desired) -> bool:
    """The revision is still in the spec with the same content, and the container is unchanged."""
    revision = desired.by_key.get(record.revision)
    if revision is None or is_wanted_created(revision):
        return False
    blueprint = blueprints(record.revision, revision, desired).get(record.container)
    return blueprint is not None and blueprint.digest == record.container_digest


def revision_to_keep(records: Iterable[RunningChild], desired: Desired) -> RevisionContentKey | None:
    """The revision whose processes keep running; None: none do. Decided from the records alone."""
    wanted = {record.revision for record in records if is_wanted(record, desired)}
    if desired.ready_key in wanted:
        return desired.ready_key
    return min(wanted, default=None)


def spec_to_adopt_by(records: Collection[RunningChild], last_good: Desired | None, new: Desired) -> Desired:
    """The specification that what runs was started from, as far as it is known.

    By the earlier one, so that what changed meanwhile ends as it would have if we had been there: drained.
    """
    return last_good if last_good is not None and revision_to_keep(records, last_good) else new


async def take_over(state: StateFile, desired: Desired, children: Children) -> tuple[RevisionContentKey | None, Found]:
    """The revision that runs already and its processes by container; all other processes of ours have been ended."""
    records = list(state.state.children.values())
    key = revision_to_keep(records, desired)
    kept: Found = {}
    leaving: list[tuple[Child, RunningChild]] = []
    for record in records:
        child = adopt(record.process, record.mark, _grip(record))
        if child is None:
            state.remove_child(record.revision, record.container)
        elif record.revision == key and is_wanted(record, desired):
            kept[record.container] = (child, record)
        else:
            leaving.append((child, record))
    await asyncio.gather(*(_end(child, record, state) for child, record in leaving))
    _end_strangers(children, kept)
    return (key if kept else None), kept


async def end_all(state: StateFile, children: Children) -> None:
    """End every process that an earlier supervisor left: none of them is wanted."""
    await take_over(state, Desired("", ""), children)


def _grip(record: RunningChild) -> Grip:
    group = Path(record.group) if record.group else None
    return Grip(group=group, description=record.limits)


async def _end(child: Child, record: RunningChild, state: StateFile) -> None:
    # The stop script is unknown without the specification; the grace period was recorded.
    await stop(child, record.grace_s, None)
    state.remove_child(record.revision, record.container)


def _end_strangers(children: Children, kept: Found) -> None:
    """End scripts and checks that were running, and what ended containers left behind."""
    for pid in children.strangers({child.mark for child, _ in kept.values()}):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
