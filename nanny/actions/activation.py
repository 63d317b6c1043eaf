"""One step of a roll-out: what the plan says is stored first, then done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from control.waves import weight_in
from nanny.actions.checks import RolloutChecks
from nanny.actions.contents import Contents
from nanny.actions.effects import Effects, keys_of, messages_of
from nanny.actions.health import health_of
from nanny.actions.progress_clock import Meter, ProgressClock
from nanny.actions.stages import ailing_instances, moved_instances, restarts_of, stages_of
from nanny.actions.subject import ServiceContext
from nanny.automaton.service import RunningAction
from nanny.automaton.states import SnapshotEvent
from nanny.records.services import steps_of, tuple_of
from nanny.rollout.judge import Findings, is_calm
from nanny.rollout.moves import (
    AskCheck,
    Begin,
    Failed,
    Finished,
    GiveBack,
    Prove,
    Step,
    StepOver,
    Switch,
    Wait,
)
from nanny.rollout.plan import awaited_keys, next_step
from nanny.rollout.views import NOT_SWITCHED, Key, RolloutProgress, Stage, Stages, keys_in
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import switched_instance
from nanny.world.leave import ApprovalAnswer
from nannypb.v1.records_pb2 import ActionRecord, HealthRecord
from nannypb.v1.service_pb2 import RolloutStep

SOON_S: Final = 0.5
REPORTS_S: Final = 2.0
SHRINK_AFTER_S: Final = 30.0
MOST_PUT_OFF: Final = 20
"""Instances put off at most: if more are hopeless, all are, most likely, and the CMS is not asked for each at once."""
AT_ONCE: Final = 200
"""Instances that one step writes: more of them would keep orders waiting."""


class Activation:
    """A roll-out step by step. The action with number 0 is a repair of drift of the ACTIVE snapshot: it never fails."""

    def __init__(self, effects: Effects, progress: ProgressClock, contents: Contents, checks: RolloutChecks) -> None:
        self._effects, self._progress, self._contents, self._checks = effects, progress, contents, checks

    async def step(self, subject: ServiceContext, running: RunningAction, content: Content) -> float | None:
        """Return in how many seconds to look again, at the latest."""
        record = self._effects.record(subject, running)
        meter = self._progress.meter(subject.id, record)
        if not record.begun:
            _begin(subject, content, record, is_trusted=not running.number or self._ran_before(subject, content))
        _skip_steps(subject, content, record)
        stages = meter.evidence.skip_proved(stages_of(subject, content, own=keys_of(record.batch)), fallen_keys(record))
        findings = meter.evidence.update(
            stages, restarts_of(subject, content), progress_of(record), meter.now_s, subject.policy.soak_s
        )
        if running.number and any(findings):
            _note(record, findings)
        progress = _progress(subject, running, record, stages)
        _measure(meter, subject, record, stages, progress, is_disturbed=bool(findings.fell or findings.failed))
        if _holds(progress) and subject.is_whole:
            meter.note_held()
        meter.save(record)
        await self._effects.store(subject, running, record)
        if progress.batch and not record.granted:
            if _is_outdated(subject, running, record, stages):
                return await self._give_back(subject, running, record, ())
            return await self._ask(subject, running, record, stages, meter.stalled_s)
        step = next_step(subject.policy, stages, progress, meter.stalled_s, meter.calm_s, meter.step_s)
        return await self._do(step, subject, running, content, record)

    async def _do(
        self, step: Step, subject: ServiceContext, running: RunningAction, content: Content, record: ActionRecord
    ) -> float | None:
        match step:
            case Begin(batch, costs):
                return await self._begin(subject, running, record, batch, costs)
            case Switch(instances):
                return await self._switch(subject, running, content, record, instances)
            case GiveBack(failed):
                return await self._give_back(subject, running, record, failed)
            case Wait(why):
                return await self._say(subject, running, record, why)
            case StepOver():
                return await self._begin_next_step(subject, running, record)
            case AskCheck(name, where):
                return await self._ask_check(subject, running, record, name, where)
            case Prove() | Finished() | Failed():
                return await self._conclude(step, subject, running, record, content)

    async def _conclude(
        self,
        step: Prove | Finished | Failed,
        subject: ServiceContext,
        running: RunningAction,
        record: ActionRecord,
        content: Content,
    ) -> float | None:
        """End the first batch, or the roll-out. A repair has neither: it only says why it would fail."""
        if isinstance(step, Failed):
            if running.number:
                return await self._end(subject, running, record, SnapshotEvent.FAILED, step.why)
            return await self._say(subject, running, record, step.why)
        if not running.number:
            return None
        # Instances of a host that died lately are still called ready: each instance has to have reported since.
        if silent := await self._effects.silent(subject, step.instances):
            location, name = min(silent)
            more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
            await self._say(subject, running, record, f"waits for a report of {name} ({location}){more}")
            return REPORTS_S
        if isinstance(step, Finished):
            return await self._end(subject, running, record, SnapshotEvent.DONE, step.why, health_of(subject, content))
        record.proven = True
        await self._effects.store(subject, running, record)
        return 0.0

    async def _begin_next_step(self, subject: ServiceContext, running: RunningAction, record: ActionRecord) -> float:
        if record.steps_over < len(record.step) and _waits(record.step[record.steps_over]):
            record.order_begin_unix_ms = 0  # after a step that waits, the order counts for windows as begun anew
        record.steps_over += 1
        record.step_ms, record.check_result = 0, ""
        await self._effects.store(subject, running, record)
        return 0.0

    async def _ask_check(
        self, subject: ServiceContext, running: RunningAction, record: ActionRecord, name: str, where: str
    ) -> float | None:
        """The step's time counts while the check is within its bound, and stands still while that is not known."""
        check = next((one for one in record.check if one.name == name), None)
        if check is None:
            return await self._say(subject, running, record, f"{where}: it has no check {name}: order it again")
        verdict = await self._checks.verdict(subject, running, check)
        record.check_result = verdict.words
        if verdict.is_within is False:
            return await self._end(subject, running, record, SnapshotEvent.FAILED, f"check {name}: {verdict.words}")
        if verdict.is_within and subject.is_whole:
            self._progress.meter_of(subject.id, record).note_held()
        return await self._say(subject, running, record, where if verdict.is_within else f"{where}: {verdict.words}")

    def _ran_before(self, subject: ServiceContext, content: Content) -> bool:
        """Whether the last ACTIVE snapshot ran the same."""
        last = subject.service.last_active
        return bool(last) and self._contents.revision_id(subject.id, last) == content.revision_id

    async def give_back_if_ready(
        self, subject: ServiceContext, running: RunningAction, content: Content
    ) -> float | None:
        """While the service is paused, give back the leave of a batch that is ready, or is not by the deadline."""
        record = self._effects.record(subject, running)
        if not record.batch:
            return None
        done = keys_in(stages_of(subject, content), Stage.DONE)
        since_ms = subject.record.paused.time.ToMilliseconds()
        paused_s = (self._effects.controller.clock.wall_ms() - since_ms) / 1000
        is_ready = done.issuperset(keys_of(record.batch))
        if record.granted and not is_ready and paused_s < subject.policy.progress_deadline_s:
            return SOON_S
        await self._give_back(subject, running, record, ())
        return None

    async def _begin(
        self,
        subject: ServiceContext,
        running: RunningAction,
        record: ActionRecord,
        batch: Sequence[Key],
        costs: Sequence[Key],
    ) -> float:
        record.batch.extend(messages_of(batch))
        asks = bool(costs) and bool(self._effects.leave.address)
        record.calm_ms = record.stalled_ms = record.step_ms = 0
        # An instance that takes another's place is looked at for the whole time, too.
        self._progress.meter_of(subject.id, record).begin_step()
        record.granted = not asks
        if asks:
            record.cms_task = _task_id(subject, running, record)
        said = "" if asks or not costs else ", by max_unavailable alone: there is no CMS"
        record.message = f"batch {record.batches_done + 1}: {_many(batch)}{said}"
        await self._effects.store(subject, running, record, begins=True)
        return 0.0

    async def _ask(
        self, subject: ServiceContext, running: RunningAction, record: ActionRecord, stages: Stages, waited_s: float
    ) -> float:
        batch = keys_of(record.batch)
        comment = f"roll-out of {running.snapshot}, batch {record.batches_done + 1}"
        answer = await self._effects.ask(record.cms_task, subject, batch, comment, record.order_begin_unix_ms)
        if answer.granted:
            if running.number and not record.order_begin_unix_ms:  # a repair is no order
                record.order_begin_unix_ms = self._effects.controller.clock.wall_ms()
            record.at_most = 0  # what kept the batch small may be gone
            put_off = [key for key in keys_of(record.put_off) if key not in batch]
            del record.put_off[:]
            record.put_off.extend(messages_of(put_off))
            record.granted, record.message = True, f"batch {record.batches_done + 1}: {_many(batch)}"
            await self._effects.store(subject, running, record)
            return 0.0
        record.message = f"waiting for the CMS to approve {_many(batch)}: {answer.why}"
        if away := subject.away.keys() - subject.policy.leave_out:
            record.message += f"; {subject.policy.go_on_without(away)}"
        fewer = _fewer(len(batch), answer, waited_s)
        if _puts_off(batch, answer, record, stages, waited_s):
            return await self._put_off(subject, running, record)
        if fewer and await self._effects.leave.give_back(record.cms_task):
            record.at_most, record.cms_task = fewer, ""
            record.message = f"asking for {fewer} at once: the CMS does not approve {len(batch)}: {answer.why}"
            del record.batch[:]
        await self._effects.store(subject, running, record)
        return 0.0 if fewer and not record.cms_task else answer.retry_s

    async def _put_off(self, subject: ServiceContext, running: RunningAction, record: ActionRecord) -> float:
        """Put the one instance of the batch behind all others: it waits for people, or for another budget."""
        if not await self._effects.leave.give_back(record.cms_task):
            return await self._say(subject, running, record, _ends(record.cms_task))
        [one] = record.batch
        kept = [key for key in record.put_off if key != one]
        del record.put_off[:]
        record.put_off.extend([*kept, one][-MOST_PUT_OFF:])
        del record.batch[:]
        record.cms_task, record.at_most = "", 0
        await self._effects.store(subject, running, record)
        return 0.0

    async def _switch(
        self,
        subject: ServiceContext,
        running: RunningAction,
        content: Content,
        record: ActionRecord,
        instances: Sequence[Key],
    ) -> float | None:
        writes, share = [], weight_in(steps_of(record.step), record.steps_over)
        for key in instances[:AT_ONCE]:
            after = switched_instance(content, key, subject.held_instance(key), subject.stamp, share)
            if after is not None:
                writes.append(subject.write(key, after))
        written = await self._effects.write(subject, running, record, writes)
        if written.refused:
            (location, name), why = next(iter(written.refused.items()))
            failed = f"HQ refuses {name} ({location}): {why}"
            if running.number:
                return await self._end(subject, running, record, SnapshotEvent.FAILED, failed)
            return await self._say(subject, running, record, failed)
        if written.waits:
            await self._say(subject, running, record, written.message)
        return 0.0 if written.versions or written.deleted else written.retry_s or SOON_S

    async def _give_back(
        self, subject: ServiceContext, running: RunningAction, record: ActionRecord, failed: Sequence[Key]
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
        self,
        subject: ServiceContext,
        running: RunningAction,
        record: ActionRecord,
        outcome: SnapshotEvent,
        why: str,
        health: HealthRecord | None = None,
    ) -> float | None:
        if record.cms_task and not await self._effects.leave.give_back(record.cms_task):
            return await self._say(subject, running, record, _ends(record.cms_task))
        if not running.number:
            return None
        done = f"active; left out: {why}" if outcome is SnapshotEvent.DONE and why else why
        await self._effects.end(subject, running, outcome, done, record.ailing, health)
        return None

    async def _say(self, subject: ServiceContext, running: RunningAction, record: ActionRecord, why: str) -> float:
        record.message = why
        await self._effects.store(subject, running, record)
        return SOON_S


