"""The actions that work on all instances at once, as they disrupt nothing: each a pure function of the subject."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Set
from types import MappingProxyType
from typing import Final

from hqpb.v1 import instance_pb2
from nanny.actions import reports
from nanny.actions.needs import Needs, kept_target
from nanny.actions.subject import Look, ServiceContext
from nanny.automaton.states import Action
from nanny.rollout.views import Key
from nanny.snapshots import wanted
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import CREATED, INSTALLED, READY
from nanny.world.pictures import ServiceView
from nanny.world.writing import InstanceWrite

AT_ONCE: Final = 200
"""Instances that one step writes: more of them would keep orders waiting."""


class Level(enum.StrEnum):
    """How far an instance is on the way to where an action brings it."""

    WRITE = "to be written"
    COSTLY = "serves, and is to be switched off with leave"
    WAITING = "its agent is at work"
    SILENT = "nobody is heard of there"
    DONE = "done"


Judge = Callable[[instance_pb2.Instance | None, str], Level | None]
"""Judges an instance (None: HQ has none) for a snapshot; returns None if the action leaves it alone."""


def _generate(instance: instance_pb2.Instance | None, snapshot: str) -> Level:
    is_there = instance is not None and wanted.target_of(instance, snapshot) is not None
    return Level.DONE if is_there else Level.WRITE


def _prepare(instance: instance_pb2.Instance | None, snapshot: str) -> Level:
    if instance is None or not wanted.is_between(instance, snapshot, lowest=INSTALLED):
        return Level.WRITE
    if reports.is_installed(instance, snapshot):
        return Level.DONE
    return Level.SILENT if reports.is_silent(instance) else Level.WAITING


def _deactivate(instance: instance_pb2.Instance | None, snapshot: str) -> Level | None:
    if instance is None or (target := wanted.target_of(instance, snapshot)) is None:
        return None
    if target == READY:
        return Level.WRITE
    return Level.WAITING if reports.is_ready(instance, snapshot) else Level.DONE


def _remove(instance: instance_pb2.Instance | None, snapshot: str) -> Level | None:
    if instance is None or (target := wanted.target_of(instance, snapshot)) is None:
        return None
    if target == READY:
        return Level.COSTLY
    if target != CREATED:
        return Level.WRITE
    gone = not reports.is_installed(instance, snapshot) or reports.is_silent(instance)
    return Level.DONE if gone else Level.WAITING


def _remove_wholly(instance: instance_pb2.Instance | None, snapshot: str) -> Level | None:
    """Judge a removal without the fill flag: first the node drops the revision, then HQ does."""
    if instance is None or (target := wanted.target_of(instance, snapshot)) is None:
        return None
    if target != READY and (not reports.is_installed(instance, snapshot) or reports.is_silent(instance)):
        return Level.WRITE
    return _remove(instance, snapshot)


def _destroy(created_ms: int) -> Judge:
    """Judge a deletion, also of an instance of Nanny's that has no revision any more: removing took the last one."""

    def judge(instance: instance_pb2.Instance | None, snapshot: str) -> Level | None:
        if instance is None:
            return None
        is_empty = not instance.spec.revision and wanted.generation_of(instance, created_ms)
        return Level.WRITE if is_empty or wanted.target_of(instance, snapshot) is not None else None

    return judge


_JUDGES: Final[Mapping[Action, Judge]] = {
    Action.GENERATE: _generate,
    Action.PREPARE: _prepare,
    Action.DEACTIVATE: _deactivate,
    Action.REMOVE: _remove,
}
_TARGETS: Final = {Action.GENERATE: CREATED, Action.PREPARE: INSTALLED}
"""Actions that raise instances that the snapshot names; all others lower whatever HQ holds, named or not."""


def levels_of(subject: ServiceContext, content: Content, action: Action) -> Mapping[Level, Set[Key]]:
    """How far each instance is, also those in locations that do not answer."""
    picture, fill = subject.picture, _fill(subject, content)
    if action is Action.DESTROY:
        judge = _destroy(subject.created_ms)
    else:
        judge = _remove_wholly if action is Action.REMOVE and not fill else _JUDGES[action]
    if action is Action.GENERATE and not fill:
        return {}
    named = content.placements if action in _TARGETS else None
    return picture.tally(
        (action, content.id, fill), _level_judge(picture, content.revision_id, judge, named), named or ()
    ).groups()


def _level_judge(
    picture: ServiceView, snapshot: str, judge: Judge, named: Collection[Key] | None
) -> Callable[[Key], Level | None]:
    def level_of(key: Key) -> Level | None:
        return judge(picture.instances.get(key), snapshot) if named is None or key in named else None

    return level_of


