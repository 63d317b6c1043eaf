"""The snapshots of a service in the store: how many are kept, and what goes first."""

from __future__ import annotations

from typing import Final

from control import Change, Refused
from nanny.records import kinds
from nanny.records.service_update import ServiceUpdate
from nannypb.v1 import records_pb2
from nannypb.v1.records_pb2 import ServiceRecord

MAX_SNAPSHOTS: Final = 200
MAX_CHUNKS: Final = 256  # of all snapshots of a service: 64 MiB, so that no service fills the store


def delete_snapshot(change: Change, service_id: str, snapshot: str) -> None:
    """Delete a snapshot and its content."""
    key = kinds.of_snapshot(service_id, snapshot)
    stored = change.get(kinds.SNAPSHOT, key)
    change.delete(kinds.SNAPSHOT, key)
    for number in range(stored.chunks if stored else 0):
        chunk = kinds.of_chunk(service_id, snapshot, number)
        change.get(kinds.CHUNK, chunk)
        change.delete(kinds.CHUNK, chunk)
    change.get(kinds.ROLLOUT, key)
    change.delete(kinds.ROLLOUT, key)


def store_snapshot(update: ServiceUpdate, added: records_pb2.SnapshotRecord) -> None:
    """Put a snapshot, made now, whose parent is HEAD."""
    key = kinds.of_snapshot(update.service_id, added.snapshot.id)
    update.change.get(kinds.SNAPSHOT, key)
    stored = records_pb2.SnapshotRecord()
    stored.CopyFrom(added)
    stored.snapshot.parent = update.record.head
    stored.snapshot.created.time.CopyFrom(update.event.by.time)
    update.change.put(kinds.SNAPSHOT, key, stored)


def find_copies(update: ServiceUpdate, first: str) -> list[str]:
    """Snapshots on the nodes with the content of `first`: itself, and its restarts."""
    found = []
    for snapshot in update.before.tuples:
        stored = update.change.get(kinds.SNAPSHOT, kinds.of_snapshot(update.service_id, snapshot))
        if snapshot == first or (stored is not None and stored.snapshot.restart_of == first):
            found.append(snapshot)
    return found


def register_snapshot(update: ServiceUpdate, snapshot: str, chunks: int) -> None:
    """Add a snapshot as the newest; drop the oldest ones that nothing refers to."""
    for number in range(chunks):
        if update.change.get(kinds.CHUNK, kinds.of_chunk(update.service_id, snapshot, number)) is None:
            raise Refused(f"the content of snapshot {snapshot} was removed meanwhile: send it again", "ABORTED")
    known, sizes = [one for one in update.record.known if one != snapshot] + [snapshot], update.record.chunks
    sizes[snapshot] = chunks
    used = {*update.before.tuples, update.before.last_active, update.before.head, snapshot}
    for old in [one for one in known if one not in used]:
        if len(known) <= MAX_SNAPSHOTS and _count_chunks(update.record, known) <= MAX_CHUNKS:
            break
        known.remove(old)
        sizes.pop(old, None)
        delete_snapshot(update.change, update.service_id, old)
    if _count_chunks(update.record, known) > MAX_CHUNKS:
        raise Refused("the contents of its snapshots in use take too much of the store: set targets to DESTROYED first")
    update.record.known[:] = known


def _count_chunks(record: ServiceRecord, known: list[str]) -> int:
    return sum(record.chunks.get(one, 1) for one in known)


def check_snapshot(update: ServiceUpdate, snapshot: str) -> None:
    """Raise Refused if the service has no such snapshot."""
    if update.change.get(kinds.SNAPSHOT, kinds.of_snapshot(update.service_id, snapshot)) is None:
        raise Refused(f"service {update.service_id} has no snapshot {snapshot}", "NOT_FOUND")