def _fewer(asked: int, answer: ApprovalAnswer, waited_s: float) -> int:
    """A smaller number to ask for: the most that can be granted, or half after a while; 0: keep waiting.

    Only a budget may have room for fewer: a freeze, a limit or a CMS that does not answer has none.
    """
    if 0 < answer.at_most < asked:
        return answer.at_most
    if answer.is_hopeless:
        return asked // 2  # so the hopeless one is found at once
    return asked // 2 if answer.by_budget and waited_s > SHRINK_AFTER_S else 0


def _task_id(subject: ServiceContext, running: RunningAction, record: ActionRecord) -> str:
    """The task id of the waiting batch; other attributes of the service change it, as they change what it asks for."""
    parts = running.number, record.batches_done, len(record.batch), subject.record.info_version or 1
    return f"nanny-{subject.id}-{'-'.join(str(part) for part in parts)}"


def _is_outdated(subject: ServiceContext, running: RunningAction, record: ActionRecord, stages: Stages) -> bool:
    """Whether the request that waits for approval differs from one made now.

    A request for instances that cannot be switched now makes way for others.
    """
    can_be_switched = keys_in(stages, *NOT_SWITCHED)
    return record.cms_task != _task_id(subject, running, record) or not can_be_switched.issuperset(
        keys_of(record.batch)
    )


