"""From what is observed to what HQ is told. Pure: no I/O, the time is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import Condition, ContainerStatus, RevisionStatus
from instancectl.clock import timestamp

TRUE, FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE
UNKNOWN = instance_pb2.CONDITION_STATUS_UNKNOWN


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something holds, with a word for programs and a sentence for people. Never holds a secret's value."""

    holds: bool | None
    reason: str
    message: str = ""


PENDING = Verdict(False, "Pending", "preparing has not begun")
CREATED = Verdict(False, "Created", "the revision is only described: the node holds nothing of it")
REMOVING = Verdict(False, "Removing", "its files are being removed")
PREPARING = Verdict(False, "Preparing", "reading secrets")
DOWNLOADING = Verdict(False, "Downloading", "fetching files and packages, and verifying their checksums")
UNPACKING = Verdict(False, "Installing", "unpacking packages, placing files, creating volumes, delivering secrets")
RUNNING_SCRIPTS = Verdict(False, "RunningPrepareScripts", "running the prepare scripts")
INSTALLED = Verdict(True, "Installed")
NOT_WANTED = Verdict(False, "NotWantedReady", "the revision should be INSTALLED only: nothing runs")
NOT_WANTED_AT_ALL = Verdict(False, "NotWantedReady", "the revision should be CREATED only: nothing runs")
NOT_INSTALLED = Verdict(False, "NotInstalled", "starts when installed")
GIVING_WAY = Verdict(False, "WaitingForPredecessor", "the previous revision is stopping")
STARTING = Verdict(False, "Starting", "its containers are about to start")
STOPPING = Verdict(False, "Stopping", "the supervisor is stopping it, after the drain period")
STOPPED = Verdict(False, "Stopped", "the supervisor is exiting")


def readiness(sections: Sequence[ContainerStatus]) -> Verdict:
    """Of a running revision: ready when each section is ready or has done its work."""
    waiting = [section for section in sections if not section.ready and not has_completed(section)]
    if waiting:
        return Verdict(False, "SectionNotReady", "; ".join(map(describe, waiting)))
    if sections and not any(section.ready for section in sections):
        return Verdict(False, "Completed", "every container has exited and stays so")
    return Verdict(True, "Ready", "" if sections else "there are no containers to run")


def has_completed(section: ContainerStatus) -> bool:
    """It ended well, and is not started again."""
    return section.state.HasField("terminated") and section.state.terminated.reason == "Completed"


def describe(section: ContainerStatus) -> str:
    """`web: waiting, CrashBackoff: exited with 1`."""
    kind = section.state.WhichOneof("state") or "waiting"
    if kind == "running":
        return f"{section.name}: running, not ready"
    details = section.state.waiting if kind == "waiting" else section.state.terminated
    return f"{section.name}: {kind}" + "".join(f", {text}" for text in (details.reason, details.message) if text)


def revision_status(
    revision_id: str,
    installed: Verdict,
    ready: Verdict,
    sections: Iterable[ContainerStatus],
    *,
    spec_version: int,
    before: RevisionStatus | None,
    wall_s: float,
) -> RevisionStatus:
    """The full status; a condition keeps the time of its last transition from `before`."""
    status = RevisionStatus(id=revision_id, container=sections, spec_version=spec_version)
    status.installed.CopyFrom(_condition(installed, before.installed if before else None, wall_s))
    status.ready.CopyFrom(_condition(ready, before.ready if before else None, wall_s))
    return status


def _condition(verdict: Verdict, before: Condition | None, wall_s: float) -> Condition:
    status = UNKNOWN if verdict.holds is None else TRUE if verdict.holds else FALSE
    made = Condition(status=status, reason=verdict.reason, message=verdict.message)
    if before is not None and before.status == status and before.HasField("last_transition_time"):
        made.last_transition_time.CopyFrom(before.last_transition_time)
    else:
        made.last_transition_time.CopyFrom(timestamp(wall_s))
    return made
