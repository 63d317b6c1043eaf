"""The intent of an upload: one description, one installation. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from descriptions.description import Description, Placement
from descriptions.desired import absent_of, desired_instance, needs_secrets, owned_by_nanny, ready_of
from descriptions.held import HeldInstance
from hqpb.v1 import instance_pb2
from nannyctl.plans.diff import diff
from nannyctl.plans.plan import PlannedAction, PlannedKind


class UploadIntent:
    """Brings instances to a description.

    Args:
        placements: those of the description that belong to the installation.
        prune: instances that are not among them are deleted; otherwise they are left alone.
    """

    def __init__(self, description: Description, placements: Iterable[Placement], *, prune: bool = False) -> None:
        self.description = description
        self._prune = prune
        self._placements = {placement.id: placement for placement in placements}

    @property
    def ids(self) -> list[str]:
        """The instances described, in order."""
        return list(self._placements)

    def needs_secrets(self, held: HeldInstance) -> bool:
        return held.id in self._placements and self._is_ours(held) and needs_secrets(self.description, held)

    def action(self, instance_id: str, held: HeldInstance | None) -> PlannedAction:
        placement = self._placements.get(instance_id)
        if held is not None and not self._is_ours(held):
            note = f"belongs to the service {held.instance.meta.service_id}: choose another id"
            return PlannedAction(instance_id, PlannedKind.REFUSED, held, note=note)
        if held is not None and (why := owned_by_nanny(held)) and (placement is not None or self._prune):
            return PlannedAction(instance_id, PlannedKind.REFUSED, held, note=why)
        if placement is None:
            return self._not_described(instance_id, held)
        after = desired_instance(self.description, placement, held)
        absent = absent_of(self.description, after)
        if self.description.ready in absent:
            note = f"has no revision {self.description.ready} to be READY: describe it under `revisions`"
            return PlannedAction(instance_id, PlannedKind.REFUSED, held, note=note)
        note = f"has no revision {', '.join(absent)} to stay INSTALLED" if absent else ""
        if held is not None and ready_of(held.instance) and not ready_of(after):
            note = f"{ready_of(held.instance)} runs, and nothing will"
        return self._towards(instance_id, held, after, note)

    def _is_ours(self, held: HeldInstance) -> bool:
        return held.instance.meta.service_id == self.description.service

    def _not_described(self, instance_id: str, held: HeldInstance | None) -> PlannedAction:
        if held is None or not self._prune:
            return PlannedAction(
                instance_id, PlannedKind.UNCHANGED, held, note="is not described: left unchanged" if held else ""
            )
        return PlannedAction(instance_id, PlannedKind.DELETE, held, changes=diff(held.instance, None))

    def _towards(
        self, instance_id: str, held: HeldInstance | None, after: instance_pb2.Instance, note: str
    ) -> PlannedAction:
        before = held.instance if held is not None else None
        changes = diff(before, after)
        if held is None:
            return PlannedAction(instance_id, PlannedKind.CREATE, None, after, changes, note)
        clears = _clears(held, self.description)
        if clears and not held.knows_secrets:  # HQ clears those of every revision sent without any
            note = "conflict: it changed while its secret descriptors were read; run it again to clear them"
            return PlannedAction(instance_id, PlannedKind.REFUSED, held, note=note)
        if changes:
            return PlannedAction(instance_id, PlannedKind.UPDATE, held, after, changes, note, clears)
        return PlannedAction(instance_id, PlannedKind.UNCHANGED, held, note=note)


def _clears(held: HeldInstance, description: Description) -> bool:
    emptied = {d.id for d in description.definitions if d.tells_secrets and not d.message.secret}
    return any(held.secret_counts.get(revision) for revision in emptied)
