"""Takes a failing check to an operation, through its stages, and to the next step of the scheme.

Every function is one transaction: it reads through the book, decides, and puts. Both fuses are read whenever something
is allowed to begin, so that the store refuses one of two decisions that would each be the tenth.
"""

from __future__ import annotations

from dataclasses import replace

from walle.fuses.admission import Fuses, admit, stops_approved, switched_off
from walle.fuses.fuse import Automation, Moment, return_credit
from walle.healing.attempts import recent_attempts, set_attempts
from walle.healing.check_sources import expired_check
from walle.healing.decision import ENDS_DNS_FIX, HealingDecision, action_of, decide
from walle.healing.lanes import end_dns_fix
from walle.healing.operation import begin, event_now, finish, is_confirmed, keep, last_repair, move_asks, run
from walle.tables import NAMES, OperationEvent, advance
from walle.work.book import FUSE, HOST, PROJECT, RESTORED, Notice, WalleTransaction, World, fuses_of, put_fuses
from walle.work.restored import why_busy, why_untouched
from wallepb.v1.host_pb2 import (
    HOST_STATUS_DEAD,
    OPERATION_KIND_DNS_FIX,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_REJECTED,
    STAGE_APPROVAL,
    STAGE_CONFIRMING,
    STAGE_ENDING,
    STAGE_REQUESTED,
    STAGE_RUNNING,
    STAGE_UNSPECIFIED,
    VERDICT_REJECTED,
    Host,
    Operation,
    RepairAttempt,
)
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL, SEVERITY_ERROR, SEVERITY_INFO, SEVERITY_WARNING, Project

Notices = list[Notice]
_NEXT = "the next step begins"


def consider(
    book: WalleTransaction,
    name: str,
    world: World,
    now: Moment,
    *,
    lane: Automation = Automation.HEALING,
    is_agreed: bool = False,
) -> Notices:
    """Begin the due operation of a host that has none, if both fuses allow it.

    Args:
        lane: whose operation; for DNS the book swaps the host's lanes.
        is_agreed: no dry run of `refused_operation` was rejected any more.
    """
    host, project = _host_and_project(book, name)
    if host is None or project is None:
        return []
    _expire(book, host, now)
    decision = decide(host, project, world.incidents, now.ms, world.settle_ms, lane)
    if decision.step is None or decision.blocked or (decision.is_refused and not is_agreed):
        return []
    return _act(book, host, project, decision, world, now, continues=False)


def refused_operation(book: WalleTransaction, name: str, world: World, now: Moment) -> Operation | None:
    """The due operation whose dry run was rejected, to be asked about again. Stores nothing."""
    host, project = _host_and_project(book, name)
    if host is None or project is None:
        return None
    decision = decide(host, project, world.incidents, now.ms, world.settle_ms)
    if decision.step is None or decision.step.kind is None or decision.blocked or not decision.is_refused:
        return None
    is_off = switched_off(fuses_of(book, project, world), action_of(decision, host, "").automation)
    if is_off or why_untouched(book.get(RESTORED, project.id), host, project, world):
        return None
    return begin(decision.step, host, project, world.installation, world.new_id(), now)


def stop_waiting(book: WalleTransaction, name: str, why: str, now: Moment) -> Notices:
    """Cancel a repair that has not begun, and return its approval, as nothing begins now, perhaps for long."""
    host = book.get(HOST, name)
    if host is None or not host.operation.check or host.operation.stage not in (STAGE_APPROVAL, STAGE_CONFIRMING):
        return []
    return move(book, host, OperationEvent.STOPPED, now, f"{OperationEvent.STOPPED}: {why}")


def settle(book: WalleTransaction, name: str, world: World, now: Moment) -> Notices:
    """Advance a host's operation by what is known; end it, or begin the next step."""
    host, project = _host_and_project(book, name)
    if host is None or project is None or not host.HasField("operation"):
        return []
    if move_asks(host.operation, project, world.installation):
        book.put(HOST, name, host)
    operation, is_held = host.operation, is_held_by_others(host)
    event = event_now(
        operation,
        is_fine=is_fine(host),
        is_off=stops_approved(fuses_of(book, project, world), automation_of(operation), host.state),
        in_incident=world.incidents.incident_of(host) is not None,
        is_held=is_held,
        now_ms=now.ms,
        checks_count_from_ms=host.released_ms,
    )
    if event is None:
        return []
    if event is OperationEvent.GAVE_UP and operation.check:
        return _next_or_give_up(book, host, project, world, now)
    reasons = {OperationEvent.GAVE_UP: _why, OperationEvent.REJECTED: rejection_message}
    return move(book, host, event, now, reasons[event](operation) if event in reasons else "")


