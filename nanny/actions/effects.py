"""The effects of every action on its record, on HQ and on the CMS: intents first, effects after."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from control import Controller, Events, Refused
from control.errors import EventRefused
from hqclient import Client
from nanny.actions import reports
from nanny.actions.subject import ServiceContext
from nanny.actions.timelines import RolloutTimelines
from nanny.automaton.service import RunningAction, SnapshotState
from nanny.automaton.states import Action, Current, SnapshotEvent
from nanny.records import kinds
from nanny.records.outcomes import rolls_back
from nanny.rollout.views import Key
from nanny.world.leave import ApprovalAnswer, ApprovalPort, ApprovalRequest, Hold
from nanny.world.silences import silent_instances
from nanny.world.writing import InstanceWrite, InstanceWriter, Written
from nannypb.v1 import records_pb2
from nannypb.v1.records_pb2 import ActionEnd, ActionRecord, HealthRecord, InstanceKey, ServiceEvent

log = logging.getLogger(__name__)

_SHOWN_S: Final = 2.0
_DECLARED_EVERY_S: Final = 5.0
_OUTCOMES: Final = {
    SnapshotEvent.DONE: records_pb2.OUTCOME_DONE,
    SnapshotEvent.FAILED: records_pb2.OUTCOME_FAILED,
    SnapshotEvent.CANCELLED: records_pb2.OUTCOME_CANCELLED,
}


class Effects:
    """Effects of the acting process. `leave` approves them; `events` receives the outcomes of actions."""

    def __init__(
        self,
        controller: Controller,
        events: Events[ServiceEvent],
        writer: InstanceWriter,
        leave: ApprovalPort,
        locations: Mapping[str, Client],
    ) -> None:
        self.controller, self.leave = controller, leave
        self._events, self._writer, self._locations = events, writer, locations
        self._timelines = RolloutTimelines(controller)
        self.ended = dict.fromkeys(_OUTCOMES, 0)

    def record(self, subject: ServiceContext, running: RunningAction) -> ActionRecord:
        """A copy of an action's record; a new one if it has not begun."""
        key = kinds.of_snapshot(subject.id, running.snapshot)
        stored = self.controller.records(kinds.ACTION).get(key)
        copy = ActionRecord(number=running.number, since_unix_ms=self.controller.clock.wall_ms())
        if stored is not None and stored.number == running.number:
            copy.CopyFrom(stored)
        return copy

    def has_leave_of_another(self, subject: ServiceContext, running: RunningAction) -> bool:
        """Whether an earlier action of this snapshot still holds leave: its record must not be replaced."""
        stored = self.controller.records(kinds.ACTION).get(kinds.of_snapshot(subject.id, running.snapshot))
        return stored is not None and stored.number != running.number and bool(stored.cms_task)

    async def store(
        self, subject: ServiceContext, running: RunningAction, record: ActionRecord, *, begins: bool = False
    ) -> None:
        """Store an action's progress. Nothing is written if it is unchanged.

        Args:
            begins: a batch begins with it, which a freeze forbids. Raises MayNotBegin then.
        """
        change = self.controller.change()
        key = kinds.of_snapshot(subject.id, running.snapshot)
        is_new = change.get(kinds.ACTION, key) != record
        if is_new:
            change.put(kinds.ACTION, key, record)
        if self._timelines.note(change, subject, running, record) or is_new:
            await (self.controller.intend(change) if begins else change.commit())

    def paused_locations(self) -> set[str]:
        """Locations that recently took no writes."""
        return self._writer.paused_locations()

    async def write(
        self, subject: ServiceContext, running: RunningAction, record: ActionRecord, writes: Sequence[InstanceWrite]
    ) -> Written:
        """Store the intent, then write to HQ, and return when the picture shows it.

        What HQ could not store for now is in `waits` of the result; it is not asked again before `retry_s`.
        The service and the action must be as they were when this was decided. Raises MayNotBegin, RecordChanged.
        """
        return await self._write(subject, writes, (running, record))

    async def write_apart(self, subject: ServiceContext, writes: Sequence[InstanceWrite]) -> Written:
        """Like `write`, for writes that are no part of an action. Raises MayNotBegin, RecordChanged."""
        return await self._write(subject, writes)

    async def _write(
        self,
        subject: ServiceContext,
        writes: Sequence[InstanceWrite],
        action: tuple[RunningAction, ActionRecord] | None = None,
    ) -> Written:
        waiting = self._writer.pauses_of(writes)
        if {write.key[0] for write in writes} <= waiting.waits.keys():
            return waiting
        change = self.controller.change()
        stored = change.get(kinds.SERVICE, subject.id)
        if stored is None or stored != subject.record:
            return Written()
        new = True
        if action is not None:
            running, record = action
            key = kinds.of_snapshot(subject.id, running.snapshot)
            change.get(kinds.ACTION, key)
            change.put(kinds.ACTION, key, record)
            self._timelines.note(change, subject, running, record)
            # Work that has begun may end while Nanny is frozen: a half-switched batch is worse than a switched one.
            new = not record.batch
        intent = await self.controller.intend(change, new=new)
        intent.check(new=new)
        written = await self._writer.send(writes)
        await subject.picture.settle(lambda: _shows(subject, written), _SHOWN_S)
        return written

    async def ask(
        self, task: str, subject: ServiceContext, instances: Sequence[Key], comment: str, order_began_ms: int = 0
    ) -> ApprovalAnswer:
        """Final leave for these instances: requested, and confirmed directly before the effect.

        `order_began_ms`: see ApprovalRequest.
        """
        request = ApprovalRequest(
            task,
            subject.id,
            instances,
            comment,
            is_rollback=rolls_back(subject.record),
            max_failures=subject.policy.failures(len(subject.instances)),
            leave_out=subject.policy.leave_out,
            order_began_ms=order_began_ms,
        )
        answer = await self.leave.ask(request)
        return await self.leave.confirm(task) if answer.granted else answer

    async def silent(self, subject: ServiceContext, keys: Set[Key]) -> set[Key]:
        """Which of these instances have not reported in the last interval, as HQ says now."""
        return await silent_instances(self._locations, subject.id, keys) if keys else set()

    async def end(
        self,
        subject: ServiceContext,
        running: RunningAction,
        outcome: SnapshotEvent,
        message: str = "",
        ailing: Sequence[InstanceKey] = (),
        health: HealthRecord | None = None,
    ) -> None:
        """Store that the action is over, once, as an event like any other. `ailing`, `health`: see ActionEnd."""
        if running.action is Action.ACTIVATE:
            await self._timelines.end(subject, running, is_failed=outcome is SnapshotEvent.FAILED)
        self.ended[outcome] += 1
        level = logging.WARNING if outcome is SnapshotEvent.FAILED else logging.INFO
        log.log(level, "%s: %s of %s %s %s", subject.id, running.action, running.snapshot, outcome, message)
        end = ActionEnd(
            snapshot_id=running.snapshot, number=running.number, outcome=_OUTCOMES[outcome], message=message[:1_000]
        )
        if outcome is SnapshotEvent.FAILED:
            end.ailing.extend(ailing)
        if health is not None:
            end.health.CopyFrom(health)
        event = ServiceEvent(ended=end)
        try:
            await self._events.submit(subject.id, event, request_id=f"end-{running.snapshot}-{running.number}")
        except (EventRefused, Refused) as error:
            log.info("%s: %s", subject.id, error)

    async def clean(self, subject: ServiceContext) -> bool:
        """Give back the leave of superseded actions, and forget them. False: their instances are still changing."""
        is_clean = True
        actions = self.controller.records(kinds.ACTION)
        for snapshot in {*subject.record.known, *subject.service.tuples}:
            key = kinds.of_snapshot(subject.id, snapshot)
            stored = actions.get(key)
            if stored is None or _is_current(stored, subject.service.tuples.get(snapshot)):
                continue
            batch = [subject.instances[one] for one in keys_of(stored.batch) if one in subject.instances]
            if stored.cms_task and not all(reports.is_settled(instance) for instance in batch):
                is_clean = False
            elif not stored.cms_task or await self.leave.give_back(stored.cms_task):
                await self._forget(key)
            else:
                is_clean = False
        await self._timelines.drop(subject)
        return is_clean

    async def _forget(self, key: str) -> None:
        change = self.controller.change()
        change.get(kinds.ACTION, key)
        change.delete(kinds.ACTION, key)
        await change.commit()


