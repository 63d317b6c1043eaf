"""A cache and a tracker without a store: records go in as a replica would feed them."""

from __future__ import annotations

from collections.abc import Callable

from hq.keys import HqKeys
from hq.liveness.deadlines import LivenessTimes, RevisionKey
from hq.liveness.tracker import Tracker
from hq.memory import statuses
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2
from serving.clock import ManualClock
from store.port import Batch, KeyChange

TRUE, FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE
R1, R2 = RevisionKey("a", "r1"), RevisionKey("a", "r2")
HEARD = statuses.ReportReceipt("replica-1", 5)


class CacheAndTracker:
    """A cache and a tracker fed with records, as a replica feeds them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.keys = HqKeys()
        self.cache = Cache(self.keys)
        self.tracker = Tracker(LivenessTimes(), self.clock)
        self.version = 1

    def create(self, instance_id: str = "a", uid: int = 7, node: str = "n1", revisions: str = "r1 r2") -> None:
        meta = instance_pb2.InstanceMeta(id=instance_id, uid=uid, service_id="svc")
        spec = instance_pb2.InstanceSpec(node_name=node)
        for revision in revisions.split():
            spec.revision.add(id=revision)
        record = storage_pb2.SpecRecord(meta=meta.SerializeToString(), spec=spec.SerializeToString())
        old = self.cache.get(instance_id)
        if old is None or old.traits.uid != uid:
            self.put(instance_id, record, statuses.empty_record(uid, 1, 0))
        else:
            self.put(instance_id, record, None)

    def delete(self, instance_id: str = "a") -> None:
        self.put(instance_id, None, None)

    def change(self, change: Callable[[statuses.StatusDraft], None], instance_id: str = "a") -> None:
        entry = self.entry(instance_id)
        draft = statuses.StatusDraft(entry.traits.uid, entry.status(), entry.marks)
        change(draft)
        self.put_status(instance_id, draft.record(9, self.clock.wall_ms()))

    def report(
        self, key: RevisionKey = R1, ready: int = TRUE, sequence: int = 1, incarnation: int = 1, message: str = ""
    ) -> None:
        status = instance_pb2.RevisionStatus(id=key.revision_id, incarnation=incarnation, sequence=sequence)
        status.ready.CopyFrom(instance_pb2.Condition(status=ready, message=message))  # type: ignore[arg-type]
        self.change(lambda draft: draft.report(status, HEARD, statuses.digest(status)), key.instance_id)

    def begin(self, key: RevisionKey = R1, incarnation: int = 2) -> None:
        self.change(lambda draft: draft.begin(key.revision_id, incarnation, HEARD), key.instance_id)

    def expire(self, key: RevisionKey = R1) -> None:
        receipt = instance_pb2.Receipt(decided_by="another replica")
        self.change(lambda draft: draft.expire(key.revision_id, receipt, 1), key.instance_id)

    def heartbeat(self, key: RevisionKey = R1) -> None:
        entry = self.entry(key.instance_id)
        position = [mark.id for mark in entry.marks].index(key.revision_id)
        self.tracker.heartbeat(entry, entry.heartbeat(position, self.clock.wall_ms(), "replica-2"), self.clock.now())

    def entry(self, instance_id: str = "a") -> Entry:
        entry = self.cache.get(instance_id)
        assert entry is not None
        return entry

    def put(
        self, instance_id: str, spec: storage_pb2.SpecRecord | None, status: storage_pb2.StatusRecord | None
    ) -> None:
        changes = {self.keys.spec(instance_id): spec}
        if status is not None or spec is None:
            changes[self.keys.status(instance_id)] = status  # type: ignore[assignment]
        self._apply({key: None if record is None else record.SerializeToString() for key, record in changes.items()})

    def put_status(self, instance_id: str, status: storage_pb2.StatusRecord) -> None:
        self._apply({self.keys.status(instance_id): status.SerializeToString()})

    def _apply(self, values: dict[bytes, bytes | None]) -> None:
        self.version += 1
        changes = [KeyChange(key, value, self.version, self.version) for key, value in values.items()]
        for event in self.cache.apply(Batch(self.version, changes)):
            self.tracker.observe(event)

    def silence_s(self, key: RevisionKey = R1) -> float | None:
        return self.tracker.deadlines.silence_s(key, self.clock.now())

    def suspend(self, *nodes: str) -> None:
        self.tracker.suspend(nodes, lambda node: [e for e in self.cache.entries() if e.traits.node == node])
