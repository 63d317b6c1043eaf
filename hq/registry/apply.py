"""ApplyInstances: many instances, each created or replaced independently."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from hq.errors import AlreadyExists, WrongService
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hq.registry import changes
from hq.registry.preconditions import Permit, Precondition, anything, check_entry
from hq.registry.writes import Writes
from hq.validation import check_cluster, check_instance_update, require
from hqpb.v1 import instance_pb2, service_pb2
from serving.errors import NotFound, ServiceError

_TRIES = 5


class AppliedItem(NamedTuple):
    """The outcome of one item; `error` is None unless it failed."""

    instance_id: str
    outcome: service_pb2.ApplyOutcome
    version: int
    error: ServiceError | None


class Apply:
    """The call for many instances."""

    def __init__(self, cache: Cache, writes: Writes, cluster: str) -> None:
        self._cache, self._writes, self._cluster = cache, writes, cluster

    async def apply(
        self,
        instances: list[instance_pb2.Instance],
        epoch: str,
        deadline: float,
        *,
        validate_only: bool,
        permit: Permit = anything,
        service: str = "",
    ) -> list[AppliedItem]:
        """Write each instance by itself; return one result per instance, in order.

        `service`: an instance of another service is not written; empty: not compared.

        Raises:
            PermissionDenied: one instance may not be written, so none is. One that becomes forbidden while the others
                are being written fails alone.
        """
        for instance in instances:
            permit(instance.meta.id, instance.meta.service_id, instance.spec.node_name)
            if (before := self._cache.get(instance.meta.id)) is not None:
                check_entry(permit, before)
        items = (
            self._one(i, one, Precondition(one.meta.version, epoch, service), deadline, validate_only, permit)
            for i, one in enumerate(instances)
        )
        return list(await asyncio.gather(*items))

    async def _one(
        self,
        position: int,
        instance: instance_pb2.Instance,
        demanded: Precondition,
        deadline: float,
        validate_only: bool,
        permit: Permit,
    ) -> AppliedItem:
        try:
            check_instance_update(instance, f"instance[{position}]")
            require(check_cluster(instance.meta.cluster, self._cluster, f"instance[{position}].meta.cluster"))
            entry, outcome = await self._create_or_update(instance, demanded, deadline, validate_only, permit)
        except ServiceError as error:
            return AppliedItem(instance.meta.id, service_pb2.APPLY_OUTCOME_UNSPECIFIED, 0, error)
        return AppliedItem(instance.meta.id, outcome, entry.version, None)

    async def _create_or_update(
        self,
        instance: instance_pb2.Instance,
        demanded: Precondition,
        deadline: float,
        validate_only: bool,
        permit: Permit,
    ) -> tuple[Entry, service_pb2.ApplyOutcome]:
        for _ in range(_TRIES):
            before = self._cache.get(instance.meta.id)
            if before is None and not demanded.version:
                if demanded.service not in ("", instance.meta.service_id):
                    raise WrongService(instance.meta.id, demanded.service)
                try:
                    new = _new(instance)
                    entry = await self._writes.create(new, "", deadline, validate_only=validate_only, permit=permit)
                except AlreadyExists:
                    continue
                return entry, service_pb2.APPLY_OUTCOME_CREATED
            try:
                entry = await self._writes.update(
                    instance, None, demanded, deadline, validate_only=validate_only, permit=permit
                )
            except NotFound:
                if demanded.version:
                    raise
                continue
            unchanged = before is not None and self._same(before, entry)
            changed = service_pb2.APPLY_OUTCOME_UPDATED
            return entry, service_pb2.APPLY_OUTCOME_UNCHANGED if unchanged else changed
        cache, instance_id = self._cache, instance.meta.id
        version, _ = cache.stored_versions(instance_id)
        raise AlreadyExists(instance_id, version, readable=not cache.is_unreadable(instance_id))

    def _same(self, before: Entry, after: Entry) -> bool:
        return before.version == after.version and changes.same(
            self._writes.draft_of(before), self._writes.draft_of(after)
        )


def _new(instance: instance_pb2.Instance) -> instance_pb2.Instance:
    """A copy without the fields that HQ owns: people apply what they have read."""
    new = instance_pb2.Instance()
    new.CopyFrom(instance)
    new.ClearField("status")
    for name in ("uid", "cluster", "creation_time", "modification_time", "version", "status_version"):
        new.meta.ClearField(name)
    return new
