"""Preconditions of a change to an instance: the version that the caller demands, and the caller's permission.

The instance in memory is checked first; where memory may be stale, a refusal is given only after a fence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from hq.errors import EpochChanged, VersionConflict, WrongService
from hq.keys import HqKeys
from hq.loading import CatchUp, Loading
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hq.registry.changes import InstanceDraft, new_secrets
from serving.clock import Clock
from serving.errors import DeadlineExceeded, NotFound, OutOfReach, PermissionDenied
from serving.rights.access import SecretName
from store.commit import Conflict
from store.epoch import Epoch


class Permit(Protocol):
    """Takes the id, service and node of an instance as it is or would become, and which secrets are new to it."""

    def __call__(self, instance_id: str, service: str, node: str, /, *, secrets: Iterable[SecretName] = ()) -> None:
        """Raises PermissionDenied."""
        ...


def anything(_id: str, _service: str, _node: str, /, *, secrets: Iterable[SecretName] = ()) -> None:
    """Permits everything."""


def check_entry(permit: Permit, entry: Entry) -> None:
    """Check an instance as it is in memory. The write compares its version, so what was checked is what is changed."""
    try:
        permit(entry.traits.id, entry.traits.service, entry.traits.node)
    except PermissionDenied as error:
        raise OutOfReach(f"there is no instance {entry.traits.id}", key=entry.traits.id) from error


def check_draft(permit: Permit, draft: InstanceDraft, old: InstanceDraft | None = None) -> None:
    """Check an instance as it would become. It may keep the secrets that it has already."""
    secrets = new_secrets(draft.secrets, old.secrets if old is not None else {})
    permit(draft.meta.id, draft.meta.service_id, draft.spec.node_name, secrets=secrets)


_CATCH_UP_S = 2.0


class Precondition(NamedTuple):
    """Conditions of the caller on the current record: `version` 0, `epoch` "" and `service` "" demand nothing."""

    version: int = 0
    epoch: str = ""
    service: str = ""

    def is_met_by(self, entry: Entry) -> bool:
        """Whether the record is at this version, and of this service; its epoch is not compared."""
        return self.version in (0, entry.version) and self.service in ("", entry.traits.service)


class Preconditions:
    """Checks instances in memory against what callers demand; where memory may be stale, it refuses only after a fence.

    Deadlines are on the injected clock.
    """

    def __init__(
        self, cache: Cache, names: HqKeys, epoch: Epoch, loading: Loading, catch_up: CatchUp, clock: Clock
    ) -> None:
        self._cache, self._names, self._epoch = cache, names, epoch
        self._loading, self._catch_up, self._clock = loading, catch_up, clock

    async def met_by(self, instance_id: str, demanded: Precondition, deadline: float, permit: Permit) -> Entry:
        """The instance at the version that the caller demands.

        Raises:
            NotFound, VersionConflict, WrongService, EpochChanged, OutOfReach: it is not there, or not for this caller.
            NotLoaded: this replica has not read the store, or not the one that has replaced it.
        """
        self._check_epoch(demanded)
        if demanded.version > self._cache.version:
            await self._wait_for(demanded.version, deadline)
        entry = self._cache.get(instance_id)
        if entry is None or not demanded.is_met_by(entry):
            await self._catch_up.proven()
            self._check_epoch(demanded)
            entry = self._cache.get(instance_id)
        if entry is None:
            raise NotFound(f"there is no instance {instance_id}")
        entry = await self._permitted_entry(entry, permit)
        self._check_epoch(demanded)
        self._check_service(entry, demanded)
        spec_at, _ = self._cache.stored_versions(instance_id)
        if demanded.version and spec_at != demanded.version:
            raise VersionConflict(
                instance_id, demanded.version, spec_at, readable=not self._cache.is_unreadable(instance_id)
            )
        return entry

    async def again(self, instance_id: str, conflict: Conflict, demanded: Precondition, deadline: float) -> None:
        """Return when the change may be tried again. A caller who named a version gets conflicts on the spec as errors.

        Raises:
            NotFound, VersionConflict: the conflict is the caller's.
            DeadlineExceeded: there is no time to try again.
        """
        spec_at = conflict.modified[self._names.spec(instance_id)]
        if demanded.version and spec_at != demanded.version:
            await self.caught_up(conflict, deadline)
            if not spec_at:
                raise NotFound(f"instance {instance_id} was deleted")
            raise VersionConflict(instance_id, demanded.version, spec_at)
        if self._clock.now() >= deadline:
            raise DeadlineExceeded(
                f"conflict: {instance_id} kept changing until the deadline; nothing was stored, retry"
            )
        await self.caught_up(conflict, deadline)

    async def caught_up(self, conflict: Conflict, deadline: float) -> None:
        """Wait until memory has what the store has; after a deletion only a fence can tell."""
        if 0 in conflict.modified.values():
            await self._catch_up.proven()
        await self._wait_for(max(conflict.modified.values()), deadline)

    async def _permitted_entry(self, entry: Entry, permit: Permit) -> Entry:
        """The instance if the permit allows it, else as it is after a fence. Raises OutOfReach: it refuses both."""
        try:
            check_entry(permit, entry)
        except OutOfReach:  # it may have become the caller's a moment ago
            await self._catch_up.proven()
            newer = self._cache.get(entry.traits.id)
            if newer is None:
                raise
            check_entry(permit, newer)
            return newer
        return entry

    def _check_service(self, entry: Entry, demanded: Precondition) -> None:
        """Raises WrongService. Call it where the write compares the version of this very entry."""
        is_readable = not self._cache.is_unreadable(entry.traits.id)
        if demanded.service and not (is_readable and demanded.service == entry.traits.service):
            raise WrongService(entry.traits.id, demanded.service, readable=is_readable)

    def _check_epoch(self, demanded: Precondition) -> None:
        """Call after every wait: the store may be a different one by then, with the same version numbers."""
        self._loading.check()
        if demanded.epoch and demanded.epoch != self._epoch.current:
            raise EpochChanged(demanded.epoch, self._epoch.current)

    async def _wait_for(self, version: int, deadline: float) -> None:
        # The time may run out: what memory has then decides, and the write's compare keeps that exact.
        await self._catch_up.until(version, min(_CATCH_UP_S, deadline - self._clock.now()))
