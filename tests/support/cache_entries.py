"""Entries and caches made by hand."""

from __future__ import annotations

from hq import keys as k
from hq.memory.cache import Cache
from hq.memory.entry import Entry, Spec, Status, build
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from store.port import Batch, KeyChange

KEYS = k.HqKeys()


def spec_value(instance_id: str, service: str = "s", uid: int = 1, text: str = "", **spec: object) -> bytes:
    """A spec record; `spec` are fields of InstanceSpec."""
    meta = model.InstanceMeta(id=instance_id, service_id=service, uid=uid, cluster="c")
    if text:
        meta.annotations["text"] = text
    encoded = model.InstanceSpec(**spec).SerializeToString()  # type: ignore[arg-type]
    return storage_pb2.SpecRecord(meta=meta.SerializeToString(), spec=encoded).SerializeToString()


def mark(revision: str = "r", *, ready: bool = True, sequence: int = 1, heard_ms: int = 0) -> storage_pb2.RevisionMark:
    return storage_pb2.RevisionMark(
        id=revision, ready=ready, incarnation=7, sequence=sequence, heard_unix_ms=heard_ms, heard_by="writer"
    )


def status_value(*marks: storage_pb2.RevisionMark) -> bytes:
    """A status record."""
    status = model.InstanceStatus()
    for each in marks:
        told = model.CONDITION_STATUS_TRUE if each.ready else model.CONDITION_STATUS_FALSE
        status.revision.add(id=each.id).ready.status = told
    record = storage_pb2.StatusRecord(status=status.SerializeToString(), revision=marks, uid=1)
    return record.SerializeToString()


def entry(instance_id: str, version: int = 1, text: str = "") -> Entry:
    """An instance without a status."""
    record = storage_pb2.SpecRecord.FromString(spec_value(instance_id, text=text))
    return build(instance_id, Spec(record, version, version), Status(storage_pb2.StatusRecord(), 0), None, {})


class Feed:
    """A cache that is told changes one after the other."""

    def __init__(self) -> None:
        self.cache = Cache(KEYS)
        self._created: dict[bytes, int] = {}

    def __call__(self, **values: bytes | None) -> list[tuple[Entry | None, Entry | None]]:
        """One transaction on instance `a`: spec, status, secrets. Returns before and after of each event."""
        return self.on("a", **values)

    def on(self, instance_id: str, **values: bytes | None) -> list[tuple[Entry | None, Entry | None]]:
        at = self.cache.version + 1
        changes = []
        for kind, value in values.items():
            key = KEYS.of(kind, instance_id)
            created = self._created.setdefault(key, at)
            changes.append(KeyChange(key, value, 0 if value is None else created, at))
            if value is None:
                del self._created[key]
        return [(event.before, event.after) for event in self.cache.apply(Batch(at, changes))]


def reported() -> Entry:
    """With two revisions and statuses."""
    feed = Feed()
    spec = spec_value("a", node_name="n", revision=[model.InstanceRevision(id=i) for i in ("r", "r-1")])
    feed(spec=spec, status=status_value(mark("r", heard_ms=1_000), mark("r-1", ready=False)))
    made = feed.cache.get("a")
    assert made is not None
    return made
