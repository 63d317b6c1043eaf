"""The records of an instance as the store holds them, decoded as far as a replica needs them: traits are indexed."""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2

# Where equal strings and tuples are kept once; a million instances share few services and labels.
Pool = dict[Any, Any]


# How often agents report and how much silence makes a revision not ready, both in milliseconds. A plain tuple, as files
# keep it.
LivenessPair = tuple[int, int]


class Traits(NamedTuple):
    """The indexed fields of an instance. Watches remember those from before a change."""

    id: str
    uid: int
    service: str
    node: str
    cluster: str
    labels: tuple[tuple[str, str], ...]
    revisions: tuple[str, ...]
    liveness: LivenessPair | None  # None: as the installation is set
    ready: bool
    allocated: bool
    silent: bool = False  # HQ has judged that no agent is heard


def traits_of(
    instance_id: str, meta: instance_pb2.InstanceMeta, spec: instance_pb2.InstanceSpec, pool: Pool, *, ready: bool
) -> Traits:
    """The traits of an instance. `instance_id` is meta.id, as the string that others hold too."""
    once = pool.setdefault
    service, node, cluster = meta.service_id, spec.node_name, meta.cluster
    by_key = meta.labels
    labels = _labels(tuple([(key, by_key[key]) for key in sorted(by_key)]), pool)
    revisions = tuple([revision.id for revision in spec.revision[:]])  # a slice costs a fifth of an iterator
    return Traits(
        instance_id,
        meta.uid,
        once(service, service),
        once(node, node),
        once(cluster, cluster),
        labels,
        once(revisions, revisions),
        liveness_pair(pair_of(spec), pool) if spec.HasField("liveness") else None,
        ready,
        spec.HasField("allocation"),
    )


def pool_traits(traits: tuple[Any, ...], pool: Pool) -> Traits:
    """The traits, sharing equal parts with others."""
    once = pool.setdefault
    instance_id, uid, service, node, cluster, labels, revisions, liveness, ready, allocated, silent = traits
    service, node, cluster = once(service, service), once(node, node), once(cluster, cluster)
    labels, revisions = _labels(labels, pool), once(revisions, revisions)
    pair = liveness_pair(liveness, pool) if liveness else None
    return Traits(instance_id, uid, service, node, cluster, labels, revisions, pair, ready, allocated, silent)


def pair_of(spec: instance_pb2.InstanceSpec) -> LivenessPair | None:
    """The liveness settings of a spec; None: as the installation is set."""
    if not spec.HasField("liveness"):
        return None
    settings = spec.liveness
    return settings.report_interval.ToMilliseconds(), settings.timeout.ToMilliseconds()


def liveness_pair(kept: tuple[int, int] | None, pool: Pool) -> LivenessPair | None:
    """The pair, one object for equal ones; None if nobody could be judged by what the record holds."""
    if kept is None or kept[0] <= 0 or kept[1] <= 0:
        return None
    known: LivenessPair = pool.setdefault(kept, kept)
    return known


def _labels(labels: tuple[tuple[str, str], ...], pool: Pool) -> tuple[tuple[str, str], ...]:
    """The labels, shared with equal sets; a set unlike any other still shares its keys and common pairs."""
    known: tuple[tuple[str, str], ...] | None = pool.get(labels)
    if known is not None or not labels:
        return known or labels
    count = len(pool)
    known = tuple([pool.get(pair) or _pool_label(pair, pool) for pair in labels])
    if len(pool) == count:
        pool[known] = known  # not `labels` itself: its strings would be kept beside those of the pool
    return known


def _pool_label(pair: tuple[str, str], pool: Pool) -> tuple[str, str]:
    key, value = pair
    found = (pool.setdefault(key, key), value)
    pool[found] = found
    return found


