"""How an action sees single instances. Pure."""

from __future__ import annotations

from typing import Final

from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import Instance, RevisionStatus
from nanny.rollout.views import Stage
from nanny.snapshots.wanted import INSTALLED, READY, target_of

_TRUE: Final = instance_pb2.CONDITION_STATUS_TRUE


def status_of(instance: Instance, revision: str) -> RevisionStatus | None:
    """Return the reported status of a revision; None: nothing was reported."""
    return next((status for status in instance.status.revision if status.id == revision), None)


def is_silent(instance: Instance) -> bool:
    """Whether HQ hears no agent of the instance: none has reported yet, or none does any more.

    If HQ is of a version that does not say so, an instance with any report counts as heard.
    """
    status = instance.status
    return status.agent.status != _TRUE if status.HasField("agent") else not status.revision


def has_never_reported(instance: Instance) -> bool:
    """Whether no agent has reported since it was created or moved: one may yet, and the order may be at fault."""
    agent = instance.status.agent
    if not instance.status.HasField("agent"):
        return not instance.status.revision
    return agent.status == instance_pb2.CONDITION_STATUS_UNKNOWN or (
        agent.status != _TRUE and agent.reason == "NeverReported"
    )


def should_serve(instance: Instance) -> bool:
    """Whether some revision is wanted READY."""
    return any(revision.target == READY for revision in instance.spec.revision)


def is_installed(instance: Instance, revision: str) -> bool:
    status = status_of(instance, revision)
    return status is not None and status.installed.status == _TRUE


def is_ready(instance: Instance, revision: str = "") -> bool:
    """Whether a revision, or (empty) any, is ready."""
    if not revision:
        return instance.status.ready.status == _TRUE
    status = status_of(instance, revision)
    return status is not None and status.ready.status == _TRUE


def restarts_of(instance: Instance, revision: str) -> int:
    """How often the containers of a revision were started again."""
    status = status_of(instance, revision)
    return sum(container.restart_count for container in status.container) if status is not None else 0


def last_output(instance: Instance, revision: str) -> str:
    """The last lines of the container of a revision that ended last; empty: none did, or its agent sends none."""
    status = status_of(instance, revision)
    ends = [one.last_termination for one in status.container if one.last_termination.output] if status else []
    return max(ends, key=lambda one: one.finish_time.ToNanoseconds()).output if ends else ""


def has_seen(instance: Instance, revision: str) -> bool:
    """Whether its agent acts on the current spec."""
    status = status_of(instance, revision)
    return status is not None and (not status.spec_version or status.spec_version >= instance.meta.version)


def why_not(instance: Instance, revision: str) -> str:
    """Describe the agent's report, in a few words."""
    status = status_of(instance, revision)
    if status is None:
        return "no agent has reported it"
    condition = status.ready if status.installed.status == _TRUE else status.installed
    return ": ".join(text for text in (condition.reason, condition.message) if text) or "nothing was reported"


def stage_of(instance: Instance, revision: str, ready_s: float, min_ready_s: float) -> Stage:
    """Where an instance stands on the way to a revision. `ready_s`: how long that is ready; negative: it is not."""
    if target_of(instance, revision) == READY:
        return _switched_stage(instance, revision, ready_s, min_ready_s)
    if _is_dead(instance):
        return Stage.SILENT
    is_unprepared = target_of(instance, revision) == INSTALLED and not is_installed(instance, revision)
    if not is_ready(instance):
        return Stage.UNPREPARED if is_unprepared else Stage.DOWN
    wanted = next((revision.id for revision in instance.spec.revision if revision.target == READY), "")
    if wanted and not is_ready(instance, wanted):
        return Stage.LEAVING
    if wanted and not has_seen(instance, wanted):
        return Stage.UNSEEN
    return Stage.UNPREPARED if is_unprepared else Stage.UP


def _switched_stage(instance: Instance, revision: str, ready_s: float, min_ready_s: float) -> Stage:
    if is_ready(instance, revision):
        return Stage.DONE if ready_s >= min_ready_s and has_seen(instance, revision) else Stage.SETTLING
    if _is_dead(instance):
        return Stage.GONE if has_seen(instance, revision) else Stage.LOST
    if has_never_reported(instance) or has_seen(instance, revision):
        return Stage.UNDER_WAY
    return Stage.UNTOUCHED if is_ready(instance) else Stage.UNHEARD


def _is_dead(instance: Instance) -> bool:
    """Whether an agent of the instance was heard before, and is not any more."""
    return is_silent(instance) and not has_never_reported(instance)


def is_settled(instance: Instance) -> bool:
    """Whether no switch is pending: it is not ready or it is silent, or its agent has applied the newest spec."""
    wanted = next((revision.id for revision in instance.spec.revision if revision.target == READY), "")
    if not is_ready(instance) or is_silent(instance):
        return True
    return bool(wanted) and is_ready(instance, wanted) and has_seen(instance, wanted)
