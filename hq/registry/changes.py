"""How a write changes an instance, and the records it is stored as. Pure: times and random numbers are passed in.

An `InstanceDraft` is an instance taken apart for writing: meta and spec without anything that belongs to the status,
and the secret descriptors, which are kept in a record of their own. A `WritePlan` is what will be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hq.memory import statuses
from hq.memory.entry import NO_STATUS, Entry, Spec, Status, build
from hq.memory.record import Undecodable, decode_secrets
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2
from serving.calls import current
from serving.errors import NotFound, StoreUnavailable, invalid
from serving.rights.access import SecretName

Secrets = dict[str, list[bytes]]  # encoded descriptors by revision id

DEFAULT_PATHS = (
    "meta.service_id",
    "meta.labels",
    "meta.annotations",
    "spec.resource_request",
    "spec.revision",
    "spec.liveness",
)
SCHEDULER_PATHS = ("spec.allocation", "spec.node_name")
WEIGHT_PATH = "spec.weight"
SECRET_PATH = "spec.revision.secret"  # a path, not a password
ALL_PATHS = (*DEFAULT_PATHS, *SCHEDULER_PATHS, WEIGHT_PATH, SECRET_PATH)
_READY = instance_pb2.REVISION_TARGET_READY
_INSTALLED = instance_pb2.REVISION_TARGET_INSTALLED


@dataclass(slots=True)
class InstanceDraft:
    """An instance as it will be stored, except its status."""

    meta: instance_pb2.InstanceMeta
    spec: instance_pb2.InstanceSpec
    secrets: Secrets = field(default_factory=dict)

    def copy(self) -> InstanceDraft:
        meta, spec = instance_pb2.InstanceMeta(), instance_pb2.InstanceSpec()
        meta.CopyFrom(self.meta)
        spec.CopyFrom(self.spec)
        return InstanceDraft(meta, spec, dict(self.secrets))

    def revision_ids(self) -> list[str]:
        return [revision.id for revision in self.spec.revision]

    def size_bytes(self) -> int:
        """Encoded, with the secret descriptors."""
        kept = sum(len(descriptor) for descriptors in self.secrets.values() for descriptor in descriptors)
        return self.meta.ByteSize() + self.spec.ByteSize() + kept

    def check_input(self) -> instance_pb2.Instance:
        """The input wrapped in an instance, for checks that take a whole one."""
        return instance_pb2.Instance(meta=self.meta, spec=self.spec)


def new_draft(instance: instance_pb2.Instance, uid: int, cluster: str, wall_ms: int) -> InstanceDraft:
    """A new instance."""
    meta = instance_pb2.InstanceMeta()
    meta.CopyFrom(instance.meta)
    meta.uid, meta.cluster = uid, cluster
    meta.creation_time.FromMilliseconds(wall_ms)
    draft = InstanceDraft(meta, instance_pb2.InstanceSpec())
    draft.spec.CopyFrom(instance.spec)
    _take_secrets_out(draft, old={}, clear=True)
    return draft


def updated_draft(old: InstanceDraft, new: instance_pb2.Instance, mask: Sequence[str] | None) -> InstanceDraft:
    """The draft with the parts replaced that the mask names; no mask means what UpdateInstanceRequest says.

    Raises:
        InvalidRequest: the mask names something that cannot be written.
    """
    paths = _paths(new, mask)
    draft = old.copy()
    _update_meta(draft.meta, new.meta, paths)
    _update_spec(draft.spec, new.spec, paths)
    _take_secrets_out(draft, old.secrets, clear=SECRET_PATH in paths)
    return draft


def _update_meta(meta: instance_pb2.InstanceMeta, new: instance_pb2.InstanceMeta, paths: frozenset[str]) -> None:
    if "meta.service_id" in paths:
        meta.service_id = new.service_id
    for name, held, given in (("labels", meta.labels, new.labels), ("annotations", meta.annotations, new.annotations)):
        if f"meta.{name}" in paths:
            held.clear()
            held.update(given)


def _update_spec(spec: instance_pb2.InstanceSpec, new: instance_pb2.InstanceSpec, paths: frozenset[str]) -> None:
    for name in ("resource_request", "allocation", "liveness", "weight"):
        if f"spec.{name}" in paths:
            spec.ClearField(name)
            if new.HasField(name):
                spec.MergeFrom(instance_pb2.InstanceSpec(**{name: getattr(new, name)}))
    if "spec.node_name" in paths:
        spec.node_name = new.node_name
    if "spec.revision" in paths:
        del spec.revision[:]
        spec.revision.extend(new.revision)
    elif SECRET_PATH in paths:
        _copy_secrets(spec, new)


def with_revision(old: InstanceDraft, revision: instance_pb2.InstanceRevision, *, clear_secrets: bool) -> InstanceDraft:
    """The draft with this revision added or replaced; if its target is READY, any other READY one becomes INSTALLED."""
    draft = old.copy()
    revisions = list(draft.spec.revision)
    if revision.target == _READY:
        for other in revisions:
            if other.id != revision.id and other.target == _READY:
                other.target = _INSTALLED
    kept = [revision if other.id == revision.id else other for other in revisions]
    if revision.id not in old.revision_ids():
        kept.append(revision)
    del draft.spec.revision[:]
    draft.spec.revision.extend(kept)
    _take_secrets_out(draft, old.secrets, clear=clear_secrets, only=revision.id)
    return draft


def without_revision(old: InstanceDraft, revision_id: str) -> InstanceDraft:
    """The draft without this revision. Raises NotFound."""
    if revision_id not in old.revision_ids():
        raise NotFound(f"instance {old.meta.id} has no revision {revision_id}")
    draft = old.copy()
    kept = [revision for revision in draft.spec.revision if revision.id != revision_id]
    del draft.spec.revision[:]
    draft.spec.revision.extend(kept)
    draft.secrets.pop(revision_id, None)
    return draft


def same(a: InstanceDraft, b: InstanceDraft) -> bool:
    """Whether storing b in place of a would change nothing."""
    return a.meta == b.meta and a.spec == b.spec and a.secrets == b.secrets


def secrets_of(value: bytes | None) -> Secrets:
    """Decode a secrets record. Raises StoreUnavailable: it is broken."""
    try:
        record = decode_secrets(value) if value else storage_pb2.SecretsRecord()
    except Undecodable as error:
        raise StoreUnavailable(
            "cannot decode the secret descriptors of this instance (see `hqctl quarantine`): save it with "
            "`hqctl get ID -o yaml`, delete it, and create it again with its secrets"
        ) from error
    return {revision.id: list(revision.descriptor) for revision in record.revision}


def encode_secrets(secrets: Secrets, write_id: int) -> bytes:
    """The secrets record, encoded; empty if there are no secrets."""
    if not secrets:
        return b""
    revisions = [storage_pb2.RevisionSecrets(id=i, descriptor=d) for i, d in sorted(secrets.items())]
    return storage_pb2.SecretsRecord(write_id=write_id, revision=revisions).SerializeToString()


def _paths(new: instance_pb2.Instance, mask: Sequence[str] | None) -> frozenset[str]:
    if not mask:
        given = [path for path in (*SCHEDULER_PATHS, WEIGHT_PATH) if _is_given(new, path)]
        return frozenset((*DEFAULT_PATHS, *given))
    paths: set[str] = set()
    for path in mask:
        named = [known for known in ALL_PATHS if path in ("*", known) or known.startswith(path + ".")]
        # `spec` means all of the spec, but secrets are cleared only by naming their own path (or `*`).
        if path not in ("*", SECRET_PATH):
            named = [known for known in named if known != SECRET_PATH]
        if not named:
            raise invalid("update_mask", f"{path!r} cannot be written; writable are {', '.join(ALL_PATHS)}")
        paths.update(named)
    return frozenset(paths)


def _is_given(new: instance_pb2.Instance, path: str) -> bool:
    name = path.removeprefix("spec.")
    return new.spec.HasField(name) if name != "node_name" else bool(new.spec.node_name)


def _copy_secrets(spec: instance_pb2.InstanceSpec, new: instance_pb2.InstanceSpec) -> None:
    given = {revision.id: revision for revision in new.revision}
    for revision in spec.revision:
        del revision.secret[:]
        if revision.id in given:
            revision.secret.extend(given[revision.id].secret)


def _take_secrets_out(draft: InstanceDraft, old: Secrets, *, clear: bool, only: str | None = None) -> None:
    """Move the descriptors out of the spec. A revision without any keeps its old ones, unless told to clear them."""
    secrets: Secrets = {}
    for revision in draft.spec.revision:
        told = [descriptor.SerializeToString() for descriptor in revision.secret]
        keeps = not told and not (clear and only in (None, revision.id))
        kept = old.get(revision.id, []) if keeps else told
        if kept:
            secrets[revision.id] = kept
        del revision.secret[:]
        revision.secret_count = len(kept)
    draft.secrets = secrets


def new_secrets(new: Secrets, old: Secrets) -> list[SecretName]:
    """The secrets that revisions did not name before."""
    found = []
    for revision_id, descriptors in new.items():
        for encoded in descriptors:
            if encoded not in old.get(revision_id, ()):
                secret = instance_pb2.SecretDescriptor.FromString(encoded)
                path = f"{secret.id}/{secret.key}" if secret.key else secret.id
                found.append(SecretName(secret.name, secret.provider, path))
    return found


def has_dropped_revision(old: Iterable[str], new: Iterable[str]) -> bool:
    """Whether a revision went away."""
    return not set(old) <= set(new)


class WritePlan(NamedTuple):
    """The records to write for one instance. `status` is None if it stays as it is."""

    draft: InstanceDraft
    status: storage_pb2.StatusRecord | None
    request_id: str = ""


def creation(draft: InstanceDraft, request_id: str, wall_ms: int) -> WritePlan:
    """Plan the records of a new instance; its status is empty."""
    return WritePlan(draft, statuses.empty_record(draft.meta.uid, 0, wall_ms), request_id)


def change(entry: Entry, old: InstanceDraft, new: InstanceDraft, wall_ms: int, epoch_at: int) -> WritePlan:
    """Plan a change of the spec, and of the status if that would contradict the new spec."""
    new.meta.modification_time.FromMilliseconds(wall_ms)
    moved = new.spec.node_name != old.spec.node_name
    if not moved and not has_dropped_revision(old.revision_ids(), new.revision_ids()):
        return WritePlan(new, None, entry.request_id)
    status = statuses.status_draft_of(entry, epoch_at)
    if moved:
        status.clear()
    else:
        status.keep(new.revision_ids())
    return WritePlan(new, status.record(0, wall_ms), entry.request_id)


def as_stored(plan: WritePlan, entry: Entry | None, version: int) -> Entry:
    """The instance as it was written at a version."""
    record = spec_record(plan, 0)
    spec = Spec(record, entry.spec_created if entry else version, version)
    status = entry.stored_records()[1] if entry else NO_STATUS
    if plan.status is not None:
        status = Status(plan.status, version)
    return build(plan.draft.meta.id, spec, status, entry, {})


def spec_record(plan: WritePlan, write_id: int) -> storage_pb2.SpecRecord:
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
