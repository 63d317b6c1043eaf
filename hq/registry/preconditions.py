"""What must hold before an instance is changed: the version that the caller demands, and its permission.

An instance is held against that as it stands in memory; a refusal is told after a fence where memory may be old."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hq.errors import EpochChanged, VersionConflict
from hq.memory.entry import Entry
from hq.registry.changes import Draft
from hq.replica import Replica
from serving.errors import DeadlineExceeded, NotFound, PermissionDenied
from store.commit import Conflict

Permit = Callable[[str, str, str], None]
"""Takes the id, service and node of an instance as it is, or as it would become; raises PermissionDenied."""


def anything(_id: str, _service: str, _node: str) -> None:
    """Permits everything."""


def check_entry(permit: Permit, entry: Entry) -> None:
    """Ask for an instance as it is in memory. What is written then compares its version: it is as it was asked for."""
    permit(entry.traits.id, entry.traits.service, entry.traits.node)


def check_draft(permit: Permit, draft: Draft) -> None:
    """Ask for an instance as it would become."""
    permit(draft.meta.id, draft.meta.service_id, draft.spec.node_name)


_CATCH_UP_S = 2.0


class Precondition(NamedTuple):
    """What the caller demands of the record as it stands: `version` 0 and `epoch` "" demand nothing."""

    version: int = 0
    epoch: str = ""


class Preconditions:
    """Instances in memory, held against what callers demand; a refusal is told after a fence where memory may be old.

    Deadlines are on the injected clock.
    """

    def __init__(self, replica: Replica) -> None:
        self._r = replica

    async def met_by(self, instance_id: str, demanded: Precondition, deadline: float, permit: Permit) -> Entry:
        """The instance at the version that the caller demands.

        Raises:
            NotFound, VersionConflict, EpochChanged, PermissionDenied: it is not there, or not for this caller.
            NotLoaded: this replica has not read the store, or not the one that it has become.
        """
        r = self._r
        self._check_epoch(demanded)
        if demanded.version > r.cache.version:
            await self._wait_for(demanded.version, deadline)
        entry = r.cache.get(instance_id)
        if entry is None or (demanded.version and entry.version != demanded.version):
            await r.proven()
            self._check_epoch(demanded)
            entry = r.cache.get(instance_id)
        if entry is None:
            raise NotFound(f"there is no instance {instance_id}")
        entry = await self._permitted(entry, permit)
        self._check_epoch(demanded)
        spec_at, _ = r.cache.stored_versions(instance_id)
        if demanded.version and spec_at != demanded.version:
            raise VersionConflict(
                instance_id, demanded.version, spec_at, readable=not r.cache.is_unreadable(instance_id)
            )
        return entry

    async def again(self, instance_id: str, conflict: Conflict, demanded: Precondition, deadline: float) -> None:
        """Return when the change may be tried again; a conflict of the spec is the caller's if a version was named.

        Raises:
            NotFound, VersionConflict: the conflict is the caller's.
            DeadlineExceeded: there is no time to try again.
        """
        spec_at = conflict.modified[self._r.key_names.spec(instance_id)]
        if demanded.version and spec_at != demanded.version:
            await self.caught_up(conflict, deadline)
            if not spec_at:
                raise NotFound(f"instance {instance_id} was deleted")
            raise VersionConflict(instance_id, demanded.version, spec_at)
        if self._r.clock.now() >= deadline:
            raise DeadlineExceeded(
                f"conflict: {instance_id} kept changing until the deadline; nothing was stored, retry"
            )
        await self.caught_up(conflict, deadline)

    async def caught_up(self, conflict: Conflict, deadline: float) -> None:
        """Wait until memory has what the store has; after a deletion only a fence can tell."""
        if 0 in conflict.modified.values():
            await self._r.proven()
        await self._wait_for(max(conflict.modified.values()), deadline)

    async def _permitted(self, entry: Entry, permit: Permit) -> Entry:
        """The instance as it is when the permit allows it. Raises PermissionDenied."""
        try:
            check_entry(permit, entry)
        except PermissionDenied:  # it may have become the caller's a moment ago
            await self._r.proven()
            newer = self._r.cache.get(entry.traits.id)
            if newer is None:
                raise
            check_entry(permit, newer)
            return newer
        return entry

    def _check_epoch(self, demanded: Precondition) -> None:
        """The store may be another one after any wait, and its versions may be the same numbers."""
        r = self._r
        r.check_loaded()
        if demanded.epoch and demanded.epoch != r.epoch.current:
            raise EpochChanged(demanded.epoch, r.epoch.current)

    async def _wait_for(self, version: int, deadline: float) -> None:
        # What memory has afterwards decides; the compare keeps it exact.
        await self._r.catch_up(version, min(_CATCH_UP_S, deadline - self._r.clock.now()))
