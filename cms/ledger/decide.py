"""Decides which tasks are granted now. `decide` returns changes; it changes only the record of stuck units and the
cache of claims.

Units are considered in the order of need, then of their creation; one that has waited long takes turns with repairs.
A unit that fits is granted. One that does not fit keeps its place: what it asks for counts as taken for later units,
so none of them can take it, while all else stays available to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from cms.ledger.book import TaskLedger
from cms.ledger.claims import (
    Claim,
    Obstacle,
    Round,
    WaitCause,
    claim_of,
    floor_for_claim,
    lengthens_brief_work,
)
from cms.ledger.instances import InstanceKey
from cms.ledger.states import State, TaskEvent
from cms.ledger.tally import TallyPlace
from cms.ledger.tasks import Need, Task, UnitKey


class TaskChange(NamedTuple):
    """Something happens to a task."""

    task_id: str
    event: TaskEvent


class UnitWait(NamedTuple):
    """Why a unit waits.

    Attributes:
        settles_in_s: for how long more tasks may join its group.
        keeps_place: others may not take what it asks for.
    """

    obstacles: tuple[Obstacle, ...] = ()
    settles_in_s: float = 0.0
    keeps_place: bool = True


@dataclass(slots=True)
class Decision:
    """Changes of tasks, and why the others wait.

    Attributes:
        round: what is taken and reserved so far, for whoever asks next.
    """

    round: Round
    changes: list[TaskChange] = field(default_factory=list)
    waiting: dict[UnitKey, UnitWait] = field(default_factory=dict)


def decide(book: TaskLedger, now: float) -> Decision:
    """Decide changes of tasks. Lapses and withdrawals come alone: nothing is granted until these are stored."""
    book.picture.age(now)
    overdue = book.overdue(now)
    decision = Decision(Round(book.picture, book.limits, overdue))
    for provisional in _provisional(book):
        decision.round.expect(_claim(book, provisional))
    decision.changes += _lapses(book, now) or withdrawals(book, now)
    may_grant = not decision.changes and not book.closed
    waiting = dict(book.units(State.WAITING))
    book.claims.begin(waiting, book.picture.changes(), overdue)
    for unit, tasks in in_order(book, decision.round, waiting, now):
        _decide_unit(book, decision, unit, tasks, now, may_grant=may_grant)
    for gone in book.stuck_since.keys() - waiting.keys():
        del book.stuck_since[gone]
    return decision


def in_order(
    book: TaskLedger, round_: Round, waiting: Mapping[UnitKey, list[Task]], now: float
) -> list[tuple[UnitKey, list[Task]]]:
    """Waiting units in the order in which they are decided; `round_`: as it is before the first.

    Of aged units one at a time has the turn in each budget; of those that need no budget, in each limit.
    """
    taken: set[str] = set()
    ranks: dict[UnitKey, int] = {}
    for unit, tasks in waiting.items():
        ranks[unit] = need_of(tasks)
        if ranks[unit] == Need.REPAIR or not book.has_turn(tasks, now):
            continue
        if working := [task for task in tasks if task.disrupts]:
            claim = book.claims.claim(unit, tasks, working, _claim_maker(book, working))
            names = claim.taken.keys() or claim.domains.keys()
            if taken.isdisjoint(names) and _may_use_turn(book, round_, unit, working, claim, now):
                ranks[unit] = -1
                taken |= names
    units = sorted(waiting.items(), key=lambda one: ranks[one[0]])  # stable: in the order of creation
    book.claims.arrange([unit for unit, _ in units])
    return units


def _may_use_turn(
    book: TaskLedger, round_: Round, unit: UnitKey, tasks: Sequence[Task], claim: Claim, now: float
) -> bool:
    """Whether a unit could be granted if others' work ended; one that could not would starve those that came with it.

    Something broken bars it only after `pass_s`: each end of work leaves instances uncertain for a moment.
    """
    waits = {one.wait for one in (*round_.obstacles(claim), *_closed_windows(book, claim, tasks, now))}
    if WaitCause.IMPOSSIBLE in waits or WaitCause.CLOSED in waits:
        return False
    # Not by stuck_since alone: this decision changes it, so the next one would answer otherwise.
    if WaitCause.BROKEN in waits and now - book.stuck_since.get(unit, now) >= book.rules.pass_s:
        return False
    return not _right_obstacles(book, tasks)


def _claim_maker(book: TaskLedger, tasks: Sequence[Task]) -> Callable[[], Claim]:
    return lambda: _claim(book, tasks)


def need_of(tasks: Sequence[Task]) -> Need:
    """A group is as needed as the least needed of it."""
    return tasks[0].need if len(tasks) == 1 else max(task.need for task in tasks)


def consider(book: TaskLedger, decision: Decision, tasks: Sequence[Task], now: float) -> list[Obstacle]:
    """Return the obstacles that tasks not stored yet would meet after all stored ones; empty: none."""
    working = [task for task in tasks if task.disrupts]
    if not working:
        return []
    claim = _claim(book, working)
    return [*_closed_windows(book, claim, working, now), *decision.round.obstacles(claim)]


def _decide_unit(
    book: TaskLedger, decision: Decision, unit: UnitKey, tasks: list[Task], now: float, *, may_grant: bool
) -> None:
    working = [task for task in tasks if task.disrupts]
    if len(working) < len(tasks):
        decision.changes += [TaskChange(task.id, TaskEvent.GRANT) for task in tasks if not task.disrupts]
    if not working:
        return
    claim = book.claims.claim(unit, tasks, working, lambda: _claim(book, working))
    round_ = decision.round
    obstacles = [*round_.locations(claim), *book.claims.budgets(unit, round_), *round_.limits(claim)]
    obstacles += _closed_windows(book, claim, working, now)
    settles_in_s = _settles_in_s(book, unit, working, now)
    has_taken = True
    if settles_in_s > 0 or not (obstacles or may_grant):
        decision.waiting[unit] = UnitWait(tuple(obstacles), settles_in_s)
    elif obstacles and not _take_back(book, decision, working, claim, obstacles, now, may_grant=may_grant):
        has_taken = _keep_waiting(book, decision, unit, working, obstacles, now)
    elif barred := _right_obstacles(book, working):
        decision.waiting[unit] = UnitWait(tuple(barred), keeps_place=False)
        has_taken = False
    else:
        decision.changes += [
            TaskChange(task.id, TaskEvent.OFFER if task.confirm else TaskEvent.GRANT) for task in working
        ]
        book.stuck_since.pop(unit, None)
    if has_taken:
        round_.take(claim)
    book.claims.took(unit, has_taken=has_taken)


def _keep_waiting(
    book: TaskLedger, decision: Decision, unit: UnitKey, tasks: list[Task], obstacles: list[Obstacle], now: float
) -> bool:
    """Note why a unit waits, or reject it; return whether it keeps its place."""
    waits = {obstacle.wait for obstacle in obstacles}
    if WaitCause.IMPOSSIBLE in waits:
        if any(_rejects(book, obstacle) for obstacle in obstacles):
            decision.changes += [TaskChange(task.id, TaskEvent.REJECT) for task in tasks]
        keeps_place = False
    elif WaitCause.CLOSED in waits:
        book.stuck_since.pop(unit, None)
        keeps_place = False
    elif WaitCause.BROKEN in waits:
        keeps_place = now - book.stuck_since.setdefault(unit, now) < book.rules.pass_s
    else:
        book.stuck_since.pop(unit, None)
        keeps_place = True
    decision.waiting[unit] = UnitWait(tuple(obstacles), 0.0, keeps_place)
    return keeps_place


def _right_obstacles(book: TaskLedger, tasks: Sequence[Task]) -> list[Obstacle]:
    """Why owners may no longer take down what they asked for; costly, so asked only for what would be granted."""
    return [Obstacle("rights", why, WaitCause.BROKEN) for task in tasks if (why := book.barred(task))]


def _rejects(book: TaskLedger, obstacle: Obstacle) -> bool:
    is_budget = obstacle.kind == "budget" and obstacle.wait is WaitCause.IMPOSSIBLE
    return is_budget and book.picture.tallies[obstacle.name].budget.rejects


def _take_back(
    book: TaskLedger,
    decision: Decision,
    tasks: list[Task],
    claim: Claim,
    obstacles: list[Obstacle],
    now: float,
    *,
    may_grant: bool,
) -> bool:
    """Take provisional oks of planned work and roll-outs back for a repair, if that grants it in this decision.

    By whole units, the latest of the least needed first. Never from aged units, which could lose their oks for ever.
    """
    if not may_grant or need_of(tasks) > Need.REPAIR:
        return False
    if not {obstacle.wait for obstacle in obstacles} <= {WaitCause.HOLDS, WaitCause.BROKEN}:
        return False
    if (
        claim.silent
        or _right_obstacles(book, tasks)
        or any(change.event is TaskEvent.WITHDRAW for change in decision.changes)
    ):
        return False  # one at a time: the next decision follows at once
    names = claim.all.keys() | claim.domains.keys()
    withdrawn: set[str] = set()
    freed: dict[str, set[InstanceKey]] = {}
    backs: list[TaskChange] = []
    for others in reversed(_provisional(book)):
        theirs = _claim(book, others)
        if need_of(others) < Need.ROLLOUT or book.has_aged(others, now):
            continue
        if names.isdisjoint(theirs.all.keys() | theirs.domains.keys()):
            continue
        withdrawn |= {task.id for task in others}
        backs += [TaskChange(task.id, TaskEvent.WITHDRAW) for task in others]
        _free(book, others, withdrawn, freed)
        if decision.round.fits_without(claim, withdrawn, freed):
            decision.changes += backs
            return True
    return False


def _provisional(book: TaskLedger) -> list[list[Task]]:
    """Units with provisional oks, the most needed and earliest first."""
    return sorted((tasks for _, tasks in book.units(State.PROVISIONAL)), key=need_of)


def _closed_windows(book: TaskLedger, claim: Claim, tasks: Sequence[Task], now: float) -> list[Obstacle]:
    """The window or freeze that keeps work from beginning now, if there is one."""
    if not book.calendar.rules or (need := need_of(tasks)) is Need.URGENT:
        return []
    wall = now + book.wall_offset_s
    opening = book.calendar.opening(
        wall, claim.services, claim.projects, is_repair=need is Need.REPAIR, began=_order_began_at(tasks)
    )
    if not opening.why:
        return []
    if opening.at is None:
        return [Obstacle("window", opening.name, WaitCause.IMPOSSIBLE, text=opening.why)]
    # Not "in 3 h": whoever stores what a task waits for would rewrite it each minute.
    at = datetime.fromtimestamp(math.ceil(opening.at / 60) * 60, UTC)
    text = f"{opening.why}; work may begin on {at:%a %Y-%m-%d at %H:%M} UTC"
    return [Obstacle("window", opening.name, WaitCause.CLOSED, text=text, retry_s=opening.at - wall)]


def _order_began_at(tasks: Sequence[Task]) -> float | None:
    """When the latest of the orders that they are part of began; None: one of them begins its order now."""
    began = [task.order_began_at for task in tasks if task.order_began_at is not None]
    return max(began) if len(began) == len(tasks) else None


def _claim(book: TaskLedger, tasks: Sequence[Task]) -> Claim:
    return claim_of(tasks, book.picture, book.limits, book.locations)


def _settles_in_s(book: TaskLedger, unit: UnitKey, tasks: list[Task], now: float) -> float:
    """Wait for further members of a group, but not for ever if tasks keep being added."""
    if not unit.group:
        return 0.0
    rules = book.rules
    last, first = max(task.added_at for task in tasks), min(task.added_at for task in tasks)
    return min(last + rules.settle_s, first + rules.settle_most_s) - now


def poll(book: TaskLedger, task_id: str) -> list[TaskChange]:
    """The changes caused by polling a task: a lapsed ok of its unit waits again."""
    members = book.members(book.tasks[task_id].unit)
    return [TaskChange(t.id, TaskEvent.POLL) for t in members if t.id == task_id or t.state is State.LAPSED]


# --- provisional oks --------------------------------------------------------------------------------------------------


def _lapses(book: TaskLedger, now: float) -> list[TaskChange]:
    """Provisional oks that nobody polls."""
    changes = []
    for _, tasks in book.units(State.PROVISIONAL):
        if max(task.polled_at for task in tasks) + book.rules.lapse_s <= now:
            changes += [TaskChange(task.id, TaskEvent.LAPSE) for task in tasks]
    return changes


def withdrawals(book: TaskLedger, now: float) -> list[TaskChange]:
    """Provisional oks whose window has closed, whose owner lost the right, or that break a floor by now.

    The latest first, as many as necessary.

    What several of them hold is charged to the first one; otherwise all of them could be confirmed.
    """
    changes: list[TaskChange] = []
    overdue = book.overdue(now)
    freed: dict[str, set[InstanceKey]] = {}
    withdrawn: set[str] = set()
    later: set[str] = set()
    for tasks in reversed(_provisional(book)):
        later |= {task.id for task in tasks}
        is_closed = bool(book.calendar.rules and _closed_windows(book, _claim(book, tasks), tasks, now))
        if is_closed or _right_obstacles(book, tasks) or not _still_fits(book, tasks, later, freed, overdue):
            withdrawn |= {task.id for task in tasks}
            changes += [TaskChange(task.id, TaskEvent.WITHDRAW) for task in tasks]
            _free(book, tasks, withdrawn, freed)
    return changes


def _still_fits(
    book: TaskLedger, tasks: list[Task], later: set[str], freed: dict[str, set[InstanceKey]], overdue: frozenset[str]
) -> bool:
    """Whether provisional tasks could still be granted now, given what has recovered since.

    `later`: ids of these and of those that came after them.
    """
    uncertain: dict[str, int] = {}
    claim = _claim(book, tasks)
    for key in set().union(*(book.picture.disrupted_by(task) for task in tasks)):
        instance = book.picture.instances[key]
        standing = book.picture.standing(instance)[0]
        if standing.value == TallyPlace.DOWN:
            continue
        for name in _charged_budgets(book, claim, key, later):
            uncertain[name] = uncertain.get(name, 0) + (standing.value == TallyPlace.UNCERTAIN)
    for name, count in uncertain.items():
        tally = book.picture.tallies[name]
        floor = floor_for_claim(tally, claim, book.picture, overdue)
        if tally.available + len(freed.get(name, ())) - count < floor:
            return False
    return True


def _charged_budgets(book: TaskLedger, claim: Claim, key: InstanceKey, later: set[str]) -> list[str]:
    """The budgets that must keep their floor for an instance: all, if only tasks in `later` hold it.

    Else those in which the claim makes others' brief work on it longer.
    """
    names = book.picture.budget_entry(key)[1]
    if book.picture.holders(book.picture.instances[key]) <= later:
        return list(names)
    return [
        name for name in claim.ordinary.intersection(names) if lengthens_brief_work(book.picture, name, [key], later)
    ]


def _free(book: TaskLedger, tasks: list[Task], withdrawn: set[str], freed: dict[str, set[InstanceKey]]) -> None:
    for key in set().union(*(book.picture.disrupted_by(task) for task in tasks)):
        instance = book.picture.instances[key]
        standing = book.picture.standing(instance)[0]
        if standing.value == TallyPlace.AVAILABLE and book.picture.holders(instance) <= withdrawn:
            for name in book.picture.budget_entry(key)[1]:
                freed.setdefault(name, set()).add(key)


def confirm(book: TaskLedger, unit: UnitKey, now: float) -> list[TaskChange] | str:
    """The result of confirming any task of a unit: changes (none if it is final already), or why not.

    All oks that are no longer valid are withdrawn first: then the changes may concern other units only, and
    the confirmation has to be requested again.
    """
    book.picture.age(now)
    tasks = [task for task in book.members(unit) if task.state is State.PROVISIONAL]
    if not tasks:
        is_final = any(task.state is State.GRANTED for task in book.members(unit))
        return [] if is_final else "there is no provisional grant to confirm"
    if book.closed:
        return book.closed
    silent = sorted(_claim(book, tasks).silent)
    if silent:
        return f"location {silent[0]} is silent"
    # What an earlier unit holds is charged to that one: it is withdrawn first, then this one is decided.
    return withdrawals(book, now) or [TaskChange(task.id, TaskEvent.CONFIRM) for task in tasks]