def look_at(
    subject: ServiceContext,
    content: Content,
    action: Action,
    heard: bool,
    kept: Collection[Key] = (),
    last: Collection[str] = (),
    needs: Needs = MappingProxyType({}),
) -> Look:
    """Find the instances that still need work.

    Args:
        heard: every agent has had enough time to report.
        kept: instances that another snapshot's roll-out switches: deactivating leaves them to that.
        last: locations that take no writes for now: their instances come last, so that the others need not wait.
        needs: what other snapshots with the same revision need of it: nothing is lowered below that.
    """
    levels = levels_of(subject, content, action)
    if needs and action not in _TARGETS:
        levels = _without_needed(subject, content, levels, needs)
    look = Look()
    if action is Action.GENERATE and not _fill(subject, content):
        return look
    skipped = subject.policy.leave_out if action in _TARGETS or kept else frozenset()
    where = {key[0] for key in content.placements} if action in _TARGETS else subject.picture.seen.keys()
    look.away = {one: why for one, why in subject.away.items() if one in where and one not in skipped}
    out = frozenset(subject.away) | skipped

    def keys_at(*wanted_levels: Level) -> list[Key]:
        keys: set[Key] = set().union(*(levels.get(level, ()) for level in wanted_levels))
        return sorted(key for key in keys if key[0] not in out) if out else sorted(keys)

    to_write = [key for key in keys_at(Level.WRITE) if key not in kept]
    to_write.sort(key=lambda key: key[0] in last)
    if action is Action.DEACTIVATE:
        look.left = len(levels.get(Level.WRITE, ())) - len(to_write)
    look.missing = len(to_write)
    writes = (_write(subject, content, action, key, needs) for key in to_write[:AT_ONCE])
    look.writes = [write for write in writes if write is not None]
    look.costly = keys_at(Level.COSTLY)
    look.waiting = keys_at(Level.WAITING) if heard else keys_at(Level.WAITING, Level.SILENT)
    look.done = len(levels.get(Level.DONE, ()))
    if look.waiting:
        look.why = _why(subject, content, action, look.waiting[0])
    return look


def _without_needed(
    subject: ServiceContext, content: Content, levels: Mapping[Level, Set[Key]], needs: Needs
) -> Mapping[Level, Set[Key]]:
    """The same levels, but an instance is done where other snapshots need what is there."""
    needed = {
        key
        for key, need in needs.items()
        if key in subject.instances
        and wanted.rank_of(wanted.target_of(subject.instances[key], content.revision_id)) <= wanted.rank_of(need)
    }
    kept = {level: keys - needed for level, keys in levels.items()}
    return {**kept, Level.DONE: kept.get(Level.DONE, set()) | needed}


def _why(subject: ServiceContext, content: Content, action: Action, key: Key) -> str:
    if action is Action.PREPARE:
        return reports.why_not(subject.instances[key], content.revision_id)
    return "still runs" if action is Action.DEACTIVATE else "is being removed"


def _write(subject: ServiceContext, content: Content, action: Action, key: Key, needs: Needs) -> InstanceWrite | None:
    instance, held = subject.instances.get(key), subject.held_instance(key)
    if action in _TARGETS:
        after = wanted.with_revision(content, key, held, _TARGETS[action], subject.stamp)
    elif instance is None or held is None:
        return None
    elif (
        action is Action.DESTROY
        and key not in needs
        and len(instance.spec.revision) <= 1
        and _is_ours(subject, instance)
    ):
        return subject.delete(key)
    else:
        lowest = kept_target(_lowest(subject, content, action, key), needs.get(key))
        after = wanted.lowered_instance(content.revision_id, held, lowest, subject.stamp)
    return subject.write(key, after) if after is not None else None


def _lowest(subject: ServiceContext, content: Content, action: Action, key: Key) -> int | None:
    """The highest target that the revision may have there; None: it must not be there."""
    if action is Action.DEACTIVATE:
        return INSTALLED
    instance = subject.instances[key]
    is_held = reports.is_installed(instance, content.revision_id) and not reports.is_silent(instance)
    return CREATED if action is Action.REMOVE and (is_held or _fill(subject, content)) else None


def _is_ours(subject: ServiceContext, instance: instance_pb2.Instance) -> bool:
    return bool(wanted.generation_of(instance, subject.created_ms))


def _fill(subject: ServiceContext, content: Content) -> bool:
    state = subject.service.tuples.get(content.id)
    return state is not None and state.fill
