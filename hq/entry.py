"""One instance as a replica holds it: its frame, and the handful of fields that are looked up without decoding."""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from hq import frames
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2


class Traits(NamedTuple):
    """The indexed fields of an instance. Watches remember those from before a change."""

    id: str
    uid: int
    service: str
    node: str
    cluster: str
    labels: tuple[tuple[str, str], ...]
    revisions: tuple[str, ...]
    ready: bool
    allocated: bool


class Mark:
    """What is known of one revision's reporter, in the order of the status record (a beat names the position).

    Attributes:
        digest: of the report stored last, without its sequence; 0: none, so that the next report is written.
        heard_ms: wall time of the last report or beat, display only; 0: never.
    """

    __slots__ = ("digest", "flipped", "heard_by", "heard_ms", "id", "incarnation", "ready", "sequence")

    def __init__(self, record: storage_pb2.RevisionMark) -> None:
        self.id = record.id
        self.ready = record.ready
        self.heard_ms = record.heard_unix_ms
        self.incarnation = record.incarnation
        self.sequence = record.sequence
        self.digest = record.digest
        self.heard_by = record.heard_by
        self.flipped = record.flipped

    def report(self) -> tuple[int, int]:
        """Identity of the report stored last: HQ's own rewrites of a status keep it, every report changes it."""
        return self.incarnation, self.sequence

    def record(self) -> storage_pb2.RevisionMark:
        """As it is stored."""
        return storage_pb2.RevisionMark(
            id=self.id,
            ready=self.ready,
            heard_unix_ms=self.heard_ms,
            incarnation=self.incarnation,
            sequence=self.sequence,
            digest=self.digest,
            heard_by=self.heard_by,
            flipped=self.flipped,
        )


class Undecodable(Exception):
    """A record's bytes are not what HQ writes."""


class Entry:
    """One instance. Everything but the heartbeat times is fixed; a change makes a new Entry.

    Attributes:
        spec_created: create revision of the spec record, compared by status writes.
        version, status_version: modified revisions of the two records.
        request_id: of the creation.
    """

    __slots__ = (
        "_frame",
        "_heard_newer",
        "_shape",
        "marks",
        "request_id",
        "spec_created",
        "status_version",
        "traits",
        "version",
    )

    def __init__(
        self, traits: Traits, marks: tuple[Mark, ...], parts: frames.Parts, spec_created: int, request_id: str
    ) -> None:
        self.traits = traits
        self.marks = marks
        self.version = parts.version
        self.status_version = parts.status_version
        self.spec_created = spec_created
        self.request_id = request_id
        self._shape = frames.shape(parts)
        self._frame = frames.splice(parts)
        self._heard_newer = False

    def frame(self) -> bytes:
        """The frame, spliced anew if a beat came since."""
        if self._heard_newer:
            self._frame = frames.splice(self._parts())
            self._heard_newer = False
        return self._frame

    def size_bytes(self) -> int:
        return len(self._frame)

    def changed_at(self) -> int:
        """The version of the newest change."""
        return max(self.version, self.status_version)

    def mark(self, revision_id: str) -> Mark | None:
        """What is known of a revision's reporter; None if it never had one."""
        return next((mark for mark in self.marks if mark.id == revision_id), None)

    def beat(self, position: int, unix_ms: int, heard_by: str) -> Mark:
        """Note that the revision at this position was heard again."""
        mark = self.marks[position]
        mark.heard_ms = max(mark.heard_ms, unix_ms)
        mark.heard_by = heard_by
        self._heard_newer = True
        return mark

    def meta(self) -> instance_pb2.InstanceMeta:
        """Decoded, without the versions. Off the read path."""
        return instance_pb2.InstanceMeta.FromString(frames.stored(self._frame, self._shape)[0])

    def spec(self) -> instance_pb2.InstanceSpec:
        """Decoded. Off the read path."""
        return instance_pb2.InstanceSpec.FromString(frames.stored(self._frame, self._shape)[1])

    def status(self) -> instance_pb2.InstanceStatus:
        """Decoded, without heartbeat times. Off the read path."""
        return instance_pb2.InstanceStatus.FromString(frames.stored(self._frame, self._shape)[2])

    def instance(self) -> instance_pb2.Instance:
        """Decoded, with everything. Off the read path."""
        return instance_pb2.Instance.FromString(frames.body(self.frame()))

    def stored(self) -> tuple[Spec, Status]:
        """The two records that this entry was made from, but for their write ids."""
        meta, spec, status = frames.stored(self._frame, self._shape)
        marks = [mark.record() for mark in self.marks]
        return (
            Spec(
                storage_pb2.SpecRecord(meta=meta, spec=spec, request_id=self.request_id),
                self.spec_created,
                self.version,
            ),
            Status(
                storage_pb2.StatusRecord(status=status, revision=marks, uid=self.traits.uid),
                self.status_version,
            ),
        )

    def _parts(self) -> frames.Parts:
        meta, spec, status = frames.stored(self._frame, self._shape)
        return frames.Parts(meta, spec, status, self.version, self.status_version, heard(self.marks))


