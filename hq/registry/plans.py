"""What a write puts into the store: the records of one instance, and what memory will make of them."""

from __future__ import annotations

from typing import NamedTuple

from hq.memory import statuses
from hq.memory.entry import NO_STATUS, Entry, Spec, Status, build
from hq.registry import changes
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2
from serving.calls import current


class Plan(NamedTuple):
    """What is to be written of one instance. `status` is None where it stays as it is."""

    draft: changes.Draft
    status: storage_pb2.StatusRecord | None
    request_id: str = ""


def created(draft: changes.Draft, request_id: str, wall_ms: int) -> Plan:
    """A new instance comes with an empty status."""
    return Plan(draft, statuses.empty_record(draft.meta.uid, 0, wall_ms), request_id)


def changed(entry: Entry, old: changes.Draft, new: changes.Draft, wall_ms: int, epoch_at: int) -> Plan:
    """The status is rewritten with the spec where one would contradict the other."""
    new.meta.modification_time.FromMilliseconds(wall_ms)
    moved = new.spec.node_name != old.spec.node_name
    if not moved and not changes.dropped(old.revision_ids(), new.revision_ids()):
        return Plan(new, None, entry.request_id)
    status = statuses.draft_of(entry, epoch_at)
    if moved:
        status.clear()
    else:
        status.keep(new.revision_ids())
    return Plan(new, status.record(0, wall_ms), entry.request_id)


def as_stored(plan: Plan, entry: Entry | None, version: int) -> Entry:
    """The instance as it was written at a version."""
    record = spec_record(plan, 0)
    spec = Spec(record, entry.spec_created if entry else version, version)
    status = entry.stored()[1] if entry else NO_STATUS
    if plan.status is not None:
        status = Status(plan.status, version)
    return build(plan.draft.meta.id, spec, status, entry, {})


def spec_record(plan: Plan, write_id: int) -> storage_pb2.SpecRecord:
    """The record of meta and spec."""
    meta = plan.draft.meta
    if meta.version or meta.status_version:  # they belong to the tail of a frame
        copy = instance_pb2.InstanceMeta()
        copy.CopyFrom(meta)
        copy.ClearField("version")
        copy.ClearField("status_version")
        meta = copy
    if not meta.HasField("modification_time"):
        meta.modification_time.CopyFrom(meta.creation_time)
    return storage_pb2.SpecRecord(
        write_id=write_id,
        request_id=plan.request_id,
        meta=meta.SerializeToString(deterministic=True),
        spec=plan.draft.spec.SerializeToString(deterministic=True),
        call_id=current.request_id(),
    )
