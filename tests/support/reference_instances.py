"""What instances the store's own order of changes makes, version by version: a plain implementation to compare with.

It keeps every version and decodes everything; it knows no heartbeats.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from hq import keys as k
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from store.port import Batch, KeyChange

M = TypeVar("M", bound=Message)
State = dict[str, model.Instance]


class TrueEvent(NamedTuple):
    """What a watch has to say: kind is "put", "delete" or "left"."""

    version: int
    id: str
    kind: str


class _Records:
    """The records of one instance: the last good state of each, and where the newest one lies."""

    def __init__(self) -> None:
        self.spec: tuple[model.InstanceMeta, model.InstanceSpec] | None = None
        self.status: tuple[model.InstanceStatus, storage_pb2.StatusRecord] | None = None
        self.spec_at = self.status_at = 0
        self.stands = {k.SPEC: 0, k.STATUS: 0}
        self.bad: set[str] = set()

    def instance(self) -> model.Instance | None:
        if self.spec is None:
            return None
        made = model.Instance(meta=self.spec[0], spec=self.spec[1], status=model.InstanceStatus())
        made.meta.version, made.meta.status_version = self.spec_at, self.status_at
        if self.status is not None:
            made.status.CopyFrom(self.status[0])
            for mark in self.status[1].revision:
                if mark.heard_unix_ms:
                    made.status.heartbeat[mark.id].FromMilliseconds(mark.heard_unix_ms)
            if made.status.heartbeat:
                latest = max(made.status.heartbeat.values(), key=lambda time: time.ToNanoseconds())
                made.status.last_heartbeat_time.CopyFrom(latest)
        self._say_agent(made.status.agent)
        return made

    def _say_agent(self, agent: model.Condition) -> None:
        """Whether an agent is heard: as stored, if that judged the reports that are stored."""
        agent.SetInParent()
        record = self.status[1] if self.status is not None else storage_pb2.StatusRecord()
        reports = [(mark.incarnation, mark.sequence) for mark in record.revision]
        judged = [(one.incarnation, one.sequence) for one in record.agent.judged]
        is_heard = any(mark.ready or mark.digest for mark in record.revision)
        if record.HasField("agent") and judged == reports and not is_heard:
            agent.MergeFromString(record.agent.condition)
        elif any(mark.incarnation for mark in record.revision):
            agent.status = model.CONDITION_STATUS_TRUE


class Truth:
    """The instances at every version that was told.

    Attributes:
        version: told up to here.
        records: of all instances, as they lie in the store now.
    """

    def __init__(self, prefix: str = k.DEFAULT_PREFIX) -> None:
        self._keys = k.HqKeys(prefix)
        self._states: dict[int, State] = {0: {}}
        self._versions = [0]  # those of the states, in order
        self._changed: dict[int, set[str]] = {}
        self.records: dict[str, _Records] = {}
        self.secrets: dict[str, bytes] = {}
        self.version = 0

    def tell(self, batch: Batch) -> None:
        """Complete revisions, in order."""
        for change in batch.changes:
            self._take(change)
        self.version = batch.revision

    def at(self, version: int) -> State:
        """The instances as they were at a version."""
        return self._states[self._versions[bisect_right(self._versions, version) - 1]]

    def matching(self, wanted: pb.InstanceFilter, version: int | None = None) -> list[model.Instance]:
        """In order of ids."""
        state = self.at(self.version if version is None else version)
        return [state[i] for i in sorted(state) if passes(wanted, state[i])]

    def events(self, wanted: pb.InstanceFilter, after: int, upto: int) -> list[TrueEvent]:
        """What a watch with this filter has to say of the versions in (after, upto]."""
        events = []
        first, last = bisect_right(self._versions, after), bisect_right(self._versions, upto)
        for version in self._versions[max(1, first) : last]:
            before, now = self.at(version - 1), self.at(version)
            for instance_id in self._changed[version]:
                kind = _kind(wanted, before.get(instance_id), now.get(instance_id))
                if kind:
                    events.append(TrueEvent(version, instance_id, kind))
        return events

    def shown_older(self) -> set[str]:
        """Ids of instances that are shown as they were before a record that cannot be read."""
        return {i for i, records in self.records.items() if records.bad and records.spec is not None}

    def _take(self, change: KeyChange) -> None:
        kind, instance_id = self._keys.name(change.key)
        if kind == k.SECRETS:
            self.secrets.pop(instance_id, None)
            if change.value is not None:
                self.secrets[instance_id] = change.value
        if kind not in (k.SPEC, k.STATUS):
            return
        records = self.records.setdefault(instance_id, _Records())
        if self._take_record(records, kind, instance_id, change):
            state = dict(self.at(change.revision))
            state.pop(instance_id, None)
            instance = records.instance()
            if instance is not None:
                state[instance_id] = instance
            if change.revision not in self._states:
                self._versions.append(change.revision)
            self._states[change.revision] = state
            self._changed.setdefault(change.revision, set()).add(instance_id)

    @staticmethod
    def _take_record(records: _Records, kind: str, instance_id: str, change: KeyChange) -> bool:
        """Whether it could be read."""
        records.bad.discard(kind)
        records.stands[kind] = 0 if change.value is None else change.revision
        try:
            if kind == k.SPEC:
                records.spec = _spec(instance_id, change.value)
                records.spec_at = change.revision
            else:
                records.status = _status(change.value)
                records.status_at = change.revision if change.value is not None else 0
        except (DecodeError, ValueError):
            records.bad.add(kind)
            return False
        return True


def _spec(instance_id: str, value: bytes | None) -> tuple[model.InstanceMeta, model.InstanceSpec] | None:
    if value is None:
        return None
    record = storage_pb2.SpecRecord.FromString(value)
    meta, spec = model.InstanceMeta.FromString(record.meta), model.InstanceSpec.FromString(record.spec)
    if meta.id != instance_id:
        raise ValueError(meta.id)
    return meta, spec


def _status(value: bytes | None) -> tuple[model.InstanceStatus, storage_pb2.StatusRecord] | None:
    if value is None:
        return None
    record = storage_pb2.StatusRecord.FromString(value)
    return model.InstanceStatus.FromString(record.status), record


def _kind(wanted: pb.InstanceFilter, before: model.Instance | None, now: model.Instance | None) -> str:
    if now is not None and passes(wanted, now):
        return "put"
    if before is not None and passes(wanted, before):
        return "left" if now is not None else "delete"
    return ""


def passes(wanted: pb.InstanceFilter, instance: model.Instance) -> bool:
    """Whether an instance passes a filter, as the comments of the proto file have it."""
    ready = any(r.ready.status == model.CONDITION_STATUS_TRUE for r in instance.status.revision)
    return (
        _any_of(wanted.instance_id, [instance.meta.id])
        and _any_of(wanted.service_id, [instance.meta.service_id])
        and _any_of(wanted.node_name, [instance.spec.node_name])
        and _any_of(wanted.revision_id, [revision.id for revision in instance.spec.revision])
        and _any_of(wanted.cluster, [instance.meta.cluster])
        and all(instance.meta.labels.get(key) == value for key, value in wanted.labels.items())
        and all(_meets(instance.meta.labels, one) for one in wanted.label_requirement)
        and wanted.readiness in (0, 1 if ready else 2)
        and wanted.allocated in (0, 1 if instance.spec.HasField("allocation") else 2)
    )


def _meets(labels: Mapping[str, str], one: pb.LabelRequirement) -> bool:
    return {
        pb.LABEL_OPERATOR_IN: one.key in labels and labels[one.key] in one.value,
        pb.LABEL_OPERATOR_NOT_IN: one.key not in labels or labels[one.key] not in one.value,
        pb.LABEL_OPERATOR_EXISTS: one.key in labels,
        pb.LABEL_OPERATOR_DOES_NOT_EXIST: one.key not in labels,
    }[one.operator]


def _any_of(wanted: Iterable[str], held: list[str]) -> bool:
    words = list(wanted)
    return not words or any(word in words for word in held)
