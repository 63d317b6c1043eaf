"""Results of CMSs and executors, stored in the operation: one transaction each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from walle.approval.protocol import CmsAnswer
from walle.approval.tasks import task_after_answer, task_after_loss, task_to_retry, times_returned, waiting_messages
from walle.executors.port import PollResult, WorkProgress
from walle.fuses.fuse import Moment
from walle.healing.backoff import pause_ms
from walle.healing.operation import MAX_FAILURES, Do, Effect, last_repair, with_task
from walle.tables import NAMES, OperationEvent
from walle.texts import truncate_text
from walle.work.book import HOST, Notice, WalleTransaction
from walle.work.repairs import move
from wallepb.v1.host_pb2 import (
    OUTCOME_CANCELLED,
    STAGE_APPROVAL,
    STAGE_CONFIRMING,
    STAGE_REQUESTED,
    STAGE_RUNNING,
    VERDICT_IN_PROCESS,
    VERDICT_OK,
    VERDICT_REJECTED,
    Host,
    Operation,
    Task,
)
from wallepb.v1.project_pb2 import SEVERITY_ERROR

Result = CmsAnswer | None  # None: the CMS does not know the task, or deleted it


def take_dry_runs(
    book: WalleTransaction, name: str, operation_id: str, answers: Sequence[CmsAnswer], now: Moment
) -> list[Notice]:
    """Take the answers to all dry runs of an operation, in the order of its tasks. A rejected one starts nothing."""
    host = _host_with(book, name, operation_id)
    if host is None or host.operation.stage != STAGE_REQUESTED:
        return []
    pairs = zip(host.operation.task, answers, strict=True)
    rejected = [(task.cms, answer.message) for task, answer in pairs if answer.verdict == VERDICT_REJECTED]
    if not rejected:
        return move(book, host, OperationEvent.DRY_RUN_OK, now)
    message = f"{OperationEvent.DRY_RUN_REJECTED}: {rejected[0][0]}: {rejected[0][1] or 'no reason given'}"
    notice = Notice(
        SEVERITY_ERROR,
        host.project,
        f"{name}: {NAMES[host.operation.kind]}: {message}",
        name,
        f"dry run: {NAMES[host.operation.kind]}: {rejected[0][0]}",
    )
    if host.operation.check:
        host.last_repair.CopyFrom(last_repair(host.operation, OUTCOME_CANCELLED, now.ms))
    return [notice, *move(book, host, OperationEvent.DRY_RUN_REJECTED, now, message)]


def take_answer(
    book: WalleTransaction, name: str, operation_id: str, effect: Effect, result: Result, jitter: float, now: Moment
) -> None:
    """Take one answer about one task. `jitter` 0 to 1: when to request again an ok that was given back."""
    host = _host_with(book, name, operation_id)
    if host is None:
        return
    task = _same(host.operation, effect.task)
    if task is None:
        return
    host.operation.CopyFrom(with_task(host.operation, task, changed_task(effect, task, result, jitter, now.ms)))
    book.put(HOST, name, host)


def take_failure(book: WalleTransaction, name: str, operation_id: str, task_id: str, text: str) -> None:
    """Note that a CMS gave no valid answer: whether it acted is unknown, so it is asked again."""
    host = _host_with(book, name, operation_id)
    if host is None:
        return
    operation = host.operation
    for task in (*operation.task, *operation.old_task):
        if task.id == task_id:
            task.message = truncate_text(text)
    if operation.stage in (STAGE_REQUESTED, STAGE_APPROVAL, STAGE_CONFIRMING):
        unconfirmed = (f"{task.cms}: {task.message}" for task in operation.task if task.message and not task.confirmed)
        operation.message = waiting_messages(operation.task) or "; ".join(unconfirmed)
    book.put(HOST, name, host)


def changed_task(effect: Effect, task: Task, result: Result, jitter: float, now_ms: int) -> Task | None:
    """The task after its CMS answered; None: it is gone."""
    if effect.do is Do.DELETE:
        return None
    if effect.do is Do.GIVE_BACK:
        longest_ms = pause_ms(times_returned(task) + 1)
        return task_to_retry(task, now_ms, int(longest_ms * (1 + jitter) / 2))
    if result is None:
        return task_after_loss(task)
    if effect.do is Do.CONFIRM:
        return _confirmed_task(task, result, now_ms)
    return task_after_answer(
        task,
        result.verdict,
        result.message,
        now_ms,
        provisional=result.provisional,
        opens_in_s=result.opens_in_s,
    )


def _confirmed_task(task: Task, result: CmsAnswer, now_ms: int) -> Task:
    """The task after `confirm`: any answer but ok takes the ok back, and the task waits again in its place."""
    verdict = result.verdict if result.verdict in (VERDICT_OK, VERDICT_REJECTED) else VERDICT_IN_PROCESS
    changed = task_after_answer(
        task, verdict, result.message, now_ms, provisional=verdict != VERDICT_OK, opens_in_s=result.opens_in_s
    )
    changed.confirmed = verdict == VERDICT_OK
    return changed


def _same(operation: Operation, wanted: Task) -> Task | None:
    return next((task for task in (*operation.task, *operation.old_task) if task.id == wanted.id), None)


def _host_with(book: WalleTransaction, name: str, operation_id: str) -> Host | None:
    """The host, if it is still in this operation."""
    host = book.get(HOST, name)
    return host if host is not None and host.operation.id == operation_id else None


_MAX_OUTPUT: Final = 4096


def take_attempt(book: WalleTransaction, name: str, operation_id: str, now_ms: int) -> bool:
    """Note that the work is about to be begun again. False: it was begun often enough."""
    host = _running(book, name, operation_id)
    if host is None or host.operation.failures >= MAX_FAILURES:
        return False
    host.operation.intent.attempts += 1
    host.operation.intent.handle, host.operation.intent.attempt_ms = "", now_ms
    book.put(HOST, name, host)
    return True


def take_handle(book: WalleTransaction, name: str, operation_id: str, handle: str) -> None:
    """Note that the work was begun."""
    host = _running(book, name, operation_id)
    if host is not None:
        host.operation.intent.handle = handle
        host.operation.message = f"{host.operation.intent.executor} is working"
        book.put(HOST, name, host)


def take_work_failure(book: WalleTransaction, name: str, operation_id: str, text: str, times: int = 1) -> None:
    """Note that the work could not be prepared, begun or looked at; after three failures in a row it is given up.

    `times`: as how many failures this counts; 0: it is only shown.
    """
    host = _host_with(book, name, operation_id)
    if host is not None and host.operation.stage in (STAGE_REQUESTED, STAGE_CONFIRMING, STAGE_RUNNING):
        _fail(host, text, times)
        book.put(HOST, name, host)


def take_seen(book: WalleTransaction, name: str, operation_id: str, seen: PollResult) -> None:
    """Store the observed progress of the work."""
    host = _running(book, name, operation_id)
    if host is None or seen.progress in (WorkProgress.RUNNING, WorkProgress.NOT_BEGUN):
        return
    host.operation.intent.output = seen.output[-_MAX_OUTPUT:]
    if seen.progress is WorkProgress.DONE or (seen.progress is WorkProgress.UNKNOWN and host.operation.check):
        host.operation.intent.done = True  # if it is unknown, the check shows whether the work helped
    elif seen.progress is WorkProgress.UNKNOWN:
        _fail(host, f"it is unknown whether the work was done: {seen.output}", times=MAX_FAILURES)
    else:
        _fail(host, seen.output or "the work failed", times=MAX_FAILURES)
    book.put(HOST, name, host)


def _fail(host: Host, text: str, times: int = 1) -> None:
    host.operation.failures += times
    host.operation.message = f"{host.operation.intent.executor}: {text}".removeprefix(": ")[:1000]


def _running(book: WalleTransaction, name: str, operation_id: str) -> Host | None:
    host = book.get(HOST, name)
    if host is None or host.operation.id != operation_id or host.operation.stage != STAGE_RUNNING:
        return None
    return host