class Mark:
    """One revision's reporter as HQ knows it, in the order of the status record (a heartbeat names the position).

    Attributes:
        digest: of the report stored last, without its sequence; 0: none, so that the next report is written.
        heard_ms: wall time of the last report or heartbeat, display only; 0: never.
        liveness: the times that the reporter was given when it began; None: those of the installation.
    """

    __slots__ = ("digest", "expired", "heard_by", "heard_ms", "id", "incarnation", "liveness", "ready", "sequence")

    def __init__(self, record: storage_pb2.RevisionMark, pool: Pool) -> None:
        self.id: str = pool.setdefault(record.id, record.id)
        self.ready = record.ready
        self.heard_ms = record.heard_unix_ms
        self.incarnation = record.incarnation
        self.sequence = record.sequence
        self.digest = record.digest
        self.heard_by: str = pool.setdefault(record.heard_by, record.heard_by)
        self.expired = record.expired
        interval_ms = record.report_interval_ms
        self.liveness = liveness_pair((interval_ms, record.timeout_ms), pool) if interval_ms else None

    def report(self) -> tuple[int, int]:
        """Identity of the report stored last: HQ's own rewrites of a status keep it or void it, reports change it."""
        return self.incarnation, self.sequence

    def is_newer(self, old: Mark) -> bool:
        """Whether a report was written since; after HQ voided the last one, that may be the same report, repeated."""
        return self.report() != old.report() or bool(self.digest and not old.digest)

    def recall(self, before: Mark | None) -> None:
        """Take over what heartbeats told since this very report: no record holds that."""
        if before is not None and before.report() == self.report() and before.heard_ms > self.heard_ms:
            self.heard_ms, self.heard_by = before.heard_ms, before.heard_by

    def as_tuple(self) -> tuple[Any, ...]:
        """The whole mark, from which `from_tuple` makes it again."""
        heard = self.heard_ms, self.heard_by
        return self.id, self.ready, self.expired, *heard, self.incarnation, self.sequence, self.digest, self.liveness

    @classmethod
    def from_tuple(cls, kept: tuple[Any, ...], pool: Pool) -> Mark:
        """The mark that `as_tuple` described, perhaps in another process."""
        mark = cls.__new__(cls)
        name, mark.ready, mark.expired, mark.heard_ms, by, mark.incarnation, mark.sequence, mark.digest, liveness = kept
        mark.liveness = liveness_pair(liveness, pool) if liveness else None
        mark.id, mark.heard_by = pool.setdefault(name, name), pool.setdefault(by, by)
        return mark

    def record(self) -> storage_pb2.RevisionMark:
        """The record as it is stored."""
        return storage_pb2.RevisionMark(
            id=self.id,
            ready=self.ready,
            heard_unix_ms=self.heard_ms,
            incarnation=self.incarnation,
            sequence=self.sequence,
            digest=self.digest,
            heard_by=self.heard_by,
            expired=self.expired,
            report_interval_ms=self.liveness[0] if self.liveness else 0,
            timeout_ms=self.liveness[1] if self.liveness else 0,
        )


RECORD_BYTES = 64  # of a record besides its encoded contents: about its key, its envelope and etcd's overhead


class Undecodable(Exception):
    """A record's bytes are not what HQ writes."""


class Spec(NamedTuple):
    """A spec record with its modified and create revisions; its traits, unless they are yet to be decoded."""

    record: storage_pb2.SpecRecord
    created: int
    modified: int
    traits: Traits | None = None


class Status(NamedTuple):
    """A status record with its modified revision; an instance without one has modified = 0."""

    record: storage_pb2.StatusRecord
    modified: int


NO_STATUS = Status(storage_pb2.StatusRecord(), 0)


def decode_spec(value: bytes, created: int, modified: int) -> Spec:
    """The record, its traits still to be worked out. Raises Undecodable."""
    try:
        record = storage_pb2.SpecRecord.FromString(value)
    except DecodeError as error:
        raise Undecodable(str(error)) from error
    # One number, not two equal ones: most specs never change.
    modified = created if modified == created else modified
    return Spec(record, created, modified)


def decode_traits(instance_id: str, record: storage_pb2.SpecRecord, pool: Pool, *, ready: bool = False) -> Traits:
    """Raises Undecodable; also if the record is of another instance."""
    try:
        meta = instance_pb2.InstanceMeta.FromString(record.meta)
        spec = instance_pb2.InstanceSpec.FromString(record.spec)
    except DecodeError as error:
        raise Undecodable(str(error)) from error
    if meta.id != instance_id:
        raise Undecodable(f"the record is of instance {meta.id!r}")
    return traits_of(instance_id, meta, spec, pool, ready=ready)


def decode_secrets(value: bytes) -> storage_pb2.SecretsRecord:
    """Raises Undecodable; also if a descriptor in it cannot be decoded."""
    try:
        record = storage_pb2.SecretsRecord.FromString(value)
        for revision in record.revision:
            for descriptor in revision.descriptor:
                instance_pb2.SecretDescriptor.FromString(descriptor)
    except DecodeError as error:
        raise Undecodable(str(error)) from error
    return record


def decode_status(value: bytes, modified: int) -> Status:
    """Raises Undecodable; also if the status itself, which is otherwise served unseen, cannot be decoded."""
    try:
        record = storage_pb2.StatusRecord.FromString(value)
        instance_pb2.InstanceStatus.FromString(record.status)
    except DecodeError as error:
        raise Undecodable(str(error)) from error
    return Status(record, modified)
