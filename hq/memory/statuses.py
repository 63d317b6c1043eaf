"""Status records: how a report, a new reporter, a dropped revision and an expiry change one. Pure.

A draft takes the current status and makes the record to be written; the write compares the version that the draft was
made from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from hq.memory.entry import NO_REVISION_READY, NOTHING_REPORTED, Entry, Mark, holds, judged_of
from hq.memory.record import LivenessPair
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2

HEARTBEAT_TIMEOUT = "HeartbeatTimeout"
REPORTS_REFUSED = "ReportsRefused"
NEVER_REPORTED = "NeverReported"

_TRUE = instance_pb2.CONDITION_STATUS_TRUE
_FALSE = instance_pb2.CONDITION_STATUS_FALSE


class ReportReceipt(NamedTuple):
    """Who received a report, and when, in milliseconds of Unix time (for display)."""

    by: str
    unix_ms: int


def digest(report: instance_pb2.RevisionStatus) -> int:
    """Digest of a report without its sequence number; never 0. Equal digests: the report changes nothing."""
    sequence, report.sequence = report.sequence, 0
    encoded = report.SerializeToString(deterministic=True)
    report.sequence = sequence
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little") or 1


class StatusDraft:
    """A status record being changed. `record` ends the change."""

    def __init__(
        self,
        uid: int,
        status: instance_pb2.InstanceStatus,
        marks: Collection[Mark],
        silence: storage_pb2.AgentSilence | None = None,
    ) -> None:
        """`status` is changed in place; `marks`, in the order of its revisions, are newer: they know of heartbeats.

        `silence`: what was judged of the agent.
        """
        self._uid, self._silence = uid, silence
        self._status = status
        self._marks = {mark.id: mark.record() for mark in marks}
        for revision in self._status.revision:  # a record written by hand may lack some
            self._marks.setdefault(revision.id, storage_pb2.RevisionMark(id=revision.id))

    @property
    def size_bytes(self) -> int:
        """The encoded size of the statuses of all revisions."""
        return self._status.ByteSize()

    def record(self, write_id: int, wall_ms: int) -> storage_pb2.StatusRecord:
        """The record to write."""
        self._sum_up(wall_ms)
        self._status.ClearField("agent")  # a tail of the frame, made from what is stored beside the status
        marks = [self._marks[revision.id] for revision in self._status.revision]
        silence = self._silence
        if silence is not None and not holds(silence, marks):
            silence = None  # somebody has reported since, or a revision that was judged is gone
        return storage_pb2.StatusRecord(
            write_id=write_id, status=self._status.SerializeToString(), revision=marks, uid=self._uid, agent=silence
        )

    def report(self, report: instance_pb2.RevisionStatus, heard: ReportReceipt, report_digest: int) -> None:
        """Replace the status of a revision by an agent's report."""
        old = self._revision(report.id)
        mark = self._marks[report.id]
        recovered = mark.expired and report.ready.status == _TRUE
        last = instance_pb2.RevisionStatus()
        last.CopyFrom(old)
        old.CopyFrom(report)
        for name in ("installed", "ready"):
            _carry_transition(getattr(last, name), getattr(old, name), heard.unix_ms)
        if recovered:
            receipt = old.ready.receipt
            receipt.recovered_from = last.ready.reason
            receipt.last_heartbeat_time.FromMilliseconds(heard.unix_ms)
            receipt.heard_by = receipt.decided_by = heard.by
        mark.ready = report.ready.status == _TRUE
        mark.heard_unix_ms, mark.heard_by = heard.unix_ms, heard.by
        mark.incarnation, mark.sequence = report.incarnation, report.sequence
        mark.digest = report_digest
        # A report of "not ready" leaves it expired: it recovers only when it is ready again.
        mark.expired = mark.expired and not mark.ready

    def begin(
        self, revision_id: str, incarnation: int, heard: ReportReceipt, liveness: LivenessPair | None = None
    ) -> None:
        """Let a new reporter take over a revision; its next report is written, whatever it says.

        It is judged by `liveness`, whatever the spec says later; None: as the installation is set.
        """
        self._revision(revision_id).incarnation = incarnation
        mark = self._marks[revision_id]
        mark.incarnation, mark.sequence, mark.digest = incarnation, 0, 0
        mark.report_interval_ms, mark.timeout_ms = liveness or (0, 0)
        mark.heard_unix_ms, mark.heard_by = heard.unix_ms, heard.by

    def void(self, revision_id: str) -> None:
        """Have the next report of a revision written, whatever it says: until then no report is a mere heartbeat."""
        if revision_id in self._marks:
            self._marks[revision_id].digest = 0

    def forget_reporters(self) -> None:
        """Remove the reporters of all revisions: each has to begin again."""
        for revision in self._status.revision:
            revision.incarnation = 0
        for mark in self._marks.values():
            mark.incarnation = mark.sequence = mark.digest = 0

    def keep(self, revision_ids: Collection[str]) -> None:
        """Drop the revisions that the spec does not list any more."""
        kept = [revision for revision in self._status.revision if revision.id in revision_ids]
        gone = len(self._status.revision) - len(kept)
        if gone:
            del self._status.revision[:]
            self._status.revision.extend(kept)

    def clear(self) -> None:
        """Forget every revision: the instance moved to another node."""
        self._status = instance_pb2.InstanceStatus()
        self._marks = {}

    def expire(
        self, revision_id: str, receipt: instance_pb2.Receipt, wall_ms: int, *, is_refused: bool = False
    ) -> None:
        """Mark a revision not ready: HQ got no reports of it, or had to refuse them."""
        silence_s = receipt.silence.seconds
        refused = f"HQ refused its reports for {silence_s} s: see hq_reports_refused_total of its replicas"
        condition = instance_pb2.Condition(
            status=_FALSE,
            reason=REPORTS_REFUSED if is_refused else HEARTBEAT_TIMEOUT,
            message=refused if is_refused else f"no report for {silence_s} s",
            receipt=receipt,
        )
        condition.last_transition_time.FromMilliseconds(wall_ms)
        self._revision(revision_id).ready.CopyFrom(condition)
        mark = self._marks[revision_id]
        mark.ready, mark.expired, mark.digest = False, True, 0

    def silence_agent(self, reason: str, message: str, receipt: instance_pb2.Receipt, wall_ms: int) -> None:
        """Record that no agent of this instance is heard. The next report is written as a status, whatever it says."""
        condition = instance_pb2.Condition(status=_FALSE, reason=reason, message=message, receipt=receipt)
        condition.last_transition_time.FromMilliseconds(wall_ms)
        marks = [self._marks[revision.id] for revision in self._status.revision]
        for mark in marks:
            mark.digest = 0
        self._silence = storage_pb2.AgentSilence(condition=condition.SerializeToString(), judged=judged_of(marks))

    def _revision(self, revision_id: str) -> instance_pb2.RevisionStatus:
        for revision in self._status.revision:
            if revision.id == revision_id:
                return revision
        self._marks[revision_id] = storage_pb2.RevisionMark(id=revision_id)
        return self._status.revision.add(id=revision_id)

    def _sum_up(self, wall_ms: int) -> None:
        """Set the instance's own condition, from its revisions."""
        new = _summary(self._status.revision)
        _carry_transition(self._status.ready, new, wall_ms)
        self._status.ready.CopyFrom(new)


