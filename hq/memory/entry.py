"""One instance as a replica holds it: its frame, and the handful of fields that are looked up without decoding."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hq.memory import frames
from hq.memory.joined_lists import ServiceListCache
from hq.memory.record import NO_STATUS, RECORD_BYTES, Mark, Pool, Spec, Status, Traits, decode_traits, pool_traits
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2

_NOT_LOOKED = -1
# Why an instance is not ready where no agent says so.
NOT_WANTED, NOTHING_REPORTED, NO_REVISION_READY = "NotWantedReady", "NothingReported", "NoRevisionReady"


class Entry:
    """One instance. Everything but the heartbeat times is fixed; a change makes a new Entry.

    Attributes:
        spec_created: create revision of the spec record, compared by status writes.
        version, status_version: modified revisions of the two records.
        request_id: of the creation.
        agent: the encoded field of the status that says whether an agent is heard.
        fresh_frame: the frame, if no heartbeat came since it was spliced. Lists are read from it; see `frames_of`.
        home: the cached lists that it is in, void after its next heartbeat; None while it is in no cache.
    """

    __slots__ = (
        "_frame",
        "_reason",
        "_shape",
        "_told",
        "agent",
        "fresh_frame",
        "home",
        "marks",
        "request_id",
        "spec_created",
        "status_version",
        "traits",
        "version",
    )

    def __init__(
        self,
        traits: Traits,
        marks: tuple[Mark, ...],
        parts: frames.FrameParts,
        spec_created: int,
        request_id: str,
        pool: Pool,
    ) -> None:
        self.traits = traits
        self.marks = marks
        self.version = parts.version
        self.status_version = parts.status_version
        self.spec_created = spec_created
        self.request_id = request_id
        self.agent = parts.agent
        shape = frames.shape(parts)
        self._shape: frames.Shape = pool.setdefault(shape, shape)
        self._frame = frames.splice(parts)
        self.fresh_frame: bytes | None = self._frame
        self.home: ServiceListCache | None = None
        self._told, self._reason = _NOT_LOOKED, ""

    def stored_bytes(self) -> int:
        """About how much of the store its two records use. Heartbeats do not change the number."""
        return sum(self._shape) + 2 * (len(self.traits.id) + RECORD_BYTES) + RECORD_BYTES * len(self.marks)

    def frame(self) -> bytes:
        """The frame, spliced again if a heartbeat came since."""
        if self.fresh_frame is None:
            self.fresh_frame = self._frame = frames.splice(self._parts())
        return self.fresh_frame

    def changed_at(self) -> int:
        """The version of the newest change."""
        return max(self.version, self.status_version)

    def has_reporter(self) -> bool:
        """Whether an agent has begun to report a revision."""
        return any([mark.incarnation for mark in self.marks])  # noqa: C419  # a generator costs three times as much

    def mark(self, revision_id: str) -> Mark | None:
        """Return the mark of a revision's reporter; None if it never had one."""
        for mark in self.marks:
            if mark.id == revision_id:
                return mark
        return None

    def is_unknown(self, revision_id: str = "") -> bool:
        """Whether the readiness of the instance, or of that revision, is unreported. Decoded once: counts ask often."""
        if self._told == _NOT_LOOKED:
            self._told = self._look()
        if not revision_id:
            return not self._told & 1
        for position, mark in enumerate(self.marks, 1):
            if mark.id == revision_id:
                return not self._told >> position & 1
        return True

    def reason(self) -> str:
        """Why it is not ready, in one word; NOT_WANTED where it need not be. Decoded once: counts ask often."""
        if not self._reason:
            self._reason = sys.intern(self._look_why())
        return self._reason

    def _look_why(self) -> str:
        wanted = next((r.id for r in self.spec().revision if r.target == instance_pb2.REVISION_TARGET_READY), None)
        if wanted is None:
            return NOT_WANTED
        ready = next((r.ready for r in self.status().revision if r.id == wanted and r.HasField("ready")), None)
        return NOTHING_REPORTED if ready is None else ready.reason or NO_REVISION_READY

    def _look(self) -> int:
        """Bit 0: the instance's readiness is known; then a bit for each mark. A small number takes no memory."""
        status = self.status()
        told = {revision.id for revision in status.revision if revision.ready.status}
        bits = sum(1 << position for position, mark in enumerate(self.marks, 1) if mark.id in told)
        return bits | (status.ready.status != instance_pb2.CONDITION_STATUS_UNKNOWN)

    def heartbeat(self, position: int, unix_ms: int, heard_by: str) -> Mark:
        """Note that the revision at this position was heard again."""
        mark = self.marks[position]
        mark.heard_ms = max(mark.heard_ms, unix_ms)
        mark.heard_by = heard_by
        self.fresh_frame = None
        if self.home is not None:
            self.home.invalidate()
        return mark

    def meta(self) -> instance_pb2.InstanceMeta:
        """Decoded, without the versions. Off the read path."""
        return instance_pb2.InstanceMeta.FromString(frames.split_frame(self._frame, self._shape)[0])

    def spec(self) -> instance_pb2.InstanceSpec:
        """Decoded. Off the read path."""
        return instance_pb2.InstanceSpec.FromString(frames.split_frame(self._frame, self._shape)[1])

    def status(self) -> instance_pb2.InstanceStatus:
        """Decoded, without heartbeat times. Off the read path."""
        return instance_pb2.InstanceStatus.FromString(frames.split_frame(self._frame, self._shape)[2])

    def instance(self) -> instance_pb2.Instance:
        """Decoded, with everything. Off the read path."""
        return instance_pb2.Instance.FromString(frames.body(self.frame()))

    def stored_records(self) -> tuple[Spec, Status]:
        """The two records that this entry was made from, but for their write ids."""
        meta, spec, _ = frames.split_frame(self._frame, self._shape)
        return (
            Spec(
                storage_pb2.SpecRecord(meta=meta, spec=spec, request_id=self.request_id),
                self.spec_created,
                self.version,
            ),
            Status(self.status_record(), self.status_version),
        )

    def status_record(self) -> storage_pb2.StatusRecord:
        """The status record that this entry was made from, but for its write id."""
        status = frames.split_frame(self._frame, self._shape)[2]
        marks = [mark.record() for mark in self.marks]
        return storage_pb2.StatusRecord(status=status, revision=marks, uid=self.traits.uid, agent=self.silence())

    def silence(self) -> storage_pb2.AgentSilence | None:
        """HQ's judgement that no agent is heard, as it is stored; None: there is none, or not of these reports."""
        if not self.traits.silent:
            return None
        _, at = frames.read_varint(self.agent, 1)
        return storage_pb2.AgentSilence(condition=self.agent[at:], judged=judged_of(self.marks))

    def with_status(self, status: Status, pool: Pool) -> Entry:
        """The instance with another status and everything else unchanged; nothing is decoded."""
        meta, spec, _ = frames.split_frame(self._frame, self._shape)
        marks = _marks(status, pool)
        _recall_heartbeats(marks, self)
        ready, agent = _is_ready(marks), _agent(status, marks)
        parts = frames.FrameParts(
            meta, spec, status.record.status, self.version, status.modified, heartbeat_times(marks), agent
        )
        traits = _with_readiness(self.traits, ready, agent not in _NOT_SILENT)
        return Entry(traits, marks, parts, self.spec_created, self.request_id, pool)

    def as_tuple(self) -> tuple[Any, ...]:
        """The whole entry as plain tuples, strings and numbers, from which `recall` makes it again."""
        marks = tuple([mark.as_tuple() for mark in self.marks])
        versions = self.version, self.status_version, self.spec_created
        is_fresh = self.fresh_frame is not None
        shape = tuple(self._shape)
        return tuple(self.traits), marks, *versions, self.request_id, shape, self._frame, is_fresh, self.agent

    def recall(self, kept: tuple[Any, ...], pool: Pool) -> Entry:
        """Become the entry that `as_tuple` described, perhaps in another process. Call it on a bare `Entry.__new__`."""
        (
            traits,
            marks,
            self.version,
            self.status_version,
            self.spec_created,
            self.request_id,
            shape,
            frame,
            fresh,
            agent,
        ) = kept
        self.agent = pool.setdefault(agent, agent)
        self.traits = pool_traits(traits, pool)
        self.marks = tuple([Mark.from_tuple(mark, pool) for mark in marks])
        self._shape = pool.get(shape) or pool.setdefault(shape, frames.Shape._make(shape))
        self._frame, self.fresh_frame = frame, frame if fresh else None
        self.home, self._told, self._reason = None, _NOT_LOOKED, ""
        return self

    def _parts(self) -> frames.FrameParts:
        meta, spec, status = frames.split_frame(self._frame, self._shape)
        return frames.FrameParts(
            meta, spec, status, self.version, self.status_version, heartbeat_times(self.marks), self.agent
        )