def _puts_off(
    batch: Sequence[Key], answer: ApprovalAnswer, record: ActionRecord, stages: Stages, waited_s: float
) -> bool:
    """Whether a single hopeless instance makes way: for others at once, for the next one put off after a while."""
    if len(batch) > 1 or not answer.is_hopeless:
        return False
    others = keys_in(stages, Stage.UP, Stage.SILENT) - set(keys_of(record.put_off)) - set(batch)
    is_at_once = bool(others) and len(record.put_off) < MOST_PUT_OFF
    return is_at_once or waited_s > SHRINK_AFTER_S


def _ends(task_id: str) -> str:
    return f"waits for the CMS to end task {task_id}: hqctl disruptions why {task_id}"


def _waits(step: RolloutStep) -> bool:
    return bool(step.hold_s or step.promote or step.check)


def progress_of(record: ActionRecord) -> RolloutProgress:
    """The progress stored in the record."""
    return RolloutProgress(
        keys_of(record.batch),
        record.batches_done,
        frozenset(keys_of(record.failed)),
        fallen_keys(record),
        frozenset(keys_of(record.ailing)),
        record.at_most,
        keys_of(record.put_off),
        record.proven,
        record.trusted,
        steps_of(record.step, record.check),
        record.steps_over,
    )


def _progress(subject: ServiceContext, running: RunningAction, record: ActionRecord, stages: Stages) -> RolloutProgress:
    """Progress, including the steps that people promoted meanwhile; that of a repair is forgiving."""
    if not running.number:
        return _forgiving(progress_of(record), stages)
    one = tuple_of(subject.record, running.snapshot)
    return replace(progress_of(record), promoted=one.promoted if one is not None else 0)


