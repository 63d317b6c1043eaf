"""The actions that work on all instances at once, since they take nothing away: each a pure look at the subject."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from nanny.actions import reports
from nanny.actions.subject import Look, Subject
from nanny.automaton.states import Action
from nanny.rollout.views import Key
from nanny.snapshots import wanted
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import CREATED, INSTALLED, READY

LevelAction = Callable[[Subject, Content, bool], Look]
"""Subject, content of the snapshot, and whether there was time enough for every agent to be heard of."""


def generate(subject: Subject, content: Content, heard: bool) -> Look:
    """The configuration exists. HQ gets it only with the fill flag."""
    look = Look()
    state = subject.service.tuples.get(content.id)
    if state is None or not state.fill:
        return look
    if CREATED is None:
        look.refused = "this build's hq.v1 does not know REVISION_TARGET_CREATED: the fill flag needs it"
        return look
    for key in _named(subject, content, look):
        _raise(subject, content, look, key, CREATED)
    return look


def prepare(subject: Subject, content: Content, heard: bool) -> Look:
    """Every instance has the revision, installed wherever an agent lives."""
    look = Look()
    for key in _named(subject, content, look):
        if _raise(subject, content, look, key, INSTALLED):
            continue
        instance = subject.instances[key]
        if not reports.is_installed(instance, content.id) and not (heard and reports.is_silent(instance)):
            look.waiting[key] = reports.why_not(instance, content.id)
            look.done -= 1
    return look


def deactivate(subject: Subject, content: Content, heard: bool) -> Look:
    """Nothing of the snapshot runs. Nothing is asked: the service is meant to have fewer instances that serve."""
    look = Look()
    for key in _holding(subject, content, look):
        if _lower(subject, content, look, key, INSTALLED):
            continue
        if reports.is_ready(subject.instances[key], content.id):
            look.waiting[key] = "still runs"
            look.done -= 1
    return look


def remove(subject: Subject, content: Content, heard: bool) -> Look:
    """The nodes hold nothing of it. Without the fill flag HQ holds nothing of it either, in the end.

    Instances that run it by a target of their own are switched off first, with leave.
    """
    look = Look()
    state = subject.service.tuples.get(content.id)
    for key in _holding(subject, content, look):
        instance = subject.instances[key]
        if wanted.target_of(instance, content.id) == READY:
            look.costly.append(key)
            continue
        gone = not reports.is_installed(instance, content.id) or reports.is_silent(instance)
        keeps = CREATED is not None and (not gone or (state is not None and state.fill))
        if _lower(subject, content, look, key, CREATED if keeps else None):
            continue
        if not gone:
            look.waiting[key] = "is being removed"
            look.done -= 1
    return look


def destroy(subject: Subject, content: Content, heard: bool) -> Look:
    """HQ holds nothing of it; instances that then hold nothing at all are deleted, if Nanny made them hers."""
    look = Look()
    for key, instance in subject.instances.items():
        # Removing took the last revision away before.
        if key[0] not in subject.away and not instance.spec.revision and wanted.generation_of(instance):
            look.writes.append(subject.delete(key))
    for key in _holding(subject, content, look):
        instance = subject.instances[key]
        if len(instance.spec.revision) == 1 and wanted.generation_of(instance):
            look.writes.append(subject.delete(key))
        else:
            _lower(subject, content, look, key, None)
    return look


LEVEL_ACTIONS: Mapping[Action, LevelAction] = {
    Action.GENERATE: generate,
    Action.PREPARE: prepare,
    Action.DEACTIVATE: deactivate,
    Action.REMOVE: remove,
    Action.DESTROY: destroy,
}


def _named(subject: Subject, content: Content, look: Look) -> Iterator[Key]:
    """Instances that the snapshot names, in locations that answer."""
    for key in content.placements:
        if key[0] in subject.away:
            look.away[key[0]] = subject.away[key[0]]
        else:
            yield key


def _holding(subject: Subject, content: Content, look: Look) -> Iterator[Key]:
    """Instances that hold the revision, whether the snapshot names them or not; away: all its locations count."""
    look.away.update(subject.away)
    for key, instance in subject.instances.items():
        if key[0] not in subject.away and wanted.target_of(instance, content.id) is not None:
            yield key


def _raise(subject: Subject, content: Content, look: Look, key: Key, target: int) -> bool:
    """Whether something is to be written."""
    instance = subject.instances.get(key)
    if instance is not None and wanted.is_between(instance, content.id, lowest=target):
        look.done += 1
        return False
    after = wanted.with_revision(content, key, subject.held(key), target, subject.generation)
    return _noted(subject, look, key, after)


def _lower(subject: Subject, content: Content, look: Look, key: Key, target: int | None) -> bool:
    if target is not None and wanted.is_between(subject.instances[key], content.id, highest=target):
        look.done += 1
        return False
    held = subject.held(key)
    assert held is not None
    return _noted(subject, look, key, wanted.lowered(content.id, held, target, subject.generation))


def _noted(subject: Subject, look: Look, key: Key, after: object) -> bool:
    if after is None:
        look.done += 1
        return False
    look.writes.append(subject.write(key, after))  # type: ignore[arg-type]
    return True
