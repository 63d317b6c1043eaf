"""One step of an action that works on all instances at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from nanny.actions.effects import Effects, keys_of, messages_of
from nanny.actions.levels import look_at
from nanny.actions.needs import Needs
from nanny.actions.progress_clock import ProgressClock
from nanny.actions.subject import Look, ServiceContext
from nanny.automaton.service import RunningAction
from nanny.automaton.states import Action, SnapshotEvent, Target
from nanny.rollout.views import Key
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import INSTALLED, lowered_instance
from nannypb.v1.records_pb2 import ActionRecord

HEARD_S: Final = 10.0
"""An agent that has said nothing for so long after it was given work is not waited for."""
SOON_S: Final = 1.0
LATER_S: Final = 10.0
"""A change in HQ causes a step at once; this is for deadlines, and for changes that are missed."""


class LevelSteps:
    """Looks, writes what is missing, waits, ends."""

    def __init__(self, effects: Effects, progress: ProgressClock) -> None:
        self._effects, self._progress = effects, progress

    async def step(
        self,
        subject: ServiceContext,
        running: RunningAction,
        content: Content,
        needs: Needs,
        kept: Collection[Key] = (),
    ) -> float | None:
        """Return in how many seconds to look again, at the latest. `needs`, `kept`: see `look_at`."""
        record = self._effects.record(subject, running)
        waited_s = (self._effects.controller.clock.wall_ms() - record.since_unix_ms) / 1000
        last = self._effects.paused_locations()
        look = look_at(subject, content, running.action, waited_s >= HEARD_S, kept, last, needs)
        if record.batch and record.batch[0].id not in {key[1] for key in look.costly}:
            await self._give_back(subject, running, record)
        if look.costly:
            return await self._take_one(subject, running, content, record, look)
        if look.writes:
            return await self._write(subject, running, record, look)
        again_s = await self._wait(subject, running, record, look)
        return again_s and min(again_s, max(0.1, HEARD_S - waited_s) if waited_s < HEARD_S else again_s)

    async def _write(
        self, subject: ServiceContext, running: RunningAction, record: ActionRecord, look: Look
    ) -> float | None:
        record.message = look.message(subject.policy)
        written = await self._effects.write(subject, running, record, look.writes)
        if written.refused:
            (location, name), why = next(iter(written.refused.items()))
            await self._effects.end(subject, running, SnapshotEvent.FAILED, f"HQ refuses {name} ({location}): {why}")
            return None
        if written.waits:
            record.message = written.message
            await self._effects.store(subject, running, record)
        return 0.0 if written.versions or written.deleted else written.retry_s or SOON_S

    async def _wait(
        self, subject: ServiceContext, running: RunningAction, record: ActionRecord, look: Look
    ) -> float | None:
        deadline_s = subject.policy.progress_deadline_s
        meter = self._progress.meter(subject.id, record)
        meter.note_mark((look.done, len(look.waiting), frozenset(look.away)))
        meter.save(record)
        stalled_s = meter.stalled_s
        is_late = stalled_s >= deadline_s
        if look.is_over or _may_go_on(subject, running, look, is_late=is_late):
            outcome = SnapshotEvent.FAILED if look.left else SnapshotEvent.DONE
            await self._effects.end(subject, running, outcome, _remark(subject, look))
            return None
        if look.waiting and is_late:
            await self._effects.end(
                subject,
                running,
                SnapshotEvent.FAILED,
                f"no progress for {stalled_s:.0f} s: {look.message(subject.policy)}",
            )
            return None
        record.message = look.message(subject.policy) or record.message
        await self._effects.store(subject, running, record)
        return min(LATER_S, max(0.1, deadline_s - stalled_s)) if look.waiting else LATER_S

    async def _take_one(
        self, subject: ServiceContext, running: RunningAction, content: Content, record: ActionRecord, look: Look
    ) -> float | None:
        """Switch one serving instance off, with leave."""
        key = keys_of(record.batch)[0] if record.batch else look.costly[0]
        record.cms_task = record.cms_task or f"nanny-{subject.id}-{running.number}-{key[0]}-{key[1]}"
        del record.batch[:]
        record.batch.extend(messages_of([key]))
        await self._effects.store(subject, running, record)
        answer = await self._effects.ask(record.cms_task, subject, [key], f"{running.action} {running.snapshot}")
        if not answer.granted:
            look.waiting, look.why = [key], f"waiting for the CMS's approval: {answer.why}"
            return min(SOON_S, await self._wait(subject, running, record, look) or SOON_S)
        record.granted = True
        held = subject.held_instance(key)
        after = lowered_instance(content.revision_id, held, INSTALLED, subject.stamp) if held is not None else None
        if after is not None:
            await self._effects.write(subject, running, record, [subject.write(key, after)])
        return SOON_S

    async def _give_back(self, subject: ServiceContext, running: RunningAction, record: ActionRecord) -> None:
        if not record.cms_task or await self._effects.leave.give_back(record.cms_task):
            record.cms_task, record.granted = "", False
            del record.batch[:]
            await self._effects.store(subject, running, record)


def _may_go_on(subject: ServiceContext, running: RunningAction, look: Look, *, is_late: bool) -> bool:
    """Preparing a roll-out does not wait for a location that does not answer, nor for long for a few instances.

    The roll-out itself waits for both at its end. A snapshot that shall be PREPARED and no more is prepared everywhere.
    """
    state = subject.service.tuples.get(running.snapshot)
    if state is None or state.target is not Target.ACTIVE or running.action not in (Action.GENERATE, Action.PREPARE):
        return False
    waits = len(look.waiting)
    allowed = subject.policy.failures(look.done + waits) if is_late else 0
    return bool(look.done) and not look.writes and waits <= allowed


def _remark(subject: ServiceContext, look: Look) -> str:
    """Describe the instances that are left behind; empty: none."""
    if look.left:
        many = "1 instance, which is" if look.left == 1 else f"{look.left} instances, which are"
        return f"may still run on {many} left to the next roll-out"
    return f"goes on, these are left for last: {look.message(subject.policy)}" if look.waiting else ""