def move(book: WalleTransaction, host: Host, event: OperationEvent, now: Moment, message: str = "") -> Notices:
    """Store the operation in its next stage; if it is over, the host without it."""
    operation = advance(host.operation, event, now.ms, message)
    if host.operation.stage == STAGE_REQUESTED and operation.stage == STAGE_ENDING:
        del operation.task[:]  # none was created yet
    if operation.stage == STAGE_ENDING and not operation.intent.executor:
        _return_credit(book, host, now)
    if operation.stage != STAGE_UNSPECIFIED:
        host.operation.CopyFrom(operation)
        book.put(HOST, host.name, host)
        return []
    if operation.after.remove and operation.outcome == OUTCOME_DONE:
        book.delete(HOST, host.name)
        return []
    book.put(HOST, host.name, finish(host, now))
    return _end_notices(host)


def _return_credit(book: WalleTransaction, host: Host, now: Moment) -> None:
    """Return the credit of an operation whose work never began."""
    fuse = book.get(FUSE, host.project)
    returned = return_credit(fuse, host.operation.id, now.ms) if fuse is not None else None
    if returned is not None:
        book.put(FUSE, host.project, returned)


def start_work(book: WalleTransaction, name: str, executor: str, before: str, world: World, now: Moment) -> bool:
    """CONFIRMED: store the intent, unless the check is fine, a fuse has tripped or the host's place has an incident.

    False: nothing was stored. An address that nobody imported gets no work, either.
    """
    host, project = _host_and_project(book, name)
    if host is None or project is None or not host.listed or not is_confirmed(host.operation):
        return False
    operation = host.operation
    is_off = stops_approved(fuses_of(book, project, world), automation_of(operation), host.state)
    is_pointless = is_off or is_fine(host) or world.incidents.incident_of(host) is not None
    if (operation.check and is_pointless) or is_held_by_others(host) or why_busy(book.get(RESTORED, project.id), name):
        return False
    host.operation.CopyFrom(run(operation, executor, before, now.ms))
    if operation.check and automation_of(operation) is Automation.HEALING:
        begun = RepairAttempt(kind=operation.kind, check=operation.check, at_ms=now.ms)
        set_attempts(host, [*recent_attempts(host, project, now.ms), begun])
    book.put(HOST, name, host)
    return True


def is_held_by_others(host: Host) -> bool:
    """Whether planned work holds the host, and its operation is not a part of that."""
    return bool(host.scenario) and host.operation.scenario != host.scenario


def is_fine(host: Host) -> bool:
    """Whether the check that asked for the host's operation does not fail, or no longer."""
    return not any((check.failing or check.unknown) and check.name == host.operation.check for check in host.check)


def _expire(book: WalleTransaction, host: Host, now: Moment) -> None:
    changed = {check.name: found for check in host.check if (found := expired_check(check, now)) is not None}
    if changed:
        checks = [changed.get(check.name, check) for check in host.check]
        del host.check[:]
        host.check.extend(checks)
        book.put(HOST, host.name, host)


def automation_of(operation: Operation) -> Automation:
    return Automation.DNS if operation.kind == OPERATION_KIND_DNS_FIX else Automation.HEALING


def _act(
    book: WalleTransaction,
    host: Host,
    project: Project,
    decision: HealingDecision,
    world: World,
    now: Moment,
    *,
    continues: bool,
) -> Notices:
    """Ask both fuses, and store their decision with its consequences."""
    if why_untouched(book.get(RESTORED, project.id), host, project, world):
        return []
    operation_id = world.new_id()
    fuses = fuses_of(book, project, world)
    action = replace(action_of(decision, host, operation_id), continues=continues)
    admission = admit(fuses, action, now)
    put_fuses(book, fuses, admission)
    if not admission.is_allowed:
        return _tripped_notices(fuses, admission.tripped, admission.reason)
    assert decision.step is not None
    if decision.step.kind is None:
        end_dns_fix(host, "the host is dead", now)
        return _declare_dead(book, host, decision.step.why)
    host.operation.CopyFrom(begin(decision.step, host, project, world.installation, operation_id, now))
    if decision.step.kind in ENDS_DNS_FIX:
        end_dns_fix(host, f"{NAMES[decision.step.kind]} begins", now)
    book.put(HOST, host.name, host)
    return []


