"""Tasks, budgets and holds of the CMS as pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from cmspb.v1 import cms_pb2 as pb
from console.views.listing import Column
from console.views.problems import Problem
from console.views.urls import url
from console.views.words import plural, seconds, span, split_camel_case

_DEFAULT: Final = "default:"
_LONG_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task. `level` and `verdict` say where it stands."""

    id: str
    state: pb.TaskState
    level: str
    verdict: str
    href: str
    what: str
    others: int = 0


TASK_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {
        "name": Column(lambda row: row.id),
        "verdict": Column(lambda row: row.verdict),
        "what": Column(lambda row: row.state.task.action),
        "issuer": Column(lambda row: row.state.task.issuer),
        "asked": Column(lambda row: seconds(row.state.create_time), most_first=True),
    }
)


def task_rows(states: Iterable[pb.TaskState]) -> list[TaskRow]:
    """A row for each task, but a single row for tasks that are decided together."""
    together: dict[str, list[pb.TaskState]] = {}
    for state in states:
        together.setdefault(f"group {state.task.group_id}" if state.task.group_id else state.task.id, []).append(state)
    return [_together(those) for those in together.values()]


def _together(states: list[pb.TaskState]) -> TaskRow:
    first = task_row(states[0])
    hosts = sum(len(one.task.host) for one in states)
    same = len(states) > 1 and hosts > 1
    return replace(first, what=plural(hosts, "host") if same else first.what, others=len(states) - 1)


def task_row(state: pb.TaskState) -> TaskRow:
    """Make its row of the table."""
    level, verdict = _verdict(state)
    task = state.task
    hosts = list(task.host)
    many = plural(len(hosts), "host") if hosts else plural(len(task.instance), "instance")
    what = hosts[0] if len(hosts) == 1 else many
    return TaskRow(task.id, state, level, verdict, url("disruptions", task.id), what)


def _verdict(state: pb.TaskState) -> tuple[str, str]:
    if state.status == pb.TASK_STATUS_OK:
        if state.is_overdue:
            return "warn", "overdue"
        return ("busy", "ok, to be confirmed") if state.is_provisional else ("good", "under work")
    if state.status == pb.TASK_STATUS_REJECTED:
        return "bad", "rejected"
    return "unknown", "waits"


def lacking_by_reason(budget: pb.BudgetState) -> list[tuple[str, list[pb.NotReady]]]:
    """Instances that are not available though nobody holds them, by reason, the most common first."""
    found: dict[str, list[pb.NotReady]] = {}
    for one in budget.not_ready:
        reason = split_camel_case(one.reason.partition(":")[0])
        found.setdefault(f"{one.standing}, {reason}" if reason else one.standing, []).append(one)
    return sorted(found.items(), key=lambda pair: -len(pair[1]))


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """How a budget stands. `left`: how many more may be taken down now."""

    name: str
    service: str
    is_default: bool
    state: pb.BudgetState
    left: int
    level: str
    word: str
    holders: list[IssuerHolding]


BUDGET_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {
        "name": Column(lambda row: row.service or row.name),
        "state": Column(lambda row: row.word),
        "available": Column(lambda row: row.state.available, most_first=True),
        "floor": Column(lambda row: row.state.floor, most_first=True),
        "left": Column(lambda row: row.left),
    }
)


@dataclass(frozen=True, slots=True)
class IssuerHolding:
    """One issuer's holds for one kind of work. `tasks`: how many; `task`, `href`: the first."""

    issuer: str
    action: str
    task: str
    href: str
    instances: int
    tasks: int


def issuer_holdings(holders: Iterable[pb.Holder]) -> list[IssuerHolding]:
    """Holds by issuer and kind of work, the largest first."""
    together: dict[tuple[str, str], list[pb.Holder]] = {}
    for one in holders:
        together.setdefault((one.issuer or one.task_id, one.action), []).append(one)
    found = [
        IssuerHolding(
            issuer=who,
            action=action,
            task=those[0].task_id,
            href=url("disruptions", those[0].task_id),
            instances=sum(one.instances for one in those),
            tasks=len({one.task_id for one in those}),
        )
        for (who, action), those in together.items()
    ]
    return sorted(found, key=lambda one: (-one.instances, one.issuer))


