"""Marks: random words in what clients write, so that each value says which call wrote it.

A write of a whole instance carries its marker as an annotation, one of a single revision in the environment of its
first container, a report in the message of its `installed` condition (HQ itself only touches `ready`).

The mark of a record is all of these in one string: `annotation;revision=marker;revision=marker`.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from hq import keys as k
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from store.port import KeyChange, Record
from tests.checker.history import Item, Raw, Seen, Stored

ANNOTATION, VARIABLE = "marker", "MARKER"


def mark_instance(instance: model.Instance, marker: str) -> model.Instance:
    """Put a marker into what is to be created, updated or applied; returns it."""
    instance.meta.annotations[ANNOTATION] = marker
    return instance


def mark_revision(revision: model.InstanceRevision, marker: str) -> model.InstanceRevision:
    """Put a marker into a revision that is to be put; returns it."""
    if not revision.container:
        revision.container.add(name="main")
    revision.container[0].environment[VARIABLE] = marker
    return revision


def mark_report(report: model.RevisionStatus, marker: str) -> model.RevisionStatus:
    """Put a marker into a report; returns it."""
    report.installed.message = marker
    return report


def spec_mark(meta: model.InstanceMeta, spec: model.InstanceSpec) -> str:
    marks = [meta.annotations.get(ANNOTATION, "")]
    for revision in spec.revision:
        word = revision.container[0].environment.get(VARIABLE, "") if revision.container else ""
        marks.append(f"{revision.id}={word}")
    return ";".join(marks)


def status_mark(status: model.InstanceStatus) -> str:
    return ";".join(f"{revision.id}={revision.installed.message}" for revision in status.revision)


def item_of(instance: model.Instance) -> Item:
    """What an answer shows of an instance."""
    meta = instance.meta
    return Item(meta.version, meta.status_version, spec_mark(meta, instance.spec), status_mark(instance.status))


def seen_of(event: pb.WatchEvent) -> Seen:
    """What an event of a watch shows."""
    if event.HasField("put"):
        item = item_of(event.put)
        return Seen(
            "put", event.put.meta.id, event.version, item.status_version, item.spec_mark, item.status_mark, item.version
        )
    kind = "delete" if event.HasField("delete") else "left"
    return Seen(kind, (event.delete if kind == "delete" else event.left).id, event.version)


def words_of(mark: str) -> list[str]:
    """The markers in a mark."""
    return [word for part in mark.split(";") if (word := part.rpartition("=")[2])]


def by_revision(mark: str) -> dict[str, str]:
    """The markers of single revisions in a mark, in the record's order."""
    return {revision: word for part in mark.split(";") if part for revision, sep, word in [part.partition("=")] if sep}


# --- what lies in etcd ------------------------------------------------------------------------------------------------


def raw_of(revision: int, changes: list[KeyChange], keys: k.HqKeys, seen_ns: int = 0) -> Raw:
    """One revision of etcd: the changes of it."""
    return Raw(revision, tuple(stored_of(change, keys) for change in changes), seen_ns)


def stored_of(change: KeyChange | Record, keys: k.HqKeys) -> Stored:
    """One key. The name is the one below the prefix, e.g. `spec/web-1`."""
    name = change.key[len(keys.prefix) :].decode("utf-8", "replace")
    if change.value is None:
        return Stored("delete", name, change[3], 0)
    return Stored("put", name, change[3], change.created, _marks(keys.name(change.key).kind, change.value))


def _marks(kind: str, value: bytes) -> tuple[str, ...]:
    """Marks of a spec (uid, mark, service, node) or of a status (uid, mark, T or F, and what HQ expired).

    Of heartbeats: `uid:status version:position` each.
    """
    try:
        if kind == k.SPEC:
            record = storage_pb2.SpecRecord.FromString(value)
            meta, spec = model.InstanceMeta.FromString(record.meta), model.InstanceSpec.FromString(record.spec)
            return f"{meta.uid:x}", spec_mark(meta, spec), meta.service_id, spec.node_name
        if kind == k.STATUS:
            return _status_marks(storage_pb2.StatusRecord.FromString(value))
        if kind == k.HEARTBEATS:
            heartbeats = storage_pb2.BeatBatch.FromString(value)
            rows = zip(heartbeats.uid, heartbeats.status_version, heartbeats.position, strict=True)
            return tuple(f"{uid:x}:{version}:{position}" for uid, version, position in rows)
        if kind == k.EPOCH:
            return (storage_pb2.EpochRecord.FromString(value).epoch,)
    except DecodeError:
        return ("undecodable",)
    return ()


def _status_marks(record: storage_pb2.StatusRecord) -> tuple[str, ...]:
    status = model.InstanceStatus.FromString(record.status)
    ready = any(revision.ready.status == model.CONDITION_STATUS_TRUE for revision in status.revision)
    expired = ";".join(mark.id for mark in record.revision if mark.expired)
    return f"{record.uid:x}", status_mark(status), "T" if ready else "F", expired
