"""One operation of a host: its creation, its next effects, and its outcome. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from walle.approval.protocol import Request, action_name
from walle.approval.tasks import combine, may_ask, tasks_for, to_give_back, waiting_messages
from walle.fuses.fuse import AUTOMATION, Moment
from walle.healing.decision import HealingStep
from walle.tables import OperationEvent, advance
from wallepb.v1.host_pb2 import (
    HOST_STATUS_MANUAL,
    HOST_STATUS_READY,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_POWER_OFF,
    OPERATION_KIND_PREPARE,
    OPERATION_KIND_REBOOT,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_REJECTED,
    STAGE_APPROVAL,
    STAGE_CONFIRMING,
    STAGE_ENDING,
    STAGE_REQUESTED,
    STAGE_RUNNING,
    STAGE_VERIFYING,
    VERDICT_OK,
    VERDICT_REJECTED,
    Finished,
    Host,
    Intent,
    LastRepair,
    Operation,
    Outcome,
    Task,
)
from wallepb.v1.project_pb2 import Project

MAX_FAILURES: Final = 3  # the work, or its preparation, failed this many times in a row
UNSEEN_MS: Final = 1_800_000  # work that cannot be looked at for this long has failed
LEFT_TO_COLLECTOR_MS: Final = 600_000  # a CMS that does not let us delete a task must not hold the host
# Work that takes longer than this has failed; other kinds have a day.
LONGEST_MS: Final = {
    OPERATION_KIND_REBOOT: 1_800_000,
    OPERATION_KIND_POWER_OFF: 1_800_000,
    OPERATION_KIND_DNS_FIX: 1_800_000,
}
ISSUER: Final = "wall-e"
VERIFY_MS: Final = 900_000  # if the check still fails this long after the work, the work did not help
JUDGED_MS: Final = 1_800_000  # planned work that nobody judges any more must not keep its approval
_KEPT: Final = 20
_ASKING: Final = (STAGE_REQUESTED, STAGE_APPROVAL, STAGE_CONFIRMING)


class Do(StrEnum):
    """The effects that an operation needs."""

    DRY_RUN = "dry run"
    CREATE = "create a task"
    POLL = "poll a task"
    CONFIRM = "confirm a task"
    DELETE = "delete a task"
    GIVE_BACK = "give an ok back"
    EXECUTE = "do the work"


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing to do; all but EXECUTE do it with this task."""

    do: Do
    task: Task


def begin(
    step: HealingStep, host: Host, project: Project, installation: str, operation_id: str, now: Moment
) -> Operation:
    """The first or next automatic operation of a host; the tasks of the one before are deleted later."""
    assert step.kind is not None
    operation = Operation(
        id=operation_id,
        kind=step.kind,
        check=step.check,
        step=step.number,
        stage=STAGE_REQUESTED,
        since_ms=now.ms,
        by=AUTOMATION,
        reason=step.why,
        created=now.wall,
    )
    operation.task.extend(tasks_for(installation, operation_id, step.number, step.kind, project.cms))
    operation.old_task.extend([*host.operation.old_task, *(t for t in host.operation.task if t.created)])
    return operation


def move_asks(operation: Operation, project: Project, installation: str) -> bool:
    """Have a waiting operation ask the CMSs that its project has now, and no others; return whether that changes it.

    A task in a CMS that is gone stands in nobody's way: its deletion is tried until the operation is over.
    """
    if operation.stage not in _ASKING or operation.ignore_cms:
        return False
    now = {one.url for one in project.cms}
    gone = [task for task in operation.task if task.cms not in now]
    asked = {task.cms for task in operation.task}
    new = [one for one in project.cms if one.url not in asked]
    stem = f"{operation.id}-{operation.step}-m{len(operation.old_task) + len(gone)}"
    added = tasks_for(installation, stem, operation.step, operation.kind, new)
    if not gone and (not added or operation.stage != STAGE_REQUESTED):
        return False
    for task in gone:
        operation.task.remove(task)
    operation.old_task.extend(task for task in gone if task.created)
    operation.task.extend(added)
    if added and operation.stage != STAGE_REQUESTED:
        operation.stage = STAGE_APPROVAL
    return True


def left_behind(operation: Operation) -> str:
    """Tasks that no CMS could be made to delete; empty: there are none."""
    left = [f"{task.id} at {task.cms}" for task in (*operation.task, *operation.old_task) if task.created]
    return f"; left behind, to be deleted there by hand or by the collector: {', '.join(left)}" if left else ""