@dataclass(frozen=True, slots=True)
class InTheWay:
    """Why a task waits, in short: who holds what, which services have no room, and which limits are used up."""

    holders: list[IssuerHolding]
    budgets: list[tuple[str, pb.BudgetState]]
    limits: list[pb.LimitState]

    @property
    def never(self) -> list[str]:
        """Budgets that would not allow it even if all their instances were ready."""
        return [name for name, one in self.budgets if one.needs > one.total - one.floor]

    def __bool__(self) -> bool:
        return bool(self.holders or self.budgets or self.limits)


def in_the_way(why: pb.WhyTaskResponse) -> InTheWay:
    """Why a task waits: only what blocks it."""
    budgets = [one for one in why.budget if one.blocks]
    return InTheWay(
        issuer_holdings(holder for one in budgets for holder in one.holder),
        [(one.name.removeprefix(_DEFAULT), one) for one in budgets],
        [one for one in why.limit if one.blocks],
    )


def budget_rows(answer: pb.ListBudgetsResponse) -> list[BudgetRow]:
    """Budgets as rows, those with no margin first."""
    services = {one.name: one.service for one in answer.budget}
    rows = [_budget(one, services) for one in answer.state]
    return sorted(rows, key=lambda row: (row.left, row.name))


def _budget(state: pb.BudgetState, services: dict[str, str]) -> BudgetRow:
    is_default = state.name.startswith(_DEFAULT)
    service = state.name.removeprefix(_DEFAULT) if is_default else services.get(state.name, "")
    left = state.available - state.floor
    level, word = ("bad", "below its floor") if left < 0 else ("warn", "nothing left") if not left else ("good", "room")
    return BudgetRow(state.name, service, is_default, state, left, level, word, issuer_holdings(state.holder))


def floors(answer: pb.ListBudgetsResponse) -> dict[str, int]:
    """How many instances of each service must stay; where several budgets count, the strictest."""
    found: dict[str, int] = {}
    for row in budget_rows(answer):
        if row.service:
            found[row.service] = max(found.get(row.service, 0), row.state.floor)
    return found


def totals(answer: pb.ListBudgetsResponse) -> dict[str, int]:
    """How many instances of each service count, including silent locations."""
    found: dict[str, int] = {}
    for row in budget_rows(answer):
        if row.service:
            found[row.service] = max(found.get(row.service, 0), row.state.total)
    return found


def held_of(answer: pb.ListBudgetsResponse) -> dict[str, int]:
    """Instances of each service that tasks hold; where several budgets count, the most."""
    found: dict[str, int] = {}
    for row in budget_rows(answer):
        if row.service:
            found[row.service] = max(found.get(row.service, 0), sum(one.instances for one in row.holders))
    return found


def cms_problems(tasks: Iterable[pb.TaskState], status: pb.GetStatusResponse | None, now_s: float) -> list[Problem]:
    """A CMS that grants nothing, approvals that wait too long and for whom, holds that are overdue."""
    found = []
    if status is not None and status.closed:
        missing = f" Issuers that have not declared their work: {', '.join(status.missing)}." if status.missing else ""
        found.append(Problem("bad", "the CMS grants nothing", f"{status.closed}.{missing}", "", url("disruptions")))
    for one in tasks:
        task, since_s = one.task, seconds(one.since_time)
        href, what = url("disruptions", task.id), task_row(one).what
        if one.status == pb.TASK_STATUS_IN_PROCESS and now_s - seconds(one.create_time) > _LONG_S:
            waited = span(now_s - seconds(one.create_time))
            title = f"{task.action} of {what} has waited for {waited}"
            by = f"Asked for by {task.issuer}."
            found.append(Problem("warn", title, one.message, by, href, since_s, group=task.group_id))
        elif one.status == pb.TASK_STATUS_REJECTED:
            title, by = f"{task.action} of {what} was rejected", f"Asked for by {task.issuer}."
            found.append(Problem("warn", title, one.message, by, href, since_s, group=task.group_id))
        elif one.is_overdue:
            title = f"{task.action} of {what} is overdue"
            why = f"{task.issuer} has held it for {span(now_s - since_s)}; its instances count as unavailable."
            ways = "Ask its issuer; an operator can extend or end it."
            found.append(Problem("warn", title, why, ways, href, since_s, group=task.group_id))
    return found
