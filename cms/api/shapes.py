"""Records and facts of the ledger as messages of cms.v1, and back."""

from __future__ import annotations

from typing import Final

from cms.ledger.states import State
from cms.ledger.why import BudgetView, LimitView, Why
from cms.records import need_of
from cmspb.storage.v1 import ledger_pb2
from cmspb.v1 import cms_pb2 as pb
from serving.clock import Clock

_STATUS: Final = {
    State.WAITING: pb.TASK_STATUS_IN_PROCESS,
    State.LAPSED: pb.TASK_STATUS_IN_PROCESS,
    State.PROVISIONAL: pb.TASK_STATUS_OK,
    State.GRANTED: pb.TASK_STATUS_OK,
    State.REJECTED: pb.TASK_STATUS_REJECTED,
}
_SAME: Final = (
    "id",
    "action",
    "issuer",
    "type",
    "group_id",
    "comment",
    "failure",
    "confirm",
    "already_running",
    "rollback",
    "max_failures",
)
_MOST_S: Final = 253_402_300_799  # the last second that a Timestamp may name


def record_of(task: pb.Task, owner: str) -> ledger_pb2.Task:
    """The record of a requested task."""
    record = ledger_pb2.Task(owner=owner, host=dict.fromkeys(task.host))
    for name in _SAME:
        setattr(record, name, getattr(task, name))
    record.type = task.type or "automated"
    if task.HasField("order_begin_time"):
        record.order_begin_ms = max(0, min(task.order_begin_time.seconds, _MOST_S)) * 1_000
    record.leave_out.extend(dict.fromkeys(task.leave_out))
    for location, name in dict.fromkeys((one.location, one.id) for one in task.instance):
        record.instance.add(location=location, id=name)
    return record


def task_of(record: ledger_pb2.Task) -> pb.Task:
    """The task as requested."""
    task = pb.Task(host=record.host)
    for name in _SAME:
        setattr(task, name, getattr(record, name))
    if record.fleet_group:
        task.comment = f"FleetLock group {record.fleet_group}"
    if record.order_begin_ms:
        task.order_begin_time.FromMilliseconds(record.order_begin_ms)
    task.leave_out.extend(record.leave_out)
    for one in record.instance:
        task.instance.add(location=one.location, id=one.id)
    return task


def state_of(record: ledger_pb2.Task, why: Why, clock: Clock) -> pb.TaskState:
    """A task and its verdict."""
    state = pb.TaskState(
        task=task_of(record),
        status=_STATUS[State(record.state)],
        message=why.message,
        is_provisional=record.state == State.PROVISIONAL,
        is_overdue=0 < record.overdue_ms <= clock.wall_ms(),
        owner=record.owner,
        need=need_of(record).name.lower(),
        retry_after_seconds=why.retry_after_s,
        note=[f"{note.what} by {note.by}: {note.reason}" for note in record.note],
    )
    state.create_time.FromMilliseconds(record.created_ms)
    state.since_time.FromMilliseconds(record.since_ms)
    return state


def budget_state(view: BudgetView, clock: Clock) -> pb.BudgetState:
    """How a budget stands."""
    state = pb.BudgetState(
        name=view.name,
        rule=view.rule,
        total=view.total,
        floor=view.floor,
        available=view.available,
        needs=view.needs,
        blocks=view.blocks,
        not_ready_total=view.missing_total,
    )
    for task, count in view.holders:
        holder = state.holder.add(task_id=task.id, issuer=task.issuer, action=task.action, instances=count)
        holder.since_time.FromMilliseconds(clock.wall_ms() - round((clock.now() - task.since) * 1000))
        holder.is_overdue = task.overdue_at <= clock.now()
    for instance, standing, reason in view.missing:
        missing = state.not_ready.add(host=instance.host, standing=standing.value, reason=reason)
        missing.instance.location, missing.instance.id = instance.key
    return state


def limit_state(view: LimitView) -> pb.LimitState:
    """How a domain limit stands."""
    limit = view.limit
    return pb.LimitState(name=limit.name, kind=limit.kind, most=limit.most, busy=view.busy, blocks=view.blocks)
