"""Instance states: the seed's table, and how an agent's report maps to a state. Pure.

Reasons are those of the conditions and containers that agents report, instancectl's first. Names of Porto, Skynet and
dynamic resources come from agents that have these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import RevisionStatus

ARRIVED, INSTALLING, STARTING = "in its target state", "being installed", "being started"
COMMON, DYNAMIC, HOST = "at any time", "dynamic resources", "the host's own troubles"


@dataclass(frozen=True, slots=True)
class InstanceState:
    """One state.

    Attributes:
        old: the name in capitals, for programs.
        new: the name people read.
        group: when it occurs.
        meaning: what it says, and usual causes.
        reasons: of conditions or containers, each leading to this state only; none: it follows from the conditions.
        needs: what instancectl lacks, so that it never sends this state; empty: it does send it.
    """

    old: str
    new: str
    group: str
    meaning: str
    reasons: tuple[str, ...] = ()
    needs: str = ""


STATES: Final = (
    InstanceState("ACTIVE", "Active", ARRIVED, "it runs and is ready"),
    InstanceState("PREPARED", "Prepared", ARRIVED, "it is installed and nothing of it runs"),
    InstanceState("REMOVED", "Removed", ARRIVED, "the node holds nothing of it", ("Created", "Removed")),
    InstanceState(
        "ENTITY_RESOURCES_NOT_READY",
        "Downloading",
        INSTALLING,
        "files, layers and other parts are being fetched",
        ("Downloading", "FetchFailed"),
    ),
    InstanceState("DOWNLOAD_FINISHED", "Downloaded", INSTALLING, "everything was fetched", ("Downloaded",)),
    InstanceState(
        "ISS_HOOK_INSTALL_JUST_SCHEDULED",
        "Install scheduled",
        INSTALLING,
        "it is about to be installed",
        ("InstallScheduled", "Pending"),
    ),
    InstanceState(
        "ISS_HOOK_INSTALL_IN_PROGRESS",
        "Installing",
        INSTALLING,
        "files, volumes, secrets and prepare scripts are at work",
        ("Installing", "Preparing", "RunningPrepareScripts"),
    ),
    InstanceState(
        "SHARD_SETUP_SUCCESS", "Shard installed", INSTALLING, "its shard is in place", ("ShardInstalled",), "shards"
    ),
    InstanceState(
        "RESOURCE_CHECKSUM_INVALID",
        "Invalid checksum",
        INSTALLING,
        "the checksum of a fetched resource is wrong, or there is none",
        ("ChecksumMismatch", "ChecksumMissing"),
    ),
    InstanceState(
        "SLOT_LOCKED",
        "Pending",
        STARTING,
        "it waits for the previous revision to stop: its stop script or stop policy is at work",
        ("WaitingForPredecessor",),
    ),
    InstanceState(
        "HOOK_SEMI_FAILED",
        "Activating",
        STARTING,
        "its containers were made, and its processes do not serve yet: one keeps exiting, or the readiness check fails",
        ("ContainerNotReady", "Starting", "NotInstalled", "LivenessCheckFailed", "StartupCheckFailed"),
    ),
    InstanceState(
        "DAEMON_EXITED",
        "Exited",
        STARTING,
        "it ended: it was switched off, or trouble with the instance ended it",
        ("Exited", "Completed", "Stopped"),
    ),
    InstanceState(
        "DAEMON_CANCELLED",
        "Cancelled",
        STARTING,
        "its start was cancelled, possibly for a newer revision",
        ("StartCancelled",),
    ),
    InstanceState(
        "DAEMON_WAS_TERMINATED_EXTERNALLY",
        "Killed",
        COMMON,
        "a signal from outside ended it: in most cases it used more memory than it may",
        ("Killed", "OOMKilled"),
    ),
    InstanceState(
        "PORTO_CONSTRAINTS_ERROR",
        "Resource overcommit",
        COMMON,
        "more resources are allocated on the host than it has, so its container cannot be made",
        ("ResourceOvercommit",),
        "Porto",
    ),
    InstanceState(
        "UNKNOWN",
        "Unknown",
        COMMON,
        "nothing is known: the host has not been heard of for long, is switched off or not managed any more; or the "
        "instance has no configuration yet",
        ("HeartbeatTimeout", "ReportsRefused"),
    ),
    InstanceState(
        "HOOK_FAILED",
        "Failing",
        COMMON,
        "a hook ended badly: mostly a prepare script, or secrets that cannot be had",
        (
            "PrepareScriptFailed",
            "PrepareFailed",
            "StartHookFailed",
            "NotStarted",
            "NoCommand",
            "ImageUnsupported",
            "SchemeUnsupported",
            "TorrentUnsupported",
            "BadPath",
            "VolumePathTaken",
            "DiskNotAllocated",
            "UnpackFailed",
            "InternalError",
            "NoUser",
            "IsolationUnavailable",
            "SecretMissing",
            "SecretNotDelivered",
            "SecretModeTooOpen",
            "SecretOwnerUnknown",
        ),
    ),
    InstanceState(
        "HOOK_IN_PROGRESS",
        "Hook in progress",
        COMMON,
        "a hook is running, for example a stop script",
        ("Stopping", "Removing"),
    ),
    InstanceState(
        "HOOK_CANCELLED",
        "Hook cancelled",
        COMMON,
        "a hook was killed because its operation was cancelled",
        ("HookCancelled",),
    ),
    InstanceState(
        "TIME_LIMIT_VIOLATION",
        "Timed out",
        COMMON,
        "a step took too long: a prepare script, a secret that does not come, an overloaded host",
        ("TimedOut", "PrepareScriptTimedOut", "StartHookTimedOut"),
    ),
    InstanceState(
        "INVOCATION_FREQUENCY_LIMIT",
        "Retrying",
        COMMON,
        "the last try failed; the next one comes after a pause",
        ("Retrying",),
    ),
    InstanceState(
        "ACTIVATED_INSTANCE_DYNAMIC_RESOURCES_NOT_READY",
        "Downloading dynamic resource",
        DYNAMIC,
        "it runs, and dynamic resources are being fetched",
        ("DynamicResourceDownloading",),
        "dynamic resources",
    ),
    InstanceState(
        "NOTIFY_HOOK_FAILURE_STATE_INTERCEPTED",
        "Notify failed",
        DYNAMIC,
        "the notify script or action failed; it is repeated until it succeeds",
        ("NotifyFailed",),
        "dynamic resources",
    ),
    InstanceState(
        "DYNAMIC_RESOURCE_NOTIFY_EXECUTION",
        "Notifying",
        DYNAMIC,
        "the notify script or action is at work",
        ("Notifying",),
        "dynamic resources",
    ),
    InstanceState(
        "DYNAMIC_RESOURCE_PREPARATION_FAILURE",
        "Dynamic resource prepare failed",
        DYNAMIC,
        "a dynamic resource was fetched and cannot be mounted",
        ("DynamicResourcePrepareFailed",),
        "dynamic resources",
    ),
    InstanceState("PORTO_FAILURE", "Porto failure", HOST, "Porto failed", ("PortoFailure",), "Porto"),
    InstanceState(
        "PORTO_UNAVAILABLE", "Porto unavailable", HOST, "Porto does not answer", ("PortoUnavailable",), "Porto"
    ),
    InstanceState("SKYNET_FAILURE", "Skynet failure", HOST, "Skynet failed", ("SkynetFailure",), "Skynet"),
    InstanceState("SKYNET_TIMEOUT", "Skynet timeout", HOST, "Skynet does not answer", ("SkynetTimeout",), "Skynet"),
)

BY_OLD_NAME: Final[Mapping[str, InstanceState]] = {state.old: state for state in STATES}
BY_REASON: Final[Mapping[str, InstanceState]] = {reason: state for state in STATES for reason in state.reasons}


_TRUE = instance_pb2.CONDITION_STATUS_TRUE
_READY = instance_pb2.REVISION_TARGET_READY
_SERVING = frozenset({"DynamicResourceDownloading", "NotifyFailed", "Notifying", "DynamicResourcePrepareFailed"})
"""Reasons of a ready revision that say more than that it is ready."""
_ENDING = frozenset({"Stopping", "StartCancelled", "HookCancelled"})
"""Reasons of an installed revision, which should not run, that say that it still does."""
_ENDS = frozenset({"OOMKilled", "Killed", "StartHookFailed", "StartHookTimedOut"})
"""How a container may end that says more than that it is not ready."""


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
        return BY_REASON[status.ready.reason] if status.ready.reason in _ENDING else BY_OLD_NAME["PREPARED"]
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
        return BY_OLD_NAME["HOOK_IN_PROGRESS"]  # it still runs, but should not
    return BY_REASON[status.ready.reason] if status.ready.reason in _SERVING else BY_OLD_NAME["ACTIVE"]


def _reasons(status: RevisionStatus) -> Iterator[str]:
    """The most significant first: why it is not installed, how a container ended, why it is not ready."""
    if status.installed.status != _TRUE:
        yield status.installed.reason
    for container in status.container:
        ended = container.state.terminated if container.state.HasField("terminated") else container.last_termination
        if not container.ready and ended.reason in _ENDS:
            yield ended.reason
    yield status.ready.reason