def _next_or_give_up(book: WalleTransaction, host: Host, project: Project, world: World, now: Moment) -> Notices:
    """Begin the next step, or give up. It takes over this step's tasks: the host is not given away in between."""
    before = Host()
    before.CopyFrom(host)
    host.last_repair.CopyFrom(last_repair(host.operation, OUTCOME_FAILED, now.ms))
    bare = Host()
    bare.CopyFrom(host)
    bare.ClearField("operation")
    lane = automation_of(before.operation)
    decision = decide(bare, project, world.incidents, now.ms, world.settle_ms, lane)
    if decision.step is None or decision.blocked or decision.step.kind is None:
        return move(book, before, OperationEvent.GAVE_UP, now, _why(before.operation))
    why = _why(before.operation)
    keep(
        host,
        advance(
            before.operation, OperationEvent.GAVE_UP, now.ms, f"{why}; {_NEXT}" if why else OperationEvent.NEXT_STEP
        ),
        now,
    )
    notices = _act(book, host, project, decision, world, now, continues=True)
    if host.operation == before.operation:  # a fuse did not allow it
        return [*notices, *move(book, before, OperationEvent.GAVE_UP, now, _why(before.operation))]
    if why:
        text = f"{host.name}: {NAMES[before.operation.kind]}: {why}; {_NEXT}: {NAMES[host.operation.kind]}"
        notices.append(Notice(SEVERITY_ERROR, host.project, text, host.name))
    return notices


def rejection_message(operation: Operation) -> str:
    """Which CMS rejected the task, in its words."""
    said = [
        f"{one.cms}: {one.message or 'no reason given'}" for one in operation.task if one.verdict == VERDICT_REJECTED
    ]
    return f"{OperationEvent.REJECTED}: {'; '.join(said)}"


def _why(operation: Operation) -> str:
    """Return the failure because of which it is given up; empty: the work was done, and did not help."""
    is_undone = operation.failures or operation.stage == STAGE_RUNNING
    return f"given up: {operation.message}" if is_undone else ""


def _declare_dead(book: WalleTransaction, host: Host, why: str) -> Notices:
    host.status, host.status_reason = HOST_STATUS_DEAD, why
    book.put(HOST, host.name, host)
    return [Notice(SEVERITY_WARNING, host.project, f"{host.name} is dead: {why}", host.name)]


def _tripped_notices(fuses: Fuses, tripped: str, reason: str) -> Notices:
    if not tripped:
        return []
    project = fuses.project.id if tripped == fuses.project.id else ""
    on = "settings set disable_automation false -m WHY"
    if project:
        on = f"projects automation enable -m WHY {project}"
    hint = f"running work continues. Once you have found the cause, run: walle {on}"
    return [Notice(SEVERITY_CRITICAL, project, f"{reason}; {hint}")]


def _end_notices(host: Host) -> Notices:
    """Notices at the end of an operation. What was sent before is not repeated."""
    operation, is_failed = host.operation, host.operation.outcome == OUTCOME_FAILED
    if operation.message.startswith(OperationEvent.DRY_RUN_REJECTED) or (is_failed and _has_failed_before(host)):
        return []
    severity = SEVERITY_ERROR if is_failed or operation.outcome == OUTCOME_REJECTED else SEVERITY_INFO
    return [Notice(severity, host.project, f"{host.name}: {NAMES[operation.kind]}: {operation.message}", host.name)]


def _has_failed_before(host: Host) -> bool:
    """Whether the same step failed already while its check has been failing."""
    operation, last = host.operation, host.last_repair
    is_same = (last.check, last.step, last.outcome) == (operation.check, operation.step, OUTCOME_FAILED)
    return is_same and any(check.name == last.check and check.since_ms <= last.at_ms for check in host.check)


def _host_and_project(book: WalleTransaction, name: str) -> tuple[Host | None, Project | None]:
    host = book.get(HOST, name)
    return host, book.get(PROJECT, host.project) if host is not None else None
