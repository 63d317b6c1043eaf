"""The CMS's stored records, and how the ledger reads them."""

from __future__ import annotations

from typing import Final

from cms.ledger.actions import ACTIONS
from cms.ledger.budgets import Budget
from cms.ledger.instances import InstanceKey
from cms.ledger.states import HOLDING, State, TaskEvent, after
from cms.ledger.tasks import Need, Task
from cmspb.storage.v1 import ledger_pb2
from cmspb.v1 import cms_pb2
from control import Kind, Stored
from control.amounts import Amount
from serving.durations import duration_s
from serving.rights.rules import LEAVE, LOCK, Rule

TASK: Final = Kind("task", ledger_pb2.Task)
BUDGET: Final = Kind("budget", ledger_pb2.Budget)
WINDOWS: Final = Kind("windows", ledger_pb2.Windows)
ENDED: Final = Kind("ended", ledger_pb2.Ended)
LEDGER: Final = Kind("ledger", ledger_pb2.Ledger)
DECLARED: Final = Kind("declared", ledger_pb2.Declared)
ALL: Final = "all"


def task_of(stored: Stored[ledger_pb2.Task], before: Task | None, polls_before: int, now: float, wall_ms: int) -> Task:
    """The ledger's task. Times that this process observed are kept; all others count from now, at the earliest.

    Raises ValueError: it was stored by a newer version.
    """
    record = stored.message
    if record.action not in ACTIONS:
        raise ValueError(f"its action {record.action!r} is unknown")
    is_polled = before is None or record.polls != polls_before or before.state is not State(record.state)
    return Task(
        record.id,
        record.order or stored.version,
        record.action,
        tuple(record.host),
        tuple(InstanceKey(one.location, one.id) for one in record.instance if not one.gone),
        record.owner,
        record.issuer,
        record.group_id,
        record.confirm,
        State(record.state),
        added_at=now if before is None else before.added_at,
        polled_at=now if is_polled or before is None else before.polled_at,
        since=now - max(0, wall_ms - record.since_ms) / 1000,
        overdue_at=now + (record.overdue_ms - wall_ms) / 1000 if record.overdue_ms else float("inf"),
        need=need_of(record),
        asked_at=now - max(0, wall_ms - record.created_ms) / 1000 if before is None else before.asked_at,
        max_failures=record.max_failures,
        leave_out=frozenset(record.leave_out),
        order_began_at=record.order_begin_ms / 1000 if record.order_begin_ms else None,
    )


def rule_for(record: ledger_pb2.Task) -> Rule:
    """Return the rule that its owner must satisfy, also when it is granted."""
    return LOCK if record.fleet_group else LEAVE


def need_of(record: ledger_pb2.Task) -> Need:
    """A task's place in the order of need. Raises ValueError: the task was stored by a newer version."""
    if not record.need:
        return Need.ROLLOUT if record.action == "roll-out" else Need.PLANNED
    try:
        return Need[record.need.upper()]
    except KeyError:
        raise ValueError(f"its need {record.need!r} is unknown") from None


def move(record: ledger_pb2.Task, event: TaskEvent, wall_ms: int, version: int) -> None:
    """Apply an event to a record that was read at a version. Raises NoSuchStep."""
    state = after(State(record.state), event)
    record.order = record.order or version
    if event in (TaskEvent.POLL, TaskEvent.OFFER):
        record.polls += 1
    if state is State(record.state):
        return
    record.state, record.since_ms = state, wall_ms
    is_holding = state in HOLDING and ACTIONS[record.action].disrupts
    record.overdue_ms = wall_ms + round(ACTIONS[record.action].bound_s * 1000) if is_holding else 0


def budget_of(record: ledger_pb2.Budget | cms_pb2.Budget) -> Budget:
    """The ledger's budget, from what is stored or what the API has. Raises ValueError, InvalidRequest."""
    return Budget(
        record.name,
        record.service,
        dict(record.labels),
        frozenset(record.cluster),
        Amount.parse(record.min_ready) if record.min_ready else None,
        Amount.parse(record.max_unavailable) if record.max_unavailable else None,
        record.reject_impossible,
        Amount.parse(record.brief.max_unavailable) if record.HasField("brief") else None,
        duration_s(record.brief.within, "budget.brief.within") if record.HasField("brief") else 0.0,
    )


def ended_record(record: ledger_pb2.Task, wall_ms: int) -> ledger_pb2.Ended:
    """Return the record that is kept of work that ended."""
    left = [one for one in record.instance if not one.gone]
    return ledger_pb2.Ended(host=record.host, instance=left, at_ms=wall_ms)


SAME: Final = (
    "action",
    "type",
    "issuer",
    "group_id",
    "comment",
    "extra",
    "failure",
    "confirm",
    "already_running",
    "rollback",
)


def is_same(one: ledger_pb2.Task, other: ledger_pb2.Task) -> bool:
    """Whether two requests ask for the same."""
    same_words = all(getattr(one, name) == getattr(other, name) for name in SAME)
    instances = [sorted({(i.location, i.id) for i in task.instance}) for task in (one, other)]
    return same_words and sorted(one.host) == sorted(other.host) and instances[0] == instances[1]