class Declaring:
    """Declares running work to a CMS whose store has a new history: until then it grants nothing to anybody.

    `run` is what the kit calls while this process acts.
    """

    def __init__(self, controller: Controller, leave: ApprovalPort) -> None:
        self._controller, self._leave = controller, leave

    async def run(self, _: str) -> float | None:
        """Declare running work if the CMS requests it; return in how many seconds to look again."""
        if not self._leave.address:
            return None
        await self._leave.declare(running(self._controller))
        return _DECLARED_EVERY_S


def running(controller: Controller) -> list[Hold]:
    """Batches, and instances with targets of their own, that were granted and not given back."""
    actions, own = controller.records(kinds.ACTION), controller.records(kinds.INSTANCE_TARGET)
    batches = [Hold(one.cms_task, frozenset(keys_of(one.batch))) for one in actions.values() if one.granted]
    single = [Hold(one.cms_task, frozenset({kinds.instance_of(name)})) for name, one in own.items()]
    return [hold for hold in (*batches, *single) if hold.task]


def keys_of(instances: Iterable[InstanceKey]) -> tuple[Key, ...]:
    """Instances as the plan identifies them."""
    return tuple((one.location, one.id) for one in instances)


def messages_of(keys: Iterable[Key]) -> list[InstanceKey]:
    """Instances as records hold them."""
    return [InstanceKey(location=location, id=name) for location, name in keys]


def _is_current(record: ActionRecord, state: SnapshotState | None) -> bool:
    """Whether a record belongs to the running action, or (number 0) to the repair of the ACTIVE snapshot."""
    if state is None:
        return False
    return record.number == state.action if record.number else state.current is Current.ACTIVE


def _shows(subject: ServiceContext, written: Written) -> bool:
    version = subject.picture.version
    is_there = all((version(key) or 0) >= stored for key, stored in written.versions.items())
    return is_there and all(version(key) is None for key in written.deleted)
