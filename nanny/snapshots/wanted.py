"""An instance as HQ should hold it for one snapshot, changed from how it holds it now. Pure.

Each function returns the instance to store, with the version that it was decided on; None: no change is needed.
`stamp` is what it is marked with: see `stamp_of`.
"""

from __future__ import annotations

import hashlib
from typing import Final

from descriptions.desired import OWNED, desired_instance
from descriptions.held import HeldInstance
from hqclient.allocations import restarting_part
from hqpb.v1 import instance_pb2
from nanny.rollout.views import Key
from nanny.snapshots.content import Content
from nanny.snapshots.weights import set_share

READY: Final = instance_pb2.REVISION_TARGET_READY
INSTALLED: Final = instance_pb2.REVISION_TARGET_INSTALLED
CREATED: Final[int] = instance_pb2.REVISION_TARGET_CREATED
_DIGITS: Final = 18  # of a generation: orders after it must still fit into its record
OWNER: Final = OWNED
"""Annotation of instances that a Nanny owns; its value is the stamp of the order that wrote them last."""


def target_of(instance: instance_pb2.Instance, revision_id: str) -> int | None:
    """Return a revision's target in HQ; None: HQ does not hold it."""
    return next((revision.target for revision in instance.spec.revision if revision.id == revision_id), None)


def is_between(
    instance: instance_pb2.Instance, revision_id: str, *, lowest: int | None = None, highest: int | None = None
) -> bool:
    """Whether the revision has a target in this range, so that nothing has to be written."""
    there = target_of(instance, revision_id)
    if there is None:
        return False
    return (lowest is None or rank_of(there) >= rank_of(lowest)) and (
        highest is None or rank_of(there) <= rank_of(highest)
    )


def with_revision(
    content: Content, key: Key, held: HeldInstance | None, target: int, stamp: str
) -> instance_pb2.Instance | None:
    """Ensure that the snapshot's revision is there with at least this target. What runs is not touched.

    A new instance gets everything in the description; an existing one gets labels and ports only when it is
    switched.
    """
    if held is None:
        made = desired_instance(content.description, content.placements[key], None)
        _retarget(made, content.revision_id, target)
        return _stamp_owner(made, stamp)
    wanted = _copy(held.instance)
    there = next((revision for revision in wanted.spec.revision if revision.id == content.revision_id), None)
    if there is None:
        there = wanted.spec.revision.add()
        there.CopyFrom(content.revision)
        there.target = target  # type: ignore[assignment]
    elif rank_of(there.target) < rank_of(target):
        there.target = target  # type: ignore[assignment]
    return _stamp_if_different(held, wanted, stamp)


def switched_instance(
    content: Content, key: Key, held: HeldInstance | None, stamp: str, share: int | None = None
) -> instance_pb2.Instance | None:
    """Make the snapshot's revision the READY one, with its labels and ports.

    Args:
        share: of its weight, in percent; None: the share that it has.
    """
    wanted = desired_instance(content.description, content.placements[key], held)
    for revision in wanted.spec.revision:
        if revision.id != content.revision_id and revision.target == READY:
            revision.target = INSTALLED
    _retarget(wanted, content.revision_id, READY)
    set_share(wanted, held.instance if held is not None else None, share)
    return _stamp_owner(wanted, stamp) if held is None else _stamp_if_different(held, wanted, stamp)


def switch_restarts(content: Content, key: Key, held: HeldInstance) -> bool:
    """Whether what runs depends on anything that `switched_instance` would change: not on labels, for example."""
    wanted = desired_instance(content.description, content.placements[key], held)
    _retarget(wanted, content.revision_id, READY)
    before, after = _comparable(held, wanted).spec, wanted.spec
    return (
        before.node_name != after.node_name
        or restarting_part(before.allocation) != restarting_part(after.allocation)
        or _running(before) != _running(after)
    )


def _running(spec: instance_pb2.InstanceSpec) -> list[instance_pb2.InstanceRevision]:
    return [revision for revision in spec.revision if revision.target == READY]


def lowered_instance(
    revision_id: str, held: HeldInstance, target: int | None, stamp: str
) -> instance_pb2.Instance | None:
    """Lower a revision to at most this target; None: remove it."""
    wanted = _copy(held.instance)
    there = next((revision for revision in wanted.spec.revision if revision.id == revision_id), None)
    if there is None:
        return None
    if target is None:
        kept = [_copy_of(revision) for revision in wanted.spec.revision if revision.id != revision_id]
        del wanted.spec.revision[:]
        wanted.spec.revision.extend(kept)
    elif rank_of(there.target) > rank_of(target):
        there.target = target  # type: ignore[assignment]
    return _stamp_if_different(held, wanted, stamp)


def stamp_of(service: str, created_ms: int, generation: int) -> str:
    """The mark of what an order writes: `7-3f1c...`, its generation and a digest that ties it to the service.

    Whoever writes the annotation by hand, or copies one from another service, does not arrive at this.
    """
    digest = hashlib.sha256(f"{service}/{created_ms}/{generation}".encode()).hexdigest()[:12]
    return f"{generation}-{digest}"


def generation_of(instance: instance_pb2.Instance, created_ms: int) -> int:
    """The generation of the order that last wrote it; 0: no order of this service, created at that time, did."""
    text = instance.meta.annotations.get(OWNER, "")
    number = text.partition("-")[0]
    if not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS):
        return 0
    generation = int(number)
    return generation if text == stamp_of(instance.meta.service_id, created_ms, generation) else 0


def rank_of(target: int | None) -> int:
    """Targets in order; None, where the revision is not there, is the lowest."""
    return -1 if target is None else {READY: 2, CREATED: 0}.get(target, 1)


def _retarget(instance: instance_pb2.Instance, snapshot: str, target: int) -> None:
    for revision in instance.spec.revision:
        if revision.id == snapshot:
            revision.target = target  # type: ignore[assignment]


def _stamp_if_different(held: HeldInstance, wanted: instance_pb2.Instance, stamp: str) -> instance_pb2.Instance | None:
    return _stamp_owner(wanted, stamp) if wanted != _comparable(held, wanted) else None


def _comparable(held: HeldInstance, wanted: instance_pb2.Instance) -> instance_pb2.Instance:
    """The instance as held, without differences in secret descriptors that a write would leave unchanged."""
    if held.knows_secrets:
        return held.instance
    same = _copy(held.instance)
    by_id = {revision.id: revision for revision in wanted.spec.revision}
    for revision in same.spec.revision:
        if revision.id in by_id and not revision.secret:
            revision.secret.extend(by_id[revision.id].secret)
    return same


def _stamp_owner(instance: instance_pb2.Instance, stamp: str) -> instance_pb2.Instance:
    instance.meta.annotations[OWNER] = stamp
    return instance


def _copy(instance: instance_pb2.Instance) -> instance_pb2.Instance:
    copy = instance_pb2.Instance()
    copy.CopyFrom(instance)
    return copy


def _copy_of(revision: instance_pb2.InstanceRevision) -> instance_pb2.InstanceRevision:
    copy = instance_pb2.InstanceRevision()
    copy.CopyFrom(revision)
    return copy
