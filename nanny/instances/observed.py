"""From an agent's report on one revision to the state of that instance. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import RevisionStatus
from nanny.instances.states import BY_OLD_NAME, BY_REASON, InstanceState

_TRUE = instance_pb2.CONDITION_STATUS_TRUE
_READY = instance_pb2.REVISION_TARGET_READY
_SERVING = frozenset({"DynamicResourceDownloading", "NotifyFailed", "Notifying", "DynamicResourcePrepareFailed"})
"""Reasons of a ready revision that say more than that it is ready."""


def instance_state(target: int | None, status: RevisionStatus | None) -> InstanceState:
    """The state of one revision of an instance.

    Args:
        target: hq.v1.RevisionTarget as HQ holds it; None: HQ does not hold the revision there.
        status: what was reported last; None: nothing.
    """
    if target is None or status is None or _is_unheard(status):
        return BY_OLD_NAME["UNKNOWN"]
    if status.ready.status == _TRUE:
        return _while_ready(target, status)
    if target != _READY and status.installed.status == _TRUE:
        return BY_REASON.get(status.ready.reason if status.ready.reason == "Stopping" else "", BY_OLD_NAME["PREPARED"])
    for reason in _reasons(status):
        if reason in BY_REASON:
            return BY_REASON[reason]
    return BY_OLD_NAME["HOOK_SEMI_FAILED" if status.installed.status == _TRUE else "HOOK_FAILED"]


def _is_unheard(status: RevisionStatus) -> bool:
    reasons = {status.ready.reason, status.installed.reason}
    said_something = status.ready.status or status.installed.status or any(reasons)
    return not said_something or bool(reasons & set(BY_OLD_NAME["UNKNOWN"].reasons))


def _while_ready(target: int, status: RevisionStatus) -> InstanceState:
    if target != _READY:
        return BY_OLD_NAME["HOOK_IN_PROGRESS"]  # it still runs, and shall not
    return BY_REASON[status.ready.reason] if status.ready.reason in _SERVING else BY_OLD_NAME["ACTIVE"]


def _reasons(status: RevisionStatus) -> Iterator[str]:
    """The most telling first: why it is not installed, how a container ended, why it is not ready."""
    if status.installed.status != _TRUE:
        yield status.installed.reason
    for container in status.container:
        ended = container.state.terminated if container.state.HasField("terminated") else container.last_termination
        if not container.ready and ended.reason in ("OOMKilled", "Killed"):
            yield ended.reason
    yield status.ready.reason
