"""Makes the report of each wanted revision, from what is observed. Pure: no I/O, the time is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import Condition, ContainerStatus, InstanceRevision, RevisionStatus
from instancectl.clock import timestamp
from instancectl.wanted.desired import Desired, RevisionContentKey, is_wanted_created

TRUE, FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE
UNKNOWN = instance_pb2.CONDITION_STATUS_UNKNOWN


@dataclass(frozen=True, slots=True)
class ConditionVerdict:
    """Whether something holds, with a word for programs and a sentence for people. Never holds a secret's value."""

    holds: bool | None
    reason: str
    message: str = ""


PENDING = ConditionVerdict(False, "Pending", "preparation has not started")
CREATED = ConditionVerdict(False, "Created", "the target of the revision is CREATED: nothing of it is on the node")
REMOVING = ConditionVerdict(False, "Removing", "its files are being removed")
PREPARING = ConditionVerdict(False, "Preparing", "reading secrets")
DOWNLOADING = ConditionVerdict(False, "Downloading", "fetching files and packages, and verifying their checksums")
DOWNLOADED = ConditionVerdict(
    False, "Downloaded", "everything was fetched: unpacking packages, placing files, creating volumes"
)
INSTALLING = ConditionVerdict(False, "Installing", "delivering secrets, giving files to its user")
RUNNING_SCRIPTS = ConditionVerdict(False, "RunningPrepareScripts", "running the prepare scripts")
HOOK_CANCELLED = ConditionVerdict(False, "HookCancelled", "its hook was cut off, because it is not wanted any more")
INSTALLED = ConditionVerdict(True, "Installed")
NOT_WANTED = ConditionVerdict(False, "NotWantedReady", "the target of the revision is INSTALLED: nothing of it runs")
NOT_WANTED_AT_ALL = ConditionVerdict(
    False, "NotWantedReady", "the target of the revision is CREATED: nothing of it runs"
)
NOT_INSTALLED = ConditionVerdict(False, "NotInstalled", "starts when installed")
GIVING_WAY = ConditionVerdict(False, "WaitingForPredecessor", "the previous revision is stopping")
STARTING = ConditionVerdict(False, "Starting", "its containers are about to start")
STOPPING = ConditionVerdict(False, "Stopping", "the supervisor is stopping it, after the drain period")
START_CANCELLED = ConditionVerdict(False, "StartCancelled", "it is stopped before it was ever ready")
STOPPED = ConditionVerdict(False, "Stopped", "the supervisor is exiting")


def retry_verdict(message: str, at: datetime) -> ConditionVerdict:
    """That a fetch failed and is tried again; only the message differs from one failure to the next."""
    return ConditionVerdict(False, "Retrying", f"{message}; next try at {at:%H:%M:%S} UTC")


def readiness(containers: Sequence[ContainerStatus]) -> ConditionVerdict:
    """Readiness of a running revision: ready when each container is ready or has finished."""
    waiting = [container for container in containers if not container.ready and not has_completed(container)]
    if waiting:
        return ConditionVerdict(False, "ContainerNotReady", "; ".join(map(describe, waiting)))
    if containers and not any(container.ready for container in containers):
        return ConditionVerdict(False, "Completed", "every container has exited and none is restarted")
    return ConditionVerdict(True, "Ready", "" if containers else "there are no containers to run")


def has_completed(container: ContainerStatus) -> bool:
    """Whether it ended well, and is not started again."""
    return container.state.HasField("terminated") and container.state.terminated.reason == "Completed"


def describe(container: ContainerStatus) -> str:
    """`web: waiting, Backoff: exited with 1`."""
    kind = container.state.WhichOneof("state") or "waiting"
    if kind == "running":
        return f"{container.name}: running, not ready"
    details = container.state.waiting if kind == "waiting" else container.state.terminated
    return f"{container.name}: {kind}" + "".join(f", {text}" for text in (details.reason, details.message) if text)


def revision_status(
    revision_id: str,
    installed: ConditionVerdict,
    ready: ConditionVerdict,
    containers: Iterable[ContainerStatus],
    *,
    spec_version: int,
    before: RevisionStatus | None,
    wall_s: float,
) -> RevisionStatus:
    """The full status; a condition keeps the time of its last transition from `before`."""
    status = RevisionStatus(id=revision_id, container=containers, spec_version=spec_version)
    status.installed.CopyFrom(_condition(installed, before.installed if before else None, wall_s))
    status.ready.CopyFrom(_condition(ready, before.ready if before else None, wall_s))
    return status


def _condition(verdict: ConditionVerdict, before: Condition | None, wall_s: float) -> Condition:
    status = UNKNOWN if verdict.holds is None else TRUE if verdict.holds else FALSE
    made = Condition(status=status, reason=verdict.reason, message=verdict.message)
    if before is not None and before.status == status and before.HasField("last_transition_time"):
        made.last_transition_time.CopyFrom(before.last_transition_time)
    else:
        made.last_transition_time.CopyFrom(timestamp(wall_s))
    return made


@dataclass(frozen=True, slots=True)
class RunningRevision:
    """The running revision and its containers.

    Attributes:
        leaving: its readiness while it is being stopped; None: it is not.
        ends: the supervisor itself ends.
        spec_version: of the newest specification that it was started from.
    """

    key: RevisionContentKey | None = None
    containers: tuple[ContainerStatus, ...] = ()
    leaving: ConditionVerdict | None = None
    ends: bool = False
    spec_version: int = 0


def statuses(
    desired: Desired,
    installed: Callable[[RevisionContentKey], ConditionVerdict | None],
    stage: RunningRevision,
    before: Mapping[str, RevisionStatus],
    wall_s: float,
) -> dict[str, RevisionStatus]:
    """The status of each wanted revision, by id."""
    return {
        key.id: revision_status(
            key.id,
            _installed_verdict(key, revision, installed),
            _ready(key, revision, desired, _installed_verdict(key, revision, installed), stage),
            _containers(key, revision, stage),
            # A running revision (by id, as in `_ready`) acknowledges the specification that it was started from.
            spec_version=stage.spec_version if stage.key and stage.key.id == key.id else desired.version,
            before=before.get(key.id),
            wall_s=wall_s,
        )
        for key, revision in desired.by_key.items()
    }


def _installed_verdict(
    key: RevisionContentKey,
    revision: InstanceRevision,
    installed: Callable[[RevisionContentKey], ConditionVerdict | None],
) -> ConditionVerdict:
    return installed(key) or (CREATED if is_wanted_created(revision) else PENDING)


def _ready(
    key: RevisionContentKey,
    revision: InstanceRevision,
    desired: Desired,
    installed: ConditionVerdict,
    stage: RunningRevision,
) -> ConditionVerdict:
    # By id, not key: while changed files of this revision are prepared, the one that runs has another digest.
    if stage.key is not None and stage.key.id == key.id:
        return stage.leaving or (STOPPING if stage.ends else readiness(stage.containers))
    if stage.ends:
        return STOPPED
    if key != desired.ready_key:
        return NOT_WANTED_AT_ALL if is_wanted_created(revision) else NOT_WANTED
    if not installed.holds:
        return NOT_INSTALLED
    return GIVING_WAY if stage.key else STARTING


def _containers(key: RevisionContentKey, revision: InstanceRevision, stage: RunningRevision) -> list[ContainerStatus]:
    """Containers that the spec lists: HQ refuses others."""
    if stage.key is None or stage.key.id != key.id:
        return []
    known = {container.name for container in revision.container}
    return [container for container in stage.containers if container.name in known]