def heard(marks: tuple[Mark, ...]) -> list[tuple[str, int]]:
    """What the heartbeat tail of a frame is made from."""
    return [(mark.id, mark.heard_ms) for mark in marks if mark.heard_ms]


class Spec(NamedTuple):
    """A spec record with its revisions of change and creation."""

    record: storage_pb2.SpecRecord
    created: int
    modified: int


class Status(NamedTuple):
    """A status record with its revision of change; an instance without one has modified = 0."""

    record: storage_pb2.StatusRecord
    modified: int


NO_STATUS = Status(storage_pb2.StatusRecord(), 0)


def decode_spec(value: bytes, created: int, modified: int) -> Spec:
    """Raises Undecodable."""
    try:
        return Spec(storage_pb2.SpecRecord.FromString(value), created, modified)
    except DecodeError as error:
        raise Undecodable(str(error)) from error


def decode_status(value: bytes, modified: int) -> Status:
    """Raises Undecodable; also if the status itself, which is not looked at before it is served, is no message."""
    try:
        record = storage_pb2.StatusRecord.FromString(value)
        instance_pb2.InstanceStatus.FromString(record.status)
    except DecodeError as error:
        raise Undecodable(str(error)) from error
    return Status(record, modified)


def build(instance_id: str, spec: Spec, status: Status, before: Entry | None, intern: dict[object, object]) -> Entry:
    """The entry of an instance from its two records. Raises Undecodable.

    `before` is what it was: it knows of beats, which no record holds. `intern` is where equal strings and tuples are kept once; a million instances share few services and labels.
    """
    try:
        meta = instance_pb2.InstanceMeta.FromString(spec.record.meta)
        wanted = instance_pb2.InstanceSpec.FromString(spec.record.spec)
    except DecodeError as error:
        raise Undecodable(str(error)) from error
    if meta.id != instance_id:
        raise Undecodable(f"the record names the instance {meta.id!r}")

    def once(value: object) -> object:
        return intern.setdefault(value, value)

    marks = tuple(Mark(record) for record in status.record.revision)
    for mark in marks:
        old = before.mark(mark.id) if before is not None else None
        if old is not None and old.report() == mark.report():
            mark.heard_ms, mark.heard_by = old.heard_ms, old.heard_by
        mark.id, mark.heard_by = str(once(mark.id)), str(once(mark.heard_by))
    labels = once(tuple(sorted((str(once(k)), str(once(v))) for k, v in meta.labels.items())))
    revisions = once(tuple(str(once(revision.id)) for revision in wanted.revision))
    traits = Traits(
        id=instance_id,
        uid=meta.uid,
        service=str(once(meta.service_id)),
        node=str(once(wanted.node_name)),
        cluster=str(once(meta.cluster)),
        labels=labels,  # type: ignore[arg-type]  # what was put into `once` comes out
        revisions=revisions,  # type: ignore[arg-type]
        ready=any(mark.ready for mark in marks),
        allocated=wanted.HasField("allocation"),
    )
    parts = frames.Parts(
        spec.record.meta, spec.record.spec, status.record.status, spec.modified, status.modified, heard(marks)
    )
    return Entry(traits, marks, parts, spec.created, spec.record.request_id)