def request_of(operation: Operation, task: Task, hosts: tuple[str, ...]) -> Request:
    """The request to a CMS. `failure` names the check, by which a CMS tells a repair from planned work."""
    return Request(
        id=task.id,
        hosts=hosts,
        action=action_name(operation.kind),
        issuer=ISSUER if operation.by == AUTOMATION else operation.by,
        is_manual=operation.by != AUTOMATION,
        comment=operation.reason,
        failure=operation.check,
        group_id=operation.group_id,
        is_running=operation.stage in (STAGE_RUNNING, STAGE_VERIFYING),
    )


def effects(operation: Operation, now_ms: int) -> list[Effect]:
    """Return the effects that are due. They may run at the same time, and repeating one is harmless."""
    if operation.stage == STAGE_REQUESTED:
        return [Effect(Do.DRY_RUN, task) for task in operation.task]
    if operation.stage == STAGE_ENDING:
        return [Effect(Do.DELETE, task) for task in (*operation.task, *operation.old_task)]
    wanted = [effect for task in operation.task if (effect := _about(operation, task, now_ms)) is not None]
    if all(task.created for task in operation.task):
        wanted += [Effect(Do.DELETE, task) for task in operation.old_task]
    if operation.stage == STAGE_RUNNING and not operation.intent.done:
        wanted.append(Effect(Do.EXECUTE, Task()))
    return wanted


def effects_when_stopped(operation: Operation) -> list[Effect]:
    """Return the effects while nothing may begin: unused approvals are given back, work under way goes on."""
    if operation.stage not in (STAGE_APPROVAL, STAGE_CONFIRMING):
        return effects(operation, 0)
    return [Effect(Do.GIVE_BACK, task) for task in operation.task if task.verdict == VERDICT_OK]


def _about(operation: Operation, task: Task, now_ms: int) -> Effect | None:
    if not task.created:
        return Effect(Do.CREATE, task) if may_ask(operation.task, task, now_ms) else None
    if operation.stage == STAGE_APPROVAL and task in to_give_back(operation.task, now_ms):
        return Effect(Do.GIVE_BACK, task)
    if operation.stage == STAGE_CONFIRMING and task.provisional and not task.confirmed:
        return Effect(Do.CONFIRM, task)
    return Effect(Do.POLL, task)


def event_now(
    operation: Operation,
    *,
    is_fine: bool,
    is_off: bool,
    in_incident: bool,
    now_ms: int,
    is_held: bool = False,
    checks_count_from_ms: int = 0,
) -> OperationEvent | None:
    """The event that has happened by now; None: it waits.

    CONFIRMED is not among the events: the caller stores it with a look at the fuses in the same transaction, when
    `is_confirmed`.

    Args:
        is_fine: no check asks for it any more.
        is_off: its automation is off.
        in_incident: the host's rack or switch fails as a whole.
        is_held: by planned work that is not the operation's own: checks show nothing meanwhile.
        checks_count_from_ms: when planned work on the host ended.
    """
    if operation.check and operation.stage in _ASKING:
        reasons = {
            OperationEvent.RECOVERED: is_fine,
            OperationEvent.FUSE_OUT: is_off,
            OperationEvent.HELD: is_held,
            OperationEvent.INCIDENT: in_incident,
        }
        if event := next((one for one, holds in reasons.items() if holds), None):
            return event
    if operation.stage in (STAGE_REQUESTED, STAGE_CONFIRMING) and operation.failures >= MAX_FAILURES:
        return OperationEvent.GAVE_UP
    if operation.stage in (STAGE_APPROVAL, STAGE_CONFIRMING):
        return _from_verdicts(operation)
    if operation.stage == STAGE_RUNNING:
        return _from_work(operation, now_ms)
    if operation.stage == STAGE_VERIFYING:
        waited_ms = now_ms - max(operation.since_ms, checks_count_from_ms)
        return _from_check(operation, waited_ms, is_fine=is_fine, is_held=is_held)
    return _from_tasks(operation, now_ms)


def _from_work(operation: Operation, now_ms: int) -> OperationEvent | None:
    """Work that never ends is given up: by then its machine is unusable anyway."""
    if operation.intent.done:
        return OperationEvent.EXECUTED
    is_late = now_ms - operation.since_ms >= LONGEST_MS.get(operation.kind, 86_400_000)
    return OperationEvent.GAVE_UP if is_late or operation.failures >= MAX_FAILURES else None