def status_draft_of(entry: Entry, epoch_at: int) -> StatusDraft:
    """An instance's status, to be changed. Reporters in a record older than the epoch are from another history."""
    draft = StatusDraft(entry.traits.uid, entry.status(), entry.marks, entry.silence())
    if entry.status_version < epoch_at:
        draft.forget_reporters()
    return draft


def empty_record(uid: int, write_id: int, wall_ms: int) -> storage_pb2.StatusRecord:
    """The status of an instance that nobody has reported on."""
    return StatusDraft(uid, instance_pb2.InstanceStatus(), ()).record(write_id, wall_ms)


def _summary(revisions: Sequence[instance_pb2.RevisionStatus]) -> instance_pb2.Condition:
    ready = [revision for revision in revisions if revision.ready.status == _TRUE]
    if ready:
        return instance_pb2.Condition(status=_TRUE, reason="RevisionReady", message=f"revision {ready[0].id} is ready")
    told = [revision for revision in revisions if revision.HasField("ready")]
    if not told:
        return instance_pb2.Condition(reason=NOTHING_REPORTED, message="no agent has reported yet")
    last = max(reversed(told), key=lambda revision: _moment(revision.ready.last_transition_time))
    words = f"revision {last.id}: {last.ready.message or last.ready.reason or 'not ready'}"
    return instance_pb2.Condition(status=_FALSE, reason=last.ready.reason or NO_REVISION_READY, message=words)


def _moment(time: Timestamp) -> tuple[int, int]:
    """A sort key by time, also for times out of a Timestamp's range: a record may hold anything."""
    return time.seconds, time.nanos


def _carry_transition(old: instance_pb2.Condition, new: instance_pb2.Condition, wall_ms: int) -> None:
    """Fill the time of the last transition: as reported, else as before if nothing changed, else now."""
    if new.HasField("last_transition_time"):
        return
    if old.status == new.status and old.HasField("last_transition_time"):
        new.last_transition_time.CopyFrom(old.last_transition_time)
    else:
        new.last_transition_time.FromMilliseconds(wall_ms)
