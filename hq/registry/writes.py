"""Writes of deploy systems and schedulers: create, update, delete, and single revisions.

Every change is made from the replica's memory and written with a compare of what it was made from. A caller who names a
version gets the conflict as an error; for one who names none, HQ reads again and retries. A status that changed
meanwhile (agents report all the time) is never the caller's conflict.
"""

from __future__ import annotations

from collections.abc import Callable

from hq.errors import AlreadyExists, LivenessUnavailable, StoreLimit
from hq.liveness.presence import KNOWN
from hq.memory.entry import Entry
from hq.memory.record import LivenessPair, pair_of
from hq.registry import changes
from hq.registry.preconditions import Permit, Precondition, Preconditions, anything, check_draft, check_entry
from hq.replica import Replica
from hq.validation import check_instance_update
from hqpb.v1 import instance_pb2
from serving.errors import NotFound, PermissionDenied
from store.commit import Conflict
from store.keys import new_word
from store.port import Compare, Write

_MOST_PAIRS = 16  # each has a queue of deadlines at every replica


class Writes:
    """The writing calls. All answer with the instance as it was stored."""

    def __init__(self, replica: Replica, preconditions: Preconditions) -> None:
        self._r, self._preconditions = replica, preconditions

    async def create(
        self,
        instance: instance_pb2.Instance,
        request_id: str,
        deadline: float,
        *,
        validate_only: bool,
        permit: Permit = anything,
        repeated: bool = False,
    ) -> Entry:
        """Create an instance. Raises AlreadyExists, StoreLimit, and what a commit raises.

        `repeated`: the request was sent before, with an unknown outcome. If that created the instance, and others have
        deleted it since, it is not created again: the answer is the instance as it last was.
        """
        r, wall_ms = self._r, self._r.clock.wall_ms()
        r.loading.check()
        draft = changes.new_draft(instance, new_word(r.rng), r.config.cluster, wall_ms)
        instance_id = draft.meta.id
        check_draft(permit, draft)
        if repeated:
            await r.catch_up.proven()
            if (gone := r.cache.removed.get(instance_id, request_id)) is not None:
                check_entry(permit, gone)
                return gone
        if spec_at := await self._taken_at(instance_id, request_id):
            return self._resolve_repeated_create(draft, request_id, spec_at, permit)
        self._check_room(draft.size_bytes(), 0)
        self._check_liveness(draft.spec, None)
        plan = changes.creation(draft, request_id, wall_ms)
        if validate_only:
            return changes.as_stored(plan, None, 0)
        try:
            return await self._write(instance_id, plan, None, deadline)
        except Conflict as conflict:
            await self._preconditions.caught_up(conflict, deadline)
            return self._resolve_repeated_create(draft, request_id, max(conflict.modified.values()), permit)

    async def update(
        self,
        instance: instance_pb2.Instance,
        mask: list[str] | None,
        demanded: Precondition,
        deadline: float,
        *,
        validate_only: bool,
        permit: Permit = anything,
    ) -> Entry:
        """Update an instance. Raises what `Preconditions.met_by` and a commit raise, StoreLimit, InvalidRequest."""
        return await self._change(
            instance.meta.id,
            lambda old: changes.updated_draft(old, instance, mask),
            demanded,
            deadline,
            validate_only,
            permit,
        )

    async def put_revision(
        self,
        instance_id: str,
        revision: instance_pb2.InstanceRevision,
        demanded: Precondition,
        deadline: float,
        *,
        clear_secrets: bool,
        validate_only: bool,
        permit: Permit = anything,
    ) -> Entry:
        """Add or replace a revision. Raises what `update` raises."""

        def change(old: changes.InstanceDraft) -> changes.InstanceDraft:
            return changes.with_revision(old, revision, clear_secrets=clear_secrets)

        return await self._change(instance_id, change, demanded, deadline, validate_only, permit)

    async def delete_revision(
        self,
        instance_id: str,
        revision_id: str,
        demanded: Precondition,
        deadline: float,
        permit: Permit = anything,
    ) -> Entry:
        """Remove a revision. Raises what `update` raises; NotFound also if there is no such revision."""
        return await self._change(
            instance_id, lambda old: changes.without_revision(old, revision_id), demanded, deadline, False, permit
        )

    async def delete(self, instance_id: str, demanded: Precondition, deadline: float, permit: Permit = anything) -> int:
        """Remove spec, secrets and status together; return the version. Raises what `update` raises."""
        keys, cache = self._r.key_names, self._r.cache
        while True:
            self._r.loading.check()
            if (entry := cache.get(instance_id)) is not None:
                check_entry(permit, entry)  # before its version is told
            spec_at, _ = cache.stored_versions(instance_id)
            if not spec_at or demanded.version or demanded.service:
                await self._preconditions.met_by(instance_id, demanded, deadline, permit)
                spec_at, _ = cache.stored_versions(instance_id)
            if (entry := cache.get(instance_id)) is not None:
                check_entry(permit, entry)
            else:
                permit(instance_id, "", "")  # an unreadable record: only who may do everything may delete it
            gone = (keys.spec(instance_id), keys.status(instance_id), keys.secrets(instance_id))
            write = Write((Compare(keys.spec(instance_id), "modified", spec_at),), deletes=gone)
            try:
                version = await self._r.committer.commit(instance_id, write, 0, deadline)
            except Conflict as conflict:
                await self._preconditions.again(instance_id, conflict, demanded, deadline)
            else:
                await self._r.catch_up.wait_for_version(version)
                return version

    # --- changing what is there -------------------------------------------------------------------------------------

    async def _change(
        self,
        instance_id: str,
        change: Callable[[changes.InstanceDraft], changes.InstanceDraft],
        demanded: Precondition,
        deadline: float,
        validate_only: bool,
        permit: Permit,
    ) -> Entry:
        sure = validate_only
        while True:
            entry = await self._preconditions.met_by(instance_id, demanded, deadline, permit)
            old = self.draft_of(entry)
            new = _attempt(change, old, sure=sure)
            check_draft(permit, new, old)
            check_instance_update(new.check_input())
            # An unreadable record is overwritten even if nothing changes, unless the change itself was a no-op.
            if new is old or (changes.same(old, new) and not self._r.cache.is_unreadable(instance_id)):
                if sure:
                    return entry
                # "Nothing to do" and "no such revision" may be wrong: others may have acknowledged newer writes.
                await self._r.catch_up.proven()
                sure = True
                continue
            self._check_room(new.size_bytes(), old.size_bytes())
            self._check_liveness(new.spec, entry.traits.liveness)
            plan = changes.change(entry, old, new, self._r.clock.wall_ms(), self._r.cache.epoch_at)
            if validate_only:
                return changes.as_stored(plan, entry, entry.version)
            try:
                return await self._write(instance_id, plan, entry, deadline)
            except Conflict as conflict:
                await self._preconditions.again(instance_id, conflict, demanded, deadline)

    def draft_of(self, entry: Entry) -> changes.InstanceDraft:
        """An instance as it stands, taken apart for writing."""
        secrets = self._r.cache.secrets(entry.traits.id)
        return changes.InstanceDraft(entry.meta(), entry.spec(), changes.secrets_of(secrets.value if secrets else None))

    # --- writing ----------------------------------------------------------------------------------------------------

    async def _write(self, instance_id: str, plan: changes.WritePlan, entry: Entry | None, deadline: float) -> Entry:
        keys, write_id = self._r.key_names, new_word(self._r.rng)
        spec_at, status_at = self._r.cache.stored_versions(instance_id)
        when = [Compare(keys.spec(instance_id), "modified", spec_at)]
        puts = [(keys.spec(instance_id), changes.spec_record(plan, write_id).SerializeToString())]
        deletes = []
        if plan.status is not None:
            plan.status.write_id = write_id
            when.append(Compare(keys.status(instance_id), "modified", status_at))
            puts.append((keys.status(instance_id), plan.status.SerializeToString()))
        if secrets := changes.encode_secrets(plan.draft.secrets, write_id):
            puts.append((keys.secrets(instance_id), secrets))
        elif self._r.cache.secrets(instance_id) is not None:
            deletes.append(keys.secrets(instance_id))
        write = Write(when, puts, deletes)
        version = await self._r.committer.commit(instance_id, write, write_id, deadline)
        await self._r.catch_up.wait_for_version(version)
        return changes.as_stored(plan, entry, version)

    def _check_liveness(self, spec: instance_pb2.InstanceSpec, before: LivenessPair | None) -> None:
        """Raises LivenessUnavailable: a replica does not know these settings, or there are too many different ones."""
        pair = pair_of(spec)
        if pair is None or pair == before:
            return
        if unaware := self._r.events.unaware_of(KNOWN):
            raise LivenessUnavailable(
                f"spec.liveness: these replicas of HQ do not say that they know it: {', '.join(sorted(unaware)[:5])}; "
                "upgrade all of them, then retry after a minute",
                "spec.liveness",
            )
        known = self._r.cache.liveness_pairs
        if pair not in known and len(known) >= _MOST_PAIRS:
            told = ", ".join(
                f"{interval_ms / 1000:g}s/{timeout_ms / 1000:g}s" for interval_ms, timeout_ms in sorted(known)
            )
            raise LivenessUnavailable(
                f"spec.liveness: this installation has {_MOST_PAIRS} different settings already: use one of {told}",
                "spec.liveness",
            )

    def _check_room(self, new_bytes: int, old_bytes: int) -> None:
        """Keep live data from filling the store, which would stop reports too. Raises StoreLimit if data would grow."""
        used_bytes, most_bytes = self._r.cache.stored_bytes, self._r.config.max_store_bytes
        if most_bytes and used_bytes >= most_bytes and new_bytes > old_bytes:
            raise StoreLimit(used_bytes, most_bytes)

    async def _taken_at(self, instance_id: str, request_id: str) -> int:
        """The version at which the id is taken, by this very request or as confirmed by a fence; 0: it is free."""
        spec_at, _ = self._r.cache.stored_versions(instance_id)
        if spec_at and not self._is_of(instance_id, request_id):
            # The instance may have been deleted at another replica.
            await self._r.catch_up.proven()
            spec_at, _ = self._r.cache.stored_versions(instance_id)
        return spec_at

    def _resolve_repeated_create(
        self, draft: changes.InstanceDraft, request_id: str, version: int, permit: Permit
    ) -> Entry:
        """The answer to a creation of what exists already: the instance, if this very request created it."""
        instance_id = draft.meta.id
        entry = self._r.cache.get(instance_id)
        if entry is not None and self._is_of(instance_id, request_id):
            check_entry(permit, entry)
            return entry
        try:
            permit(instance_id, entry.traits.service if entry else "", entry.traits.node if entry else "")
        except PermissionDenied:
            version = 0  # the caller must learn that the id is taken, but no more
        if entry is not None and entry.traits.service != draft.meta.service_id:
            version = 0  # nor may the request's service learn more: a controller shows its owners the answer
        raise AlreadyExists(instance_id, version, readable=not self._r.cache.is_unreadable(instance_id))

    def _is_of(self, instance_id: str, request_id: str) -> bool:
        """Whether the instance was created by this very request."""
        entry = self._r.cache.get(instance_id)
        return entry is not None and bool(request_id) and entry.request_id == request_id


def _attempt(
    change: Callable[[changes.InstanceDraft], changes.InstanceDraft], old: changes.InstanceDraft, *, sure: bool
) -> changes.InstanceDraft:
    """Apply the change. If its revision is missing, return `old`; once memory is `sure` of that, raise NotFound."""
    try:
        return change(old)
    except NotFound:
        if sure:
            raise
        return old
