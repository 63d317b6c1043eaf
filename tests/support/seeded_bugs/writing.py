"""Bugs in writing: conditions, acknowledgements, unknown outcomes, and what belongs together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hq.errors import AlreadyExists
from hq.memory import statuses
from hq.memory.entry import Entry
from hq.registry import changes
from hq.registry.changes import WritePlan
from hq.registry.preconditions import Precondition
from hq.registry.writes import Writes
from store.commit import Committer, Conflict
from store.flight import InFlightTxn
from store.port import Applied, Commit, Unavailable, UnknownOutcome, Write
from tests.support.seeded_bugs import scenes
from tests.support.seeded_bugs.bug import bug

Patch = pytest.MonkeyPatch


@bug("A write is acknowledged when it is queued, before its commit.", "DURABLE", scenes.lost_answers)
def acknowledged_before_commit(patch: Patch) -> None:
    commit = Committer.commit
    kept: set[asyncio.Task[int]] = set()

    async def early(self: Committer, *args: Any, **options: Any) -> int:
        task = asyncio.create_task(commit(self, *args, **options))
        kept.add(task)
        task.add_done_callback(lambda done: done.exception())
        await asyncio.sleep(0)
        _, head = await self._store.get(self._word_key)
        return head + 1

    patch.setattr(Committer, "commit", early)


@bug("Records are put without comparing what they were made from.", "EXACT", scenes.behind)
def compare_skipped(patch: Patch) -> None:
    patch.setattr("hq.registry.writes.Write", lambda when, puts=(), deletes=(): Write((), puts, deletes))


@bug("The version that the caller named is not looked at.", "EXACT", scenes.calm)
def precondition_ignored(patch: Patch) -> None:
    update = Writes.update

    async def blind(self: Writes, instance: Any, mask: Any, _: Precondition, *args: Any, **options: Any) -> Entry:
        return await update(self, instance, mask, Precondition(), *args, **options)

    patch.setattr(Writes, "update", blind)


@bug("A conflict is answered as if the write had been stored.", "DURABLE", scenes.calm)
def conflict_answered_as_ok(patch: Patch) -> None:
    write = Writes._write

    async def pleased(self: Writes, instance_id: str, plan: WritePlan, entry: Entry | None, deadline: float) -> Entry:
        try:
            return await write(self, instance_id, plan, entry, deadline)
        except Conflict as conflict:
            return changes.as_stored(plan, entry, max(conflict.modified.values()))

    patch.setattr(Writes, "_write", pleased)


@bug("All writes of a group are acknowledged if one of them took place.", "DURABLE", scenes.behind)
def group_answered_as_one(patch: Patch) -> None:
    land = Committer._land

    def all_or_nothing(self: Committer, flight: InFlightTxn, commit: Commit) -> None:
        won = any(isinstance(outcome, Applied) for outcome in commit.outcomes[:-1])
        outcomes = [Applied() for _ in commit.outcomes] if won else commit.outcomes
        land(self, flight, Commit(commit.revision, commit.guarded, list(outcomes)))

    patch.setattr(Committer, "_land", all_or_nothing)


@bug("A transaction without an answer is taken for a failed one.", "SETTLED", scenes.lost_answers)
def unknown_taken_for_failure(patch: Patch) -> None:
    async def settle(self: Committer, flight: InFlightTxn, error: UnknownOutcome) -> None:
        for item in flight.items:
            item.fail(Unavailable("nothing was stored"))

    patch.setattr(Committer, "_settle", settle)


@bug("A transaction without an answer is taken for a stored one.", "DURABLE", scenes.lost_answers)
def unknown_taken_for_success(patch: Patch) -> None:
    async def settle(self: Committer, flight: InFlightTxn, error: UnknownOutcome) -> None:
        _, head = await self._store.get(self._word_key)
        for item in flight.items:
            item.answer(head)

    patch.setattr(Committer, "_settle", settle)


@bug(
    "A transaction without an answer is sent again, and no session word shuts the first one out.",
    "SETTLED",
    scenes.lost_answers,
)
def unknown_sent_again(patch: Patch) -> None:
    async def settle(self: Committer, flight: InFlightTxn, error: UnknownOutcome) -> None:
        flight.call_off()
        self._queue.put_back(flight.items)

    patch.setattr(Committer, "_settle", settle)


@bug("An id that is taken is created once more.", "EXACT", scenes.calm)
def created_over(patch: Patch) -> None:
    create = Writes.create

    async def over(self: Writes, instance: Any, request_id: str, deadline: float, **options: Any) -> Entry:
        entry = self._r.cache.get(instance.meta.id)
        if entry is None:
            return await create(self, instance, request_id, deadline, **options)
        draft = changes.new_draft(instance, entry.traits.uid + 1, "", 0)
        plan = WritePlan(draft, statuses.empty_record(draft.meta.uid, 0, 0), request_id)
        try:
            return await self._write(instance.meta.id, plan, None, deadline)
        except Conflict:
            raise AlreadyExists(instance.meta.id, entry.version) from None

    patch.setattr(Writes, "create", over)


@bug("A replica that is behind deletes by what it remembers.", "EXACT", scenes.behind)
def stale_replica_deletes(patch: Patch) -> None:
    async def delete(self: Writes, instance_id: str, demanded: Precondition, deadline: float, *_: Any) -> int:
        keys = self._r.key_names
        gone = (keys.spec(instance_id), keys.status(instance_id), keys.secrets(instance_id))
        return await self._r.committer.commit(instance_id, Write((), deletes=gone), 0, deadline)

    patch.setattr(Writes, "delete", delete)


@bug("An id that another replica freed is refused as taken, from memory.", "EXACT", scenes.behind)
def freed_id_refused(patch: Patch) -> None:
    create = Writes.create

    async def hasty(self: Writes, instance: Any, *args: Any, **options: Any) -> Entry:
        if (entry := self._r.cache.get(instance.meta.id)) is not None:
            raise AlreadyExists(instance.meta.id, entry.version)
        return await create(self, instance, *args, **options)

    patch.setattr(Writes, "create", hasty)


@bug("The secrets of a deleted instance stay behind.", "KEPT", scenes.calm)
def secrets_left_behind(patch: Patch) -> None:
    def spared(when: Any, puts: Any = (), deletes: Any = ()) -> Write:
        return Write(when, puts, [key for key in deletes if b"/secrets/" not in key])

    patch.setattr("hq.registry.writes.Write", spared)


@bug("Every write of a spec starts its status anew.", "KEPT", scenes.calm)
def status_lost_with_the_spec(patch: Patch) -> None:
    plan = changes.change

    def forgetful(
        entry: Entry, old: changes.InstanceDraft, new: changes.InstanceDraft, wall_ms: int, epoch_at: int
    ) -> WritePlan:
        return plan(entry, old, new, wall_ms, epoch_at)._replace(status=statuses.empty_record(entry.traits.uid, 0, 0))

    patch.setattr(changes, "change", forgetful)


@bug("The status of a revision that was removed stays.", "KEPT", scenes.calm)
def status_kept_without_a_revision(patch: Patch) -> None:
    patch.setattr(changes, "has_dropped_revision", lambda before, after: [])
