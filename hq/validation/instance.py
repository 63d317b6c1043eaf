"""Instances and revisions as they come in with a write."""

from collections.abc import Mapping
from itertools import islice

from hq.validation.faults import Faults, entry, member
from hq.validation.spec import note_revision, note_spec
from hq.validation.typed_fields import note_enums
from hq.validation.values import check_bytes, check_id, check_label_key, check_label_value
from hqpb.v1.instance_pb2 import Instance, InstanceMeta, InstanceRevision

MAX_RECORD_BYTES = 256 * 1024
MAX_LABELS = 64
MAX_ANNOTATION_BYTES = 16 * 1024

HQ_FIELDS = ("uid", "cluster", "creation_time", "modification_time", "version", "status_version")


def check_new_instance(instance: Instance, prefix: str = "instance") -> None:
    """Check the instance of CreateInstance: a whole one without anything that HQ or an agent sets.

    Raises:
        InvalidRequest: with the first violations by path.
    """
    faults = Faults()
    note_sizes(faults, *sizes_of_records(instance), prefix)
    note_unknown_parts(faults, instance, prefix)
    note_foreign_fields(faults, instance, prefix)
    note_instance(faults, instance, prefix)
    faults.raise_any()


def check_instance_update(instance: Instance, prefix: str = "instance", service_required: bool = True) -> None:
    """Check the instance of UpdateInstance and ApplyInstances: people send back what they read.

    So HQ's own fields of meta, secret_count and the status are neither checked nor refused. With a mask that
    leaves meta.service_id out, it may be empty: service_required=False.

    Raises:
        InvalidRequest: with the first violations by path.
    """
    faults = Faults()
    note_sizes(faults, *sizes_of_records(instance), prefix)
    note_unknown_parts(faults, instance, prefix)
    note_instance(faults, instance, prefix, service_required=service_required)
    faults.raise_any()


def check_revision(revision: InstanceRevision, prefix: str = "revision") -> None:
    """Check the revision of PutRevision, by itself: the resulting spec needs check_instance_update.

    Raises:
        InvalidRequest: with the first violations by path.
    """
    faults = Faults()
    note_sizes(faults, *sizes_of_revision(revision), prefix)
    note_revision(faults, revision, prefix)
    note_enums(faults, revision, prefix)
    faults.raise_any()


def note_instance(faults: Faults, instance: Instance, path: str, service_required: bool = True) -> None:
    note_meta(faults, instance.meta, member(path, "meta"), service_required=service_required)
    note_spec(faults, instance.spec, member(path, "spec"))


def note_unknown_parts(faults: Faults, instance: Instance, path: str) -> None:
    """Fields beside meta, spec and status have no record to be kept in (docs/decisions/017)."""
    known_bytes = sum(encoded_bytes(part.ByteSize()) for _, part in instance.ListFields())
    if unknown_bytes := instance.ByteSize() - known_bytes:
        told = f"{unknown_bytes} bytes of fields besides meta, spec and status are unknown to this version of HQ"
        faults.add(path, f"{told} and would be lost: remove them, or use a replica of a newer version")


def note_foreign_fields(faults: Faults, instance: Instance, path: str) -> None:
    given = {field.name for field, _ in instance.meta.ListFields()}
    for name in HQ_FIELDS:
        if name in given:
            faults.add(f"{member(path, 'meta')}.{name}", "is set by HQ: leave it empty in a new instance")
    if instance.HasField("status"):
        faults.add(member(path, "status"), "is reported by agents: leave it out of a new instance")
    for index, revision in enumerate(instance.spec.revision):
        # A copy of what FindInstances gave: the original's secrets would silently be lost.
        if revision.secret_count not in (0, len(revision.secret)):
            field = f"{member(path, 'spec')}.revision[{index}].secret_count"
            faults.add(field, "secret descriptors are missing: read them with GetRevision, or set this to 0")


def note_meta(faults: Faults, meta: InstanceMeta, path: str, service_required: bool) -> None:
    faults.note(check_id(meta.id, f"{path}.id"))
    if service_required or meta.service_id:
        faults.note(check_id(meta.service_id, f"{path}.service_id"))
    note_labels(faults, meta.labels, f"{path}.labels")
    note_annotations(faults, meta.annotations, f"{path}.annotations")


def note_labels(faults: Faults, labels: Mapping[str, str], path: str) -> None:
    note_count(faults, len(labels), path)
    for key, value in islice(labels.items(), MAX_LABELS):
        here = entry(path, key)
        faults.note(check_label_key(key, here) or check_label_value(value, here))


def note_annotations(faults: Faults, annotations: Mapping[str, str], path: str) -> None:
    note_count(faults, len(annotations), path)
    for key, value in islice(annotations.items(), MAX_LABELS):
        here = entry(path, key)
        faults.note(check_label_key(key, here) or check_bytes(value, here, MAX_ANNOTATION_BYTES))


def note_count(faults: Faults, count: int, path: str) -> None:
    if count > MAX_LABELS:
        faults.add(path, f"{count} entries are too many: keep at most {MAX_LABELS}")


def note_sizes(faults: Faults, record_bytes: int, secrets_bytes: int, path: str) -> None:
    """Oversized input is refused at once: nothing else in it is looked at."""
    limit = f"keep within {MAX_RECORD_BYTES}"
    if record_bytes > MAX_RECORD_BYTES:
        faults.add(path, f"{record_bytes} bytes are too large: {limit}, secret descriptors not counted")
    if secrets_bytes > MAX_RECORD_BYTES:
        faults.add(path, f"{secrets_bytes} bytes of secret descriptors are too large: {limit}")
    faults.raise_any()


def sizes_of_records(instance: Instance) -> tuple[int, int]:
    """Bytes of meta and spec without secret descriptors, and bytes of these, both encoded."""
    secrets_bytes = sum(sizes_of_revision(revision)[1] for revision in instance.spec.revision)
    record_bytes = instance.meta.ByteSize() + instance.spec.ByteSize() - secrets_bytes
    if record_bytes > MAX_RECORD_BYTES:
        record_bytes -= bytes_of_hq_fields(instance)
    return record_bytes, secrets_bytes


def bytes_of_hq_fields(instance: Instance) -> int:
    """Bytes that HQ added, which do not count: an instance of full size may be sent back as it was read."""
    others = InstanceMeta()
    others.CopyFrom(instance.meta)
    for name in HQ_FIELDS:
        others.ClearField(name)
    counts_bytes = 2 * sum(revision.secret_count > 0 for revision in instance.spec.revision)
    return instance.meta.ByteSize() - others.ByteSize() + counts_bytes


def sizes_of_revision(revision: InstanceRevision) -> tuple[int, int]:
    """Bytes without secret descriptors, and bytes of these, both encoded."""
    secrets_bytes = sum(encoded_bytes(secret.ByteSize()) for secret in revision.secret)
    return revision.ByteSize() - secrets_bytes, secrets_bytes


def encoded_bytes(size_bytes: int) -> int:
    """Size of a submessage with its tag (of a field number up to 15) and length."""
    return 1 + max(1, (size_bytes.bit_length() + 6) // 7) + size_bytes
