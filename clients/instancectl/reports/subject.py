"""One reported revision: what to send, and what is still unanswered. Decisions only, no I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hqpb.v1 import service_pb2 as pb
from hqpb.v1.instance_pb2 import RevisionStatus

# Reporting further is no use after these: HQ decided them after a fence, so they are final.
FINAL_REASONS = frozenset({"FENCED", "WRONG_NODE", "WRONG_UID", "UNKNOWN_REVISION", "NOT_FOUND"})
REPEATED_WITHIN_S = 1.0


@dataclass(frozen=True, slots=True, order=True)
class SubjectId:
    """A revision of an instance on this node."""

    instance_id: str
    node: str
    revision_id: str

    def __str__(self) -> str:
        return f"{self.instance_id}/{self.revision_id}"


class ReportSubject:
    """The reports of one revision.

    Attributes:
        status: what to report, without incarnation and sequence.
        begin_unanswered: a BeginReporting had no answer: if it arrives late, it fences ourselves.
    """

    def __init__(self, subject_id: SubjectId, status: RevisionStatus) -> None:
        self.id = subject_id
        self.status = status
        self.begin_unanswered = False
        self._incarnation = 0
        self._uid = 0
        self._sequence = 0
        self._unanswered: set[bytes] = set()
        self._taken: bytes | None = None
        self._readiness_changed_at = -math.inf

    def __repr__(self) -> str:
        state = "has begun" if self.has_begun else "has not begun"
        return f"ReportSubject({self.id}, {state}, sequence={self._sequence})"

    def says(self, status: RevisionStatus, now: float) -> bool:
        """Take a new status; return whether to report it at once: readiness changed, but not twice within a second."""
        changes = status.ready.status != self.status.ready.status
        self.status = status
        if not changes or now - self._readiness_changed_at < REPEATED_WITHIN_S:
            return False
        self._readiness_changed_at = now
        return True

    @property
    def has_begun(self) -> bool:
        return self._incarnation != 0

    @property
    def incarnation(self) -> int:
        return self._incarnation

    @property
    def is_news(self) -> bool:
        """Whether HQ has not confirmed that it knows the status."""
        return self._content() != self._taken

    def begin(self, answer: pb.BeginReportingResponse) -> None:
        """HQ made us the reporter."""
        self._incarnation, self._uid = answer.incarnation, answer.uid
        self._sequence = 0
        self._unanswered.clear()
        self._taken = None

    def begin_again(self) -> None:
        """Drop our incarnation, which is void: `begin` gives a new one."""
        self._incarnation = 0

    def next_report(self) -> pb.ReportStatusRequest:
        """The report to send now. Call `record_acceptance` if HQ takes it."""
        content = self._content()
        self._sequence += 1
        report = pb.ReportStatusRequest(
            instance_id=self.id.instance_id,
            uid=self._uid,
            node=self.id.node,
            revision=self.status,
            # An earlier report may yet be stored before this one, so this one must not be treated as a mere heartbeat.
            unsettled=bool(self._unanswered - {content}),
        )
        report.revision.incarnation, report.revision.sequence = self._incarnation, self._sequence
        self._unanswered.add(content)
        return report

    def record_acceptance(self, report: pb.ReportStatusRequest) -> None:
        """HQ has it. Everything sent before has an older sequence and can do no more harm."""
        if report.revision.sequence == self._sequence:
            self._unanswered.clear()
            self._taken = _content(report.revision)

    def record_refusal(self, report: pb.ReportStatusRequest) -> None:
        """HQ surely did not store it."""
        self._unanswered.discard(_content(report.revision))

    def _content(self) -> bytes:
        return _content(self.status)


def _content(status: RevisionStatus) -> bytes:
    bare = RevisionStatus()
    bare.CopyFrom(status)
    bare.ClearField("incarnation")
    bare.ClearField("sequence")
    return bare.SerializeToString(deterministic=True)
