"""GetRevision: what an agent must run, with the secret descriptors that only it and the deploy system may read."""

from __future__ import annotations

from typing import NamedTuple

from hq.errors import UnknownRevision
from hq.loading import CatchUp, Loading
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hq.registry.changes import secrets_of
from hq.registry.preconditions import Permit, anything, check_entry
from hq.registry.reporter_checks import not_on, of_epoch
from hqpb.v1 import instance_pb2
from serving.errors import NotFound, Retry, ServiceError


class Fetched(NamedTuple):
    """Revisions with descriptors, and the instance they belong to."""

    revisions: list[instance_pb2.InstanceRevision]
    entry: Entry
    allocation: instance_pb2.ResourceAllocation | None


class Revisions:
    """The fetching call of agents and deploy systems."""

    def __init__(self, cache: Cache, loading: Loading, catch_up: CatchUp) -> None:
        self._cache, self._loading, self._catch_up = cache, loading, catch_up

    async def get(
        self,
        instance_id: str,
        revision_id: str,
        node: str,
        permit: Permit = anything,
        *,
        is_agent: bool = True,
        is_guarded: bool = False,
    ) -> Fetched:
        """All revisions, or one, of an instance on this node (empty: wherever it is).

        The node's own agent must learn that the instance is not there (any more), because it has to stop it. Others
        learn only what the permit allows. With `is_guarded`, descriptors are returned only after a fence: once a move
        is acknowledged, no replica gives them to the node that the instance left, however far the replica lags behind.

        Raises:
            NotFound, WrongNode, UnknownRevision: after a fence, so it is final.
            PermissionDenied: raised by the permit.
        """
        self._loading.check()
        try:
            found = self._fetch(instance_id, revision_id, node, permit, is_agent=is_agent)
            if not is_guarded or not any(revision.secret for revision in found.revisions):
                return found
        except ServiceError as error:
            if isinstance(error, Retry):
                raise
        await self._catch_up.proven()
        try:
            return self._fetch(instance_id, revision_id, node, permit, is_agent=is_agent)
        except ServiceError as error:
            raise of_epoch(error, self._cache.epoch) from None

    def _fetch(self, instance_id: str, revision_id: str, node: str, permit: Permit, *, is_agent: bool) -> Fetched:
        entry = self._cache.get(instance_id)
        if entry is None:
            raise NotFound(f"there is no instance {instance_id}")
        is_elsewhere = bool(node) and node != entry.traits.node
        if not (is_elsewhere and is_agent):
            check_entry(permit, entry)
        if is_elsewhere:
            raise not_on(entry, node)
        if revision_id and revision_id not in entry.traits.revisions:
            subject = f"{instance_id}/{revision_id}"
            raise UnknownRevision(subject, f"instance {instance_id} has no revision {revision_id}")
        spec = entry.spec()
        record = self._cache.secrets(instance_id)
        secrets = secrets_of(record.value if record else None)
        wanted = [revision for revision in spec.revision if revision_id in ("", revision.id)]
        for revision in wanted:
            encoded = secrets.get(revision.id, [])
            revision.secret.extend(map(instance_pb2.SecretDescriptor.FromString, encoded))
        return Fetched(wanted, entry, spec.allocation if spec.HasField("allocation") else None)