class Event(NamedTuple):
    """One change of one instance at one version. `before` and `after` are None where it did not exist."""

    version: int
    before: Entry | None
    after: Entry | None

    @property
    def traits(self) -> Traits:
        """Traits of the newer state."""
        entry = self.after or self.before
        assert entry is not None
        return entry.traits


def frames_of(entries: Iterable[Entry]) -> list[bytes]:
    """The frames of many, at the least cost each."""
    return [entry.fresh_frame or entry.frame() for entry in entries]


def heartbeat_times(marks: tuple[Mark, ...]) -> list[tuple[str, int]]:
    """Return the times of which a frame's heartbeat tail is made."""
    return [(mark.id, mark.heard_ms) for mark in marks if mark.heard_ms]


def build(instance_id: str, spec: Spec, status: Status, before: Entry | None, pool: Pool) -> Entry:
    """The entry of an instance from its two records. Raises Undecodable, if its traits are yet to be decoded.

    `before` is the previous entry: it knows of heartbeats, which no record holds.
    """
    record = spec.record
    marks = _marks(status, pool)
    ready = _is_ready(marks)
    traits = spec.traits or decode_traits(instance_id, record, pool, ready=ready)
    if before is not None and before.traits.uid == traits.uid:
        _recall_heartbeats(marks, before)
    agent, told = _agent(status, marks), heartbeat_times(marks)
    parts = frames.FrameParts(
        record.meta, record.spec, status.record.status, spec.modified, status.modified, told, agent
    )
    traits = _with_readiness(traits, ready, agent not in _NOT_SILENT)
    return Entry(traits, marks, parts, spec.created, record.request_id, pool)


