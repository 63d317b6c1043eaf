"""The intent of activate and rollback: other targets, and nothing else. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from descriptions.desired import owned_by_nanny, ready_of, retarget
from descriptions.held import HeldInstance
from hqpb.v1 import instance_pb2
from nannyctl.plans.diff import diff
from nannyctl.plans.plan import PlannedAction, PlannedKind


class CannotRollBack(Exception):
    """The previous revision cannot be determined; str() says what to name."""


class SwitchIntent:
    """Makes one revision READY in instances that have it already.

    Args:
        to: the revision.
        only_from: instances where a different one is READY are left alone; empty: any.
    """

    def __init__(self, to: str, only_from: str = "") -> None:
        self.to = to
        self.only_from = only_from

    def needs_secrets(self, held: HeldInstance) -> bool:
        return False

    def action(self, instance_id: str, held: HeldInstance | None) -> PlannedAction:
        if held is None:
            return PlannedAction(instance_id, PlannedKind.UNCHANGED, note="is gone")
        if why := owned_by_nanny(held):
            return PlannedAction(instance_id, PlannedKind.REFUSED, held, note=why)
        ready = ready_of(held.instance)
        if ready != self.to and self.only_from and ready != self.only_from:
            return PlannedAction(
                instance_id, PlannedKind.UNCHANGED, held, note=f"{ready or 'nothing'} is READY there: left unchanged"
            )
        if self.to not in (revision.id for revision in held.instance.spec.revision):
            return PlannedAction(
                instance_id, PlannedKind.REFUSED, held, note=f"has no revision {self.to}: upload it first"
            )
        after = instance_pb2.Instance()
        after.CopyFrom(held.instance)
        retarget(after.spec.revision, self.to)
        changes = diff(held.instance, after)
        if not changes:
            return PlannedAction(instance_id, PlannedKind.UNCHANGED, held)
        return PlannedAction(instance_id, PlannedKind.UPDATE, held, after, changes)


def previous(instances: Iterable[instance_pb2.Instance], from_: str = "") -> SwitchIntent:
    """The switch back to the revision before the READY one.

    Revisions are listed in the order in which they were added, so the one before is the one listed before. Where
    instances are READY with several revisions (a switch was broken off), the last of them is rolled back.

    Raises:
        CannotRollBack: there is none, or instances disagree.
    """
    listed = [instance for instance in instances if ready_of(instance)]
    if not listed:
        raise CannotRollBack("no instance has a READY revision: name one with `nanny activate REVISION`")
    leaving = from_ or _last_ready(listed)
    before = Counter(_before(instance, leaving) for instance in listed if ready_of(instance) == leaving)
    if not before:
        raise CannotRollBack(f"{leaving} is not READY anywhere: nothing to roll back")
    if set(before) == {""}:
        raise CannotRollBack(f"no revision was added before {leaving}: choose one with --to")
    if len(before) > 1 or "" in before:
        found = ", ".join(f"{count} x {revision or 'none'}" for revision, count in before.most_common())
        raise CannotRollBack(f"the revision before {leaving} differs between instances ({found}): choose one with --to")
    return SwitchIntent(next(iter(before)), leaving)


def _last_ready(instances: list[instance_pb2.Instance]) -> str:
    """The last of the revisions that are READY somewhere."""
    ready = {ready_of(instance) for instance in instances}
    followed = {
        revision.id
        for instance in instances
        for revision in _until(instance, _last_of(instance, ready))
        if revision.id in ready
    }
    last = sorted(ready - followed)
    if len(last) != 1:
        raise CannotRollBack(f"{', '.join(sorted(ready))} are both READY: choose one with --from or --to")
    return last[0]


def _last_of(instance: instance_pb2.Instance, ready: set[str]) -> str:
    return next((revision.id for revision in reversed(instance.spec.revision) if revision.id in ready), "")


def _until(instance: instance_pb2.Instance, revision_id: str) -> list[instance_pb2.InstanceRevision]:
    ids = [revision.id for revision in instance.spec.revision]
    return list(instance.spec.revision[: ids.index(revision_id)])


def _before(instance: instance_pb2.Instance, revision_id: str) -> str:
    earlier = _until(instance, revision_id)
    return earlier[-1].id if earlier else ""
