"""One step of a roll-out: what the plan says is stored first, then done."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence, Set
from dataclasses import replace
from typing import Final

from nanny.actions import reports
from nanny.actions.effects import Effects, keys_of, messages_of
from nanny.actions.progress_clock import ProgressClock
from nanny.actions.subject import Subject
from nanny.automaton.service import Running
from nanny.automaton.states import Event
from nanny.rollout.plan import NOT_SWITCHED, Begin, Failed, Finished, GiveBack, Step, Switch, Wait, next_step
from nanny.rollout.views import SWITCHED, Key, Progress, Stage, Stages, at
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import READY, switched
from nanny.world.pictures import Picture
from nannyctl.plans.held import held
from nannypb.v1.records_pb2 import ActionRecord

SOON_S: Final = 0.5
SHRINK_AFTER_S: Final = 30.0
AT_ONCE: Final = 200
"""Instances that one step writes: more of them would keep orders waiting."""


_Verdicts = dict[Key, tuple[tuple[str, int, int], bool]]
"""By instance: epoch, uid and version of which it was found, and whether it is as described."""


class Activation:
    """A roll-out step by step. With the number 0 it repairs drift of the ACTIVE snapshot: that never fails."""

    def __init__(self, effects: Effects, progress: ProgressClock) -> None:
        self._effects, self._progress = effects, progress

    async def step(self, subject: Subject, running: Running, content: Content) -> float | None:
        """Return in how many seconds to look again, at the latest."""
        record = self._effects.record(subject, running)
        progress = progress_of(record)
        stages = stages_of(subject, content, own=progress.batch)
        if not running.number:
            progress = _forgiving(progress, stages)
        done = len(at(stages, Stage.DONE, Stage.SETTLING))
        to_switch = len(at(stages, *NOT_SWITCHED).intersection(progress.batch))
        mark = done, progress.batch, record.granted, to_switch, frozenset(subject.away)
        stalled_s = self._progress.stalled_s(subject.id, running.number, mark)
        if progress.batch and not record.granted:
            return await self._ask(subject, running, record, stalled_s)
        step = next_step(subject.policy, stages, progress, stalled_s)
        return await self._do(step, subject, running, content, record)

    async def _do(
        self, step: Step, subject: Subject, running: Running, content: Content, record: ActionRecord
    ) -> float | None:
        match step:
            case Begin(batch, costs):
                return await self._begin(subject, running, record, batch, costs)
            case Switch(instances):
                return await self._switch(subject, running, content, record, instances)
            case GiveBack(failed):
                return await self._give_back(subject, running, record, failed)
            case Finished(why):
                return await self._end(subject, running, record, Event.DONE, why)
            case Failed(why) if running.number:
                return await self._end(subject, running, record, Event.FAILED, why)
            case Failed(why) | Wait(why):
                return await self._say(subject, running, record, why)

    async def give_back_if_ready(self, subject: Subject, running: Running, content: Content) -> float | None:
        """While the service is paused: a batch that is ready gives its leave back. Nothing else is done."""
        record = self._effects.record(subject, running)
        if not record.batch:
            return None
        done = at(stages_of(subject, content), Stage.DONE)
        if record.granted and not done.issuperset(keys_of(record.batch)):
            return SOON_S
        await self._give_back(subject, running, record, ())
        return None

    async def _begin(
        self, subject: Subject, running: Running, record: ActionRecord, batch: Sequence[Key], costs: Sequence[Key]
    ) -> float:
        record.batch.extend(messages_of(batch))
        asks = bool(costs) and bool(self._effects.leave.address)
        record.granted = not asks
        if asks:
            record.cms_task = f"nanny-{subject.id}-{running.number}-{record.batches_done}-{len(batch)}"
        said = "" if asks or not costs else ", by max_unavailable alone: there is no CMS"
        record.message = f"batch {record.batches_done + 1}: {_many(batch)}{said}"
        await self._effects.store(subject, running, record)
        return 0.0

    async def _ask(self, subject: Subject, running: Running, record: ActionRecord, waited_s: float) -> float:
        batch = keys_of(record.batch)
        comment = f"roll-out of {running.snapshot}, batch {record.batches_done + 1}"
        answer = await self._effects.ask(record.cms_task, subject, batch, comment)
        if answer.granted:
            record.granted, record.message = True, f"batch {record.batches_done + 1}: {_many(batch)}"
            await self._effects.store(subject, running, record)
            return 0.0
        record.message = f"waiting for the CMS to approve {_many(batch)}: {answer.why}"
        fewer = _fewer(len(batch), answer.at_most, waited_s)
        if fewer and await self._effects.leave.give_back(record.cms_task):
            record.at_most, record.cms_task = fewer, ""
            record.message = f"asking for {fewer} at once: the CMS does not approve {len(batch)}: {answer.why}"
            del record.batch[:]
        await self._effects.store(subject, running, record)
        return 0.0 if fewer and not record.cms_task else answer.retry_s

    async def _switch(
        self, subject: Subject, running: Running, content: Content, record: ActionRecord, instances: Sequence[Key]
    ) -> float | None:
        writes = []
        for key in instances[:AT_ONCE]:
            after = switched(content, key, subject.held(key), subject.stamp)
            if after is not None:
                writes.append(subject.write(key, after))
        written = await self._effects.write(subject, running, record, writes)
        if written.refused:
            (location, name), why = next(iter(written.refused.items()))
            failed = f"HQ refuses {name} ({location}): {why}"
            if running.number:
                return await self._end(subject, running, record, Event.FAILED, failed)
            return await self._say(subject, running, record, failed)
        if written.waits:
            await self._say(subject, running, record, written.message)
            return written.retry_s
        return 0.0 if written.versions or written.deleted else SOON_S

    async def _give_back(
        self, subject: Subject, running: Running, record: ActionRecord, failed: Sequence[Key]
    ) -> float:
        if record.cms_task and not await self._effects.leave.give_back(record.cms_task):
            return await self._say(subject, running, record, _ends(record.cms_task))
        record.batches_done += bool(record.batch) and record.granted
        record.cms_task, record.granted = "", False
        record.failed.extend(messages_of(failed))
        del record.batch[:]
        await self._effects.store(subject, running, record)
        return 0.0

    async def _end(
        self, subject: Subject, running: Running, record: ActionRecord, outcome: Event, why: str
    ) -> float | None:
        if record.cms_task and not await self._effects.leave.give_back(record.cms_task):
            return await self._say(subject, running, record, _ends(record.cms_task))
        if not running.number:
            return None
        done = f"active; left out: {why}" if outcome is Event.DONE and why else why
        await self._effects.end(subject, running, outcome, done)
        return None

    async def _say(self, subject: Subject, running: Running, record: ActionRecord, why: str) -> float:
        record.message = why
        await self._effects.store(subject, running, record)
        return SOON_S


def _fewer(asked: int, at_most: int, waited_s: float) -> int:
    """A smaller number to ask for: the most that can be granted, or half after a while; 0: keep waiting."""
    if 0 < at_most < asked:
        return at_most
    return asked // 2 if waited_s > SHRINK_AFTER_S else 0


def _ends(task_id: str) -> str:
    return f"waits for the CMS to end task {task_id}: hqctl disruptions why {task_id}"


def stages_of(subject: Subject, content: Content, own: Collection[Key] = ()) -> Stages:
    """The instances that the snapshot names, as the plan sees them; those with targets of their own are left out.

    Args:
        own: the current batch: it counts as held by this roll-out, whoever else holds it.
    """
    picture, min_ready_s = subject.picture, subject.policy.min_ready_s
    verdicts: _Verdicts = {}

    def judge(key: Key) -> Stage | None:
        return _stage(picture, content, key, min_ready_s, verdicts) if key in content.placements else None

    tally = picture.tally(("roll-out", content.id, min_ready_s), judge, content.placements)
    stages = {stage: set(keys) for stage, keys in tally.groups(Stage.SETTLING).items()}
    not_ours = (
        {key for key in content.placements if key[0] in subject.policy.leave_out} if subject.policy.leave_out else set()
    )
    _move(stages, {*not_ours, *subject.own_targets}, None)
    if subject.away:
        _move(stages, {key for key in content.placements if key[0] in subject.away} - not_ours, Stage.AWAY)
    held = subject.held_by_others.difference(own, at(stages, Stage.DONE, Stage.AWAY), not_ours, subject.own_targets)
    _move(stages, held.intersection(content.placements), Stage.HELD)
    return stages


def _move(stages: dict[Stage, set[Key]], keys: Set[Key], to: Stage | None) -> None:
    """Move keys from any stage to one stage, or (None) out of all."""
    if not keys:
        return
    for found in stages.values():
        found -= keys
    if to is not None:
        stages.setdefault(to, set()).update(keys)


def progress_of(record: ActionRecord) -> Progress:
    """The progress stored in the record."""
    failed = frozenset(keys_of(record.failed))
    return Progress(keys_of(record.batch), record.batches_done, failed, record.at_most)


def _forgiving(progress: Progress, stages: Stages) -> Progress:
    """A repair does not wait for instances that went down by themselves, although they leave less room."""
    down = at(stages, Stage.UNDER_WAY, Stage.UNHEARD, Stage.SETTLING) - set(progress.batch)
    return replace(progress, failed=progress.failed | down)


def _stage(
    picture: Picture,
    content: Content,
    key: Key,
    min_ready_s: float,
    verdicts: _Verdicts,
) -> Stage:
    instance = picture.instances.get(key)
    if instance is None:
        return Stage.DOWN
    stage = reports.stage_of(instance, content.id, picture.ready_s(key, content.id), min_ready_s)
    if stage in SWITCHED and not _is_as_described(picture, content, key, verdicts):
        # Labels, ports or the revision itself differ from the description: written again, at the same cost.
        if stage in (Stage.SETTLING, Stage.UNDER_WAY) and reports.is_ready(instance):
            return Stage.UNSEEN
        return Stage.UP if reports.is_ready(instance) else Stage.DOWN
    return stage


def _is_as_described(picture: Picture, content: Content, key: Key, verdicts: _Verdicts) -> bool:
    """Switching it would write nothing. Computed once per version of an instance, as agents report often."""
    instance = picture.instances[key]
    epoch = picture.seen[key[0]].epoch
    version = epoch, instance.meta.uid, instance.meta.version
    known, verdict = verdicts.get(key, (None, False))
    if known != version:
        verdict = switched(content, key, held(instance, epoch), "") is None
        verdicts[key] = version, verdict
    return verdict


_SHOWN: Final = 5


def differences(subject: Subject, content: Content) -> list[str]:
    """One line for each of the first few instances, and a count of the others; empty: there are none."""
    found = at(stages_of(subject, content), Stage.UP, Stage.DOWN, Stage.SILENT)
    lines = [_line(subject, content, key) for key in heapq.nsmallest(_SHOWN, found)]
    return [*lines, *([f"and {len(found) - _SHOWN} more instances"] if len(found) > _SHOWN else [])]


def _line(subject: Subject, content: Content, key: tuple[str, str]) -> str:
    location, name = key
    instance = subject.instances.get(key)
    if instance is None:
        return f"{name} ({location}) is not in HQ"
    ready = next((revision.id for revision in instance.spec.revision if revision.target == READY), "")
    if ready != content.id:
        return f"{name} ({location}) wants {ready or 'nothing'} READY, not {content.id}"
    return f"{name} ({location}) is not as snapshot {content.id} describes it"


def _many(batch: Sequence[Key]) -> str:
    return "1 instance" if len(batch) == 1 else f"{len(batch)} instances"