def _holds(progress: RolloutProgress) -> bool:
    """Whether a hold is under way: its time counts."""
    step = progress.step
    return not progress.batch and step is not None and bool(step.hold_s) and not step.check


def fallen_keys(record: ActionRecord) -> frozenset[Key]:
    return frozenset(keys_of(record.fell))


def _begin(subject: ServiceContext, content: Content, record: ActionRecord, *, is_trusted: bool) -> None:
    """Note the state before anything is switched. A roll-back inherits the ailing instances of the failed roll-out."""
    is_back = subject.service.rolling_back
    record.begun = True
    record.trusted = record.proven = is_trusted
    ailing = ailing_instances(subject, content)
    if is_back:  # an instance that moves back may move to a dead node
        ailing = {*keys_of(subject.record.ailing), *moved_instances(subject, content)}
    record.ailing.extend(messages_of(sorted(ailing)))
    # No steps if nothing ran before, or if the snapshot has served already: there is nothing to be careful with.
    if subject.service.last_active and not (is_back or is_trusted):
        record.step.extend(subject.record.info.rollout.step)
        named = {step.check for step in record.step}
        record.check.extend(check for check in subject.record.info.rollout.check if check.name in named)


def _skip_steps(subject: ServiceContext, content: Content, record: ActionRecord) -> None:
    """Drop the steps if the order says so: from the start, or given again while its steps are under way."""
    one = tuple_of(subject.record, content.id)
    if record.step and one is not None and one.order.skip_steps:
        del record.step[:], record.check[:]
        record.steps_over, record.step_ms, record.check_result = 0, 0, ""


def _note(record: ActionRecord, findings: Findings) -> None:
    fell = (fallen_keys(record) | findings.fell) - findings.recovered
    del record.fell[:]
    record.fell.extend(messages_of(sorted(fell)))
    record.failed.extend(messages_of(sorted(findings.failed)))


def _measure(
    meter: Meter,
    subject: ServiceContext,
    record: ActionRecord,
    stages: Stages,
    progress: RolloutProgress,
    *,
    is_disturbed: bool,
) -> None:
    to_switch = len(keys_in(stages, *NOT_SWITCHED).intersection(progress.batch))
    meter.note_mark(
        (
            meter.evidence.progress,
            progress.batch,
            record.granted,
            to_switch,
            frozenset(subject.away),
            record.proven,
            record.steps_over,
        )
    )
    is_waiting = bool(progress.batch) or not progress.proven or bool(awaited_keys(stages, progress))
    if progress.step is not None and not is_waiting:
        meter.stalled_s = 0.0  # a step that takes its time is no lack of progress
    is_calm_now = not progress.batch and is_calm(stages, progress)
    meter.note_calm(is_calm=is_calm_now, is_disturbed=is_disturbed or bool(to_switch))


def _forgiving(progress: RolloutProgress, stages: Stages) -> RolloutProgress:
    """A repair does not wait for instances that went down by themselves, although they leave less room."""
    down = keys_in(stages, Stage.UNDER_WAY, Stage.UNHEARD, Stage.UNTOUCHED, Stage.SETTLING) - set(progress.batch)
    return replace(progress, failed=progress.failed | down)


def _many(batch: Sequence[Key]) -> str:
    return "1 instance" if len(batch) == 1 else f"{len(batch)} instances"