def _from_tasks(operation: Operation, now_ms: int) -> OperationEvent | None:
    """Tasks that cannot be deleted for long are left to the garbage collector."""
    is_left = bool(operation.task or operation.old_task) and now_ms - operation.since_ms < LEFT_TO_COLLECTOR_MS
    return OperationEvent.TASKS_DELETED if operation.stage == STAGE_ENDING and not is_left else None


def _from_verdicts(operation: Operation) -> OperationEvent | None:
    said = combine(task.verdict for task in operation.task)
    if said == VERDICT_REJECTED:
        return OperationEvent.REJECTED
    if operation.stage == STAGE_APPROVAL:
        return OperationEvent.ALL_OK if said == VERDICT_OK else None
    return None if said == VERDICT_OK else OperationEvent.WITHDRAWN


def _from_check(operation: Operation, waited_ms: int, *, is_fine: bool, is_held: bool) -> OperationEvent | None:
    """Planned work has no check; its scenario says when the host is back. GAVE_UP may become NEXT_STEP."""
    if not operation.check:
        return None if operation.scenario and waited_ms < JUDGED_MS else OperationEvent.COMPLETE
    if is_fine:
        return OperationEvent.RECOVERED
    return OperationEvent.GAVE_UP if waited_ms >= VERIFY_MS and not is_held else None


def is_confirmed(operation: Operation) -> bool:
    """Whether every CMS that requires a confirmation has given it."""
    is_ok = combine(task.verdict for task in operation.task) == VERDICT_OK
    settled = all(task.confirmed or not task.provisional for task in operation.task)
    return operation.stage == STAGE_CONFIRMING and is_ok and settled


def run(operation: Operation, executor: str, before: str, now_ms: int) -> Operation:
    """The operation after CONFIRMED: its intent has what the machine showed before the work."""
    running = advance(operation, OperationEvent.CONFIRMED, now_ms)
    running.intent.CopyFrom(Intent(executor=executor, before=before, attempts=1, attempt_ms=now_ms))
    return running


def with_task(operation: Operation, old: Task, new: Task | None) -> Operation:
    """A copy with one of its tasks replaced; None: it is deleted in its CMS."""
    changed = Operation()
    changed.CopyFrom(operation)
    for tasks in (changed.task, changed.old_task):
        kept = [(new if task.id == old.id else task) for task in tasks]
        del tasks[:]
        tasks.extend(task for task in kept if task is not None)
    changed.message = waiting_messages(changed.task) if changed.stage == STAGE_APPROVAL else changed.message
    return changed


def finish(host: Host, now: Moment) -> Host:
    """The host after its operation, which goes into its history, with the place where the scheme continues."""
    after = Host()
    after.CopyFrom(host)
    operation = host.operation
    after.ClearField("operation")
    keep(after, operation, now)
    if operation.check and operation.outcome in (OUTCOME_DONE, OUTCOME_FAILED, OUTCOME_REJECTED):
        after.last_repair.CopyFrom(last_repair(operation, operation.outcome, now.ms))
    if operation.outcome == OUTCOME_DONE:
        _become(after, operation)
    if not operation.check and operation.intent.executor:
        after.released_ms = now.ms
    return after


def keep(host: Host, operation: Operation, now: Moment) -> None:
    """Add a finished operation to the host's history as the newest."""
    host.history.insert(0, _history_entry(operation, now.wall))
    del host.history[_KEPT:]


def _become(host: Host, operation: Operation) -> None:
    """Apply the operation's purpose: into use, out of use, into another project."""
    host.state = operation.after.state or host.state
    host.project = operation.after.project or host.project
    if operation.kind == OPERATION_KIND_POWER_OFF:
        host.status, host.status_reason = HOST_STATUS_MANUAL, f"powered off by {operation.by}"
    if operation.kind == OPERATION_KIND_PREPARE:
        host.status, host.status_reason = HOST_STATUS_READY, ""


def last_repair(operation: Operation, outcome: Outcome, now_ms: int) -> LastRepair:
    return LastRepair(
        check=operation.check,
        step=operation.step,
        kind=operation.kind,
        outcome=outcome,
        at_ms=now_ms,
    )


def _history_entry(operation: Operation, ended: Timestamp) -> Finished:
    return Finished(
        id=operation.id,
        kind=operation.kind,
        check=operation.check,
        outcome=operation.outcome,
        message=f"{operation.message}{left_behind(operation)}",
        by=operation.by,
        created=operation.created,
        ended=ended,
        output=operation.intent.output,
    )
