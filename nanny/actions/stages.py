"""The instances of a snapshot as a roll-out sees them, recomputed only for those that changed in HQ. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Set
from typing import Final

from descriptions.held import held_instance
from hqpb.v1.instance_pb2 import Instance
from nanny.actions import reports
from nanny.actions.subject import ServiceContext
from nanny.rollout.views import SWITCHED, Key, Stage, Stages, keys_in
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import READY, switch_restarts, switched_instance
from nanny.world.pictures import ServiceView

_Verdicts = dict[Key, tuple[tuple[str, int, int], Stage | None]]
"""By instance: the epoch, uid and version that were judged, and its stage; None: a switch would change nothing."""


def stages_of(subject: ServiceContext, content: Content, own: Collection[Key] = ()) -> Stages:
    """The instances that the snapshot names, as the plan sees them; those with targets of their own are left out.

    Args:
        own: the current batch: it counts as held by this roll-out, whoever else holds it.
    """
    picture, min_ready_s = subject.picture, subject.policy.min_ready_s
    verdicts: _Verdicts = {}

    def judge(key: Key) -> Stage | None:
        return _stage(picture, content, key, min_ready_s, verdicts) if key in content.placements else None

    tally = picture.tally(("roll-out", content.id, min_ready_s), judge, content.placements)
    stages = {stage: set(keys) for stage, keys in tally.groups(Stage.SETTLING).items()}
    not_ours = (
        {key for key in content.placements if key[0] in subject.policy.leave_out} if subject.policy.leave_out else set()
    )
    _move(stages, {*not_ours, *subject.own_targets}, None)
    if subject.away:
        _move(stages, {key for key in content.placements if key[0] in subject.away} - not_ours, Stage.AWAY)
    held = subject.held_by_others.difference(
        own, keys_in(stages, Stage.DONE, Stage.AWAY), not_ours, subject.own_targets
    )
    _move(stages, held.intersection(content.placements), Stage.HELD)
    return stages


def restarts_of(subject: ServiceContext, content: Content) -> Mapping[Key, int]:
    """How often the containers of the snapshot's revision were started again; instances without any are absent."""
    instances = subject.instances

    def judge(key: Key) -> int | None:
        return reports.restarts_of(instances[key], content.revision_id) if key in instances else None

    tally = subject.picture.tally(("restarts", content.revision_id), judge)
    return {key: count for count, keys in tally.groups().items() if count for key in keys}


def ailing_instances(subject: ServiceContext, content: Content) -> set[Key]:
    """Instances that should be ready and are not; empty if none is ready. Instances that move do not count."""
    instances = {key: subject.instances[key] for key in content.placements if key in subject.instances}
    instances = {key: instance for key, instance in instances.items() if not is_moved(content, key, instance)}
    serving = {key for key, instance in instances.items() if reports.should_serve(instance)}
    ailing = {key for key in serving if not reports.is_ready(instances[key])}
    return ailing if ailing < serving else set()


def moved_instances(subject: ServiceContext, content: Content) -> set[Key]:
    """Return the instances that the snapshot moves to other nodes."""
    named = (key for key in content.placements if key in subject.instances)
    return {key for key in named if is_moved(content, key, subject.instances[key])}


def is_moved(content: Content, key: Key, instance: Instance) -> bool:
    """Whether the snapshot names another node for it."""
    node = content.placements[key].node
    return bool(node) and node != instance.spec.node_name


def _move(stages: dict[Stage, set[Key]], keys: Set[Key], to: Stage | None) -> None:
    """Move keys from any stage to one stage, or (None) out of all."""
    if not keys:
        return
    for found in stages.values():
        found -= keys
    if to is not None:
        stages.setdefault(to, set()).update(keys)


def _stage(
    picture: ServiceView,
    content: Content,
    key: Key,
    min_ready_s: float,
    verdicts: _Verdicts,
) -> Stage:
    instance = picture.instances.get(key)
    if instance is None:
        return Stage.DOWN
    stage = reports.stage_of(instance, content.revision_id, picture.ready_s(key, content.revision_id), min_ready_s)
    if stage is Stage.SILENT and is_moved(content, key, instance):
        return Stage.DOWN  # whatever still runs there: people want it elsewhere
    if stage in SWITCHED and (verdict := _difference(picture, content, key, verdicts)) is not None:
        # Labels, ports or the revision itself differ from the description: written again, at the cost of a restart.
        if stage in (Stage.SETTLING, Stage.UNDER_WAY, Stage.UNTOUCHED) and reports.is_ready(instance):
            return Stage.UNSEEN
        return verdict if reports.is_ready(instance) else Stage.DOWN
    return stage


def _difference(picture: ServiceView, content: Content, key: Key, verdicts: _Verdicts) -> Stage | None:
    """UP if switching it again restarts what runs, STALE if it does not; None: it would write nothing.

    Computed once per version of an instance, as agents report often.
    """
    instance = picture.instances[key]
    epoch = picture.seen[key[0]].epoch
    version = epoch, instance.meta.uid, instance.meta.version
    known, verdict = verdicts.get(key, (None, None))
    if known != version:
        held, verdict = held_instance(instance, epoch), None
        if switched_instance(content, key, held, "") is not None:
            verdict = Stage.UP if switch_restarts(content, key, held) else Stage.STALE
        verdicts[key] = version, verdict
    return verdict


_SHOWN: Final = 5


def differences(subject: ServiceContext, content: Content) -> list[str]:
    """One line for each of the first few instances, and a count of the others; empty: there are none."""
    found = keys_in(stages_of(subject, content), Stage.UP, Stage.STALE, Stage.DOWN, Stage.SILENT, Stage.UNPREPARED)
    lines = [_line(subject, content, key) for key in heapq.nsmallest(_SHOWN, found)]
    return [*lines, *([f"and {len(found) - _SHOWN} more instances"] if len(found) > _SHOWN else [])]


def _line(subject: ServiceContext, content: Content, key: tuple[str, str]) -> str:
    location, name = key
    instance = subject.instances.get(key)
    if instance is None:
        return f"{name} ({location}) is not in HQ"
    ready = next((revision.id for revision in instance.spec.revision if revision.target == READY), "")
    if ready != content.revision_id:
        return (
            f"{name} ({location}) wants {ready or 'nothing'} READY, not {content.revision_id} of snapshot {content.id}"
        )
    return f"{name} ({location}) is not as snapshot {content.id} describes it"
