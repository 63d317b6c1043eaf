"""Why an agent is refused: the instance, the revision or the turn is not its own; and in which epoch. Pure."""

from __future__ import annotations

from hq.errors import Fenced, OutdatedReport, Stop, UnknownRevision, WrongNode, WrongUid
from hq.memory.entry import Entry, Mark
from hqpb.v1 import service_pb2
from serving.errors import NotFound, ServiceError


def of_epoch(error: ServiceError, epoch: str) -> ServiceError:
    """The error, with the epoch in which it holds if it makes an agent stop."""
    if isinstance(error, NotFound | Stop):
        error.epoch = epoch
    return error


def not_on(entry: Entry, node: str) -> WrongNode:
    """The error that the instance is not on that node. It does not say where: not every caller may read that."""
    reporter = node or "none given"
    where = f"is not on the reporter's node ({reporter})"
    if not entry.traits.node:
        where = f"has no node yet; the report is from {reporter}" if node else "has no node yet"
    return WrongNode(entry.traits.id, f"instance {entry.traits.id} {where}")


def refusal(entry: Entry | None, instance_id: str, node: str, revision_id: str, uid: int = 0) -> ServiceError | None:
    """Why an agent on this node may not report the instance as it stands; None: it may."""
    if entry is None:
        return NotFound(f"there is no instance {instance_id}")
    traits = entry.traits
    if uid and uid != traits.uid:
        return WrongUid(
            instance_id, f"instance {instance_id} was recreated with a new uid; the report is for uid {uid}"
        )
    if node != traits.node:
        return not_on(entry, node)
    if revision_id not in traits.revisions:
        return UnknownRevision(
            f"{instance_id}/{revision_id}",
            f"instance {instance_id} has no revision {revision_id} in its spec",
        )
    return None


def has_begun(report: service_pb2.ReportStatusRequest, mark: Mark, *, is_past: bool) -> bool:
    """Whether anybody is known to report the revision.

    `is_past`: the record is older than the epoch, so it fences nobody: in the history that was lost, others may have
    taken over from the reporter that it names, the caller among them.
    """
    return bool(mark.incarnation) and not (is_past and mark.incarnation != report.revision.incarnation)


def check_turn(report: service_pb2.ReportStatusRequest, mark: Mark, digest: int) -> None:
    """Check that the revision's reporter sent it, and nothing newer is stored. Raises Fenced, OutdatedReport."""
    revision = report.revision
    if revision.incarnation != mark.incarnation:
        raise Fenced(subject(report), "another reporter has taken over this revision")
    # The same sequence again is a repetition unless its content differs; after an expiry there is no digest to compare.
    says_else = revision.sequence == mark.sequence and mark.digest not in (0, digest)
    if revision.sequence < mark.sequence or says_else:
        stored = f"report {mark.sequence} is already stored"
        words = f"{stored} and says something else" if says_else else f"{stored}, this one is {revision.sequence}"
        raise OutdatedReport(subject(report), f"{words}: ignored; the next report needs a higher sequence")


def subject(report: service_pb2.ReportStatusRequest) -> str:
    """The revision that a report is of, for errors."""
    return f"{report.instance_id}/{report.revision.id}"