def _marks(status: Status, pool: Pool) -> tuple[Mark, ...]:
    # A slice: its messages cost a fifth of those that an iterator brings one by one.
    return tuple([Mark(record, pool) for record in status.record.revision[:]])


def _recall_heartbeats(marks: tuple[Mark, ...], before: Entry) -> None:
    for mark in marks:
        mark.recall(before.mark(mark.id))


def _is_ready(marks: Iterable[Mark]) -> bool:
    return any([mark.ready for mark in marks])  # noqa: C419  # a generator costs three times as much


def _agent(status: Status, marks: tuple[Mark, ...]) -> bytes:
    """Whether an agent is heard, encoded."""
    if status.record.HasField("agent") and holds(status.record.agent, marks):
        return frames.agent_silent(status.record.agent.condition)
    is_begun = any([mark.incarnation for mark in marks])  # noqa: C419  # a generator costs three times as much
    return frames.AGENT_HEARD if is_begun else frames.AGENT_UNKNOWN


_NOT_SILENT = (frames.AGENT_HEARD, frames.AGENT_UNKNOWN)


def holds(silence: storage_pb2.AgentSilence, marks: Sequence[Mark | storage_pb2.RevisionMark]) -> bool:
    """Whether a stored judgement of silence is about the reports that are stored.

    The judgement voided their digests. A report that came since has a digest, even if it repeats the judged one; a
    replica of an older version, which does not know the judgement, may have stored that report beside it.
    """
    is_heard = any([mark.ready or mark.digest for mark in marks])  # noqa: C419  # as above
    return not is_heard and list(silence.judged) == judged_of(marks)


def judged_of(marks: Iterable[Mark | storage_pb2.RevisionMark]) -> list[storage_pb2.JudgedReport]:
    """The reports stored last, as a judgement of their reporters' silence names them."""
    return [storage_pb2.JudgedReport(incarnation=mark.incarnation, sequence=mark.sequence) for mark in marks]


def _with_readiness(traits: Traits, ready: bool, silent: bool) -> Traits:
    # As `_replace` does, at a fifth of its cost.
    if traits.ready is ready and traits.silent is silent:
        return traits
    return Traits._make((*traits[:_READY], ready, traits.allocated, silent))


_READY = Traits._fields.index("ready")
assert Traits._fields[_READY:] == ("ready", "allocated", "silent")  # as `_with_readiness` has it


__all__ = [
    "NO_STATUS",
    "RECORD_BYTES",
    "Entry",
    "Mark",
    "Pool",
    "Spec",
    "Status",
    "Traits",
    "build",
    "frames_of",
    "heartbeat_times",
    "holds",
    "judged_of",
]
