"""Kinds at the CMS: budgets, windows, tasks."""

from __future__ import annotations

from typing import Final

from cmspb.v1 import cms_pb2 as pb
from hqcli.readable import clock_time
from hqkinds.kind import Column, Kind

_STATUS: Final = {
    pb.TASK_STATUS_OK: "ok",
    pb.TASK_STATUS_IN_PROCESS: "in-process",
    pb.TASK_STATUS_REJECTED: "rejected",
}


def _budgets(answer: pb.ListBudgetsResponse) -> list[pb.BudgetState]:
    """All budgets, by name, also those that no instance matches."""
    counted = {state.name for state in answer.state}
    idle = [pb.BudgetState(name=one.name, rule=_rule(one)) for one in answer.budget if one.name not in counted]
    return sorted([*answer.state, *idle], key=lambda state: state.name)


def _rule(budget: pb.Budget) -> str:
    brief = f", brief {budget.brief.max_unavailable} within {budget.brief.within}" if budget.HasField("brief") else ""
    if budget.min_ready:
        return f"min_ready {budget.min_ready}{brief}"
    return f"max_unavailable {budget.max_unavailable}{brief}"


def _holders(state: pb.BudgetState) -> str:
    return ",".join(holder.task_id for holder in state.holder)


BUDGET: Final = Kind(
    "budget",
    "budgets",
    "cms",
    pb.ListBudgetsRequest,
    _budgets,
    (
        Column("NAME", lambda state: state.name),
        Column("RULE", lambda state: state.rule),
        Column("TOTAL", lambda state: str(state.total)),
        Column("FLOOR", lambda state: str(state.floor)),
        Column("AVAILABLE", lambda state: str(state.available)),
        Column("MARGIN", lambda state: str(state.available - state.floor)),
        Column("HELD", _holders),
        Column("NOT-READY", lambda state: str(state.not_ready_total)),
    ),
)


def _subject(state: pb.WindowsState) -> str:
    one = state.windows
    return f"service {one.service}" if one.service else f"project {one.project}" if one.project else "all"


def _hours(state: pb.WindowsState) -> str:
    return ", ".join(f"{one.days or 'mon-sun'} {one.begin}-{one.end}" for one in state.windows.hours) or "always"


def _is_open(state: pb.WindowsState) -> str:
    opens = f"; opens {state.open_time.ToDatetime():%Y-%m-%dT%H:%MZ}" if state.HasField("open_time") else ""
    return f"{state.message or 'open'}{opens}"


WINDOWS: Final = Kind(
    "windows",
    "windows",
    "cms",
    pb.ListWindowsRequest,
    lambda answer: answer.state,
    (
        Column("NAME", lambda state: state.windows.name),
        Column("FOR", _subject),
        Column("HOURS", _hours),
        Column("ZONE", lambda state: state.windows.zone or "UTC"),
        Column("MARGIN", lambda state: state.windows.margin),
        Column("STATE", _is_open),
    ),
)


def task_status(state: pb.TaskState) -> str:
    """`ok`, `in-process` or `rejected`, and what is special about it."""
    special = " (provisional)" if state.is_provisional else " (overdue)" if state.is_overdue else ""
    return _STATUS.get(state.status, "?") + special


def _targets(state: pb.TaskState) -> str:
    targets = [*state.task.host, *(one.id for one in state.task.instance)]
    return ",".join(targets[:3]) + (f"+{len(targets) - 3}" if len(targets) > 3 else "")


TASK: Final = Kind(
    "task",
    "tasks",
    "cms",
    pb.ListTasksRequest,
    lambda answer: answer.state,
    (
        Column("TASK", lambda state: state.task.id),
        Column("STATUS", task_status),
        Column("ACTION", lambda state: state.task.action),
        Column("ISSUER", lambda state: state.task.issuer),
        Column("SINCE", lambda state: clock_time(state.since_time)),
        Column("TARGETS", _targets),
        Column("GROUP", lambda state: state.task.group_id, is_wide=True),
        Column("WHY", lambda state: state.message),
    ),
)
