"""A status record through its changes, as replicas store and read it."""

from __future__ import annotations

from collections.abc import Callable

from hq.memory import statuses
from hq.memory.entry import Mark
from hq.memory.statuses import ReportReceipt, StatusDraft
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2

TRUE = instance_pb2.CONDITION_STATUS_TRUE
UID = 42


class Record:
    """Each change comes a second after the one before.

    Attributes:
        stored: as it lies in the store.
        now_ms: of the last change.
    """

    def __init__(self) -> None:
        self.stored = statuses.empty_record(UID, 1, 1_000)
        self.now_ms = 1_000

    @property
    def status(self) -> instance_pb2.InstanceStatus:
        return instance_pb2.InstanceStatus.FromString(self.stored.status)

    def revision(self, revision_id: str = "r1") -> instance_pb2.RevisionStatus:
        return next(revision for revision in self.status.revision if revision.id == revision_id)

    def mark(self, revision_id: str = "r1") -> storage_pb2.RevisionMark:
        return next(mark for mark in self.stored.revision if mark.id == revision_id)

    def change(self, change: Callable[[StatusDraft], None]) -> None:
        self.now_ms += 1_000
        marks = [Mark(mark, {}) for mark in self.stored.revision]
        draft = StatusDraft(UID, self.status, marks)
        change(draft)
        self.stored = draft.record(self.now_ms, self.now_ms)
        assert [mark.id for mark in self.stored.revision] == [revision.id for revision in self.status.revision]
        assert self.stored.uid == UID

    def report(self, ready: int = TRUE, sequence: int = 1, revision_id: str = "r1", message: str = "") -> None:
        report = make_report(ready, sequence, revision_id, message)
        digest = statuses.digest(report)
        self.change(lambda draft: draft.report(report, ReportReceipt("h1", self.now_ms), digest))

    def expire(self, revision_id: str = "r1") -> None:
        receipt = instance_pb2.Receipt(heard_by="h1", decided_by="h2", decided_at_version=77, guard_verdict="quiet")
        receipt.silence.FromSeconds(601)
        self.change(lambda draft: draft.expire(revision_id, receipt, self.now_ms))


def make_report(
    ready: int = TRUE, sequence: int = 1, revision_id: str = "r1", message: str = ""
) -> instance_pb2.RevisionStatus:
    report = instance_pb2.RevisionStatus(id=revision_id, incarnation=5, sequence=sequence)
    report.ready.CopyFrom(instance_pb2.Condition(status=ready, message=message))  # type: ignore[arg-type]
    return report
