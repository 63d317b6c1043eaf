"""An instance as it should be: a description applied to what HQ holds of it. Pure.

What the description does not name stays as it is, unknown fields included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping

from descriptions.description import Description, Placement
from descriptions.held import HeldInstance
from descriptions.revisions import Definition
from hqpb.v1 import instance_pb2

READY = instance_pb2.REVISION_TARGET_READY
INSTALLED = instance_pb2.REVISION_TARGET_INSTALLED
OWNED = "nanny.v1/generation"
"""Annotation of instances that the Nanny server owns."""


def desired_instance(
    description: Description, placement: Placement, held: HeldInstance | None
) -> instance_pb2.Instance:
    """The instance to store; meta.version is that of the existing one.

    Secret descriptors that were neither read nor described are absent in it, which leaves them unchanged.
    """
    wanted = instance_pb2.Instance()
    if held is not None:
        wanted.CopyFrom(held.instance)
    wanted.meta.id, wanted.meta.service_id = placement.id, description.service
    _merge_entries(wanted.meta.labels, {**description.labels, **placement.labels})
    _merge_entries(wanted.meta.annotations, description.annotations)
    if description.resources is not None:
        wanted.spec.resource_request.CopyFrom(description.resources)
    if description.liveness is not None:
        wanted.spec.liveness.CopyFrom(description.liveness)
        if not description.liveness.ListFields():
            wanted.spec.ClearField("liveness")
    if placement.allocation is not None:
        wanted.spec.allocation.CopyFrom(placement.allocation)
    if placement.weight is not None:
        wanted.spec.weight = placement.weight
    if placement.node:
        wanted.spec.node_name = placement.node
    _set_revisions(wanted.spec, description)
    return wanted


def owned_by_nanny(held: HeldInstance) -> str:
    """Why these commands leave an instance alone; empty: they may change it."""
    if OWNED not in held.instance.meta.annotations:
        return ""
    return "belongs to the Nanny server, which would change it back: use `nanny snapshot add` and `nanny target`"


def needs_secrets(description: Description, held: HeldInstance) -> bool:
    """Whether descriptors in HQ have to be read to decide what to do."""
    telling = {definition.id for definition in description.definitions if definition.tells_secrets}
    return any(held.secret_counts.get(revision) for revision in telling)


def retarget(revisions: Iterable[instance_pb2.InstanceRevision], ready: str) -> None:
    """Make one revision the READY one. The others keep their target unless it was READY."""
    for revision in revisions:
        if revision.id == ready:
            revision.target = READY
        elif revision.target == READY:
            revision.target = INSTALLED


def ready_of(instance: instance_pb2.Instance) -> str:
    """The revision wanted READY; empty: none."""
    return next((revision.id for revision in instance.spec.revision if revision.target == READY), "")


def absent_of(description: Description, wanted: instance_pb2.Instance) -> list[str]:
    """Revisions that shall be READY or stay INSTALLED, and that neither HQ nor the description knows."""
    there = {revision.id for revision in wanted.spec.revision}
    return [revision for revision in (description.ready, *description.installed) if revision and revision not in there]


def _merge_entries(there: MutableMapping[str, str], told: Mapping[str, str | None]) -> None:
    for key, value in told.items():
        if value is not None:
            there[key] = value
        elif key in there:
            del there[key]


def _set_revisions(spec: instance_pb2.InstanceSpec, description: Description) -> None:
    for definition in description.definitions:
        there = next((revision for revision in spec.revision if revision.id == definition.id), None)
        _define(spec.revision.add(target=INSTALLED) if there is None else there, definition)
    kept = [revision for revision in spec.revision if not _is_dropped(revision.id, description)]
    if len(kept) < len(spec.revision):
        copies = [_copy(revision) for revision in kept]
        del spec.revision[:]
        spec.revision.extend(copies)
    if description.ready:
        retarget(spec.revision, description.ready)
    for revision in spec.revision:
        if revision.id in description.installed:
            revision.target = INSTALLED


def _is_dropped(revision_id: str, description: Description) -> bool:
    return revision_id in description.drop or (description.drop_others and revision_id not in description.kept)


def _define(revision: instance_pb2.InstanceRevision, definition: Definition) -> None:
    """Replace the content, field by field: fields of a later API are kept."""
    keep = {"target"} if definition.tells_secrets else {"target", "secret"}
    for descriptor in instance_pb2.InstanceRevision.DESCRIPTOR.fields:
        if descriptor.name not in keep:
            revision.ClearField(descriptor.name)
    revision.MergeFrom(definition.message)


def _copy(revision: instance_pb2.InstanceRevision) -> instance_pb2.InstanceRevision:
    copy = instance_pb2.InstanceRevision()
    copy.CopyFrom(revision)
    return copy
