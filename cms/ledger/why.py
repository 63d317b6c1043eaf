"""Why a task is in its state, as facts and as text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, NamedTuple

from cms.ledger.book import TaskLedger
from cms.ledger.claims import Claim, Obstacle, WaitCause, claim_of, counted_total, ordinary_floor
from cms.ledger.decide import Decision, UnitWait, consider
from cms.ledger.instances import Instance, Standing
from cms.ledger.limits import PLURALS, DomainLimit
from cms.ledger.states import State
from cms.ledger.tally import TallyPlace
from cms.ledger.tasks import Task

_MOST_SHOWN: Final = 20
_MOST_RETRY_S: Final = 365 * 86_400  # a freeze may end thousands of years from now
_HIDDEN: Final = "of others"
_MOST_HOLDERS: Final = 100  # per instance, and per budget: each view reads them, and each list many views
_RETRY_S: Final = {WaitCause.CLOSED: 1, WaitCause.HOLDS: 10, WaitCause.BROKEN: 30, WaitCause.IMPOSSIBLE: 300}


class BudgetHolder(NamedTuple):
    """A task that holds so many instances of a budget."""

    task: Task
    instances: int

    def __str__(self) -> str:
        return f"{self.task.id} ({self.task.action}) holds {self.instances}"


class Missing(NamedTuple):
    """An instance that is not available though nobody holds it."""

    instance: Instance
    standing: Standing
    reason: str

    def __str__(self) -> str:
        return f"{self.instance.key.id} is {self.standing.value} ({self.reason})"


@dataclass(slots=True)
class BudgetView:
    """How a budget stands; `needs`: what a task would take of it."""

    name: str
    rule: str
    total: int
    floor: int
    available: int
    needs: int = 0
    blocks: bool = False
    holders: list[BudgetHolder] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    missing_total: int = 0

    def visible_part(self, task: Callable[[Task], bool], instance: Callable[[Instance], bool]) -> BudgetView:
        """The same with only the holders and instances that a caller may see; the numbers stay."""
        holders = [one for one in self.holders if task(one.task)]
        return replace(self, holders=holders, missing=[one for one in self.missing if instance(one.instance)])


class LimitView(NamedTuple):
    """How a domain limit stands; `workers`: who works in each of the busy domains."""

    limit: DomainLimit
    busy: tuple[str, ...]
    blocks: bool
    workers: tuple[tuple[Task, ...], ...] = ()

    def visible_part(self, task: Callable[[Task], bool]) -> LimitView:
        """The same, without the names of domains in which a caller may see no task; their number stays."""
        pairs = zip(self.busy, self.workers, strict=True)
        return self._replace(busy=tuple(name if any(map(task, at_work)) else _HIDDEN for name, at_work in pairs))


@dataclass(slots=True)
class Why:
    """Why a task is in its state. `opens_in_s`: work on it may not begin before, whatever else is in the way."""

    message: str
    retry_after_s: int = 0
    opens_in_s: int = 0
    budgets: list[BudgetView] = field(default_factory=list)
    limits: list[LimitView] = field(default_factory=list)

    def visible_part(self, task: Callable[[Task], bool], instance: Callable[[Instance], bool]) -> Why:
        """The same without the names of what a caller may not see; the numbers stay."""
        limits = [one.visible_part(task) for one in self.limits]
        words = {
            _under_work(told.busy): _under_work(shown.busy) for told, shown in zip(self.limits, limits, strict=True)
        }
        for seen in self.budgets:
            words |= {str(one): f"work holds {one.instances}" for one in seen.holders if not task(one.task)}
            words |= {str(one): f"one is {one.standing.value}" for one in seen.missing if not instance(one.instance)}
        message = self.message
        for told_words in sorted(words, key=len, reverse=True):  # longest first: one may end with another
            message = message.replace(told_words, words[told_words])
        budgets = [one.visible_part(task, instance) for one in self.budgets]
        return replace(self, message=message, budgets=budgets, limits=limits)


def view(book: TaskLedger, name: str, claim: Claim | None = None, *, blocks: bool = False) -> BudgetView:
    """How a budget stands, for a claim or for everybody. Raises KeyError: no instance ever came under it."""
    tally, claim = book.picture.tallies[name], claim or Claim()
    needs, floor = len(claim.taken.get(name, ())), ordinary_floor(tally, claim, book.picture)
    total = counted_total(tally, claim, book.picture)
    seen = BudgetView(name, tally.budget.words(), total, floor, tally.available, needs, blocks)
    counts: Counter[str] = Counter()
    for key in tally.apart[TallyPlace.HELD]:
        counts.update(islice(book.picture.holders(book.picture.instances[key]), _MOST_HOLDERS))
    held = (BudgetHolder(book.tasks[task_id], count) for task_id, count in counts.items() if task_id in book.tasks)
    seen.holders = sorted(held, key=lambda one: one.task.order)[:_MOST_HOLDERS]
    missing = sorted(tally.apart[TallyPlace.DOWN] | tally.apart[TallyPlace.UNCERTAIN])
    seen.missing_total = len(missing)
    for key in missing[:_MOST_SHOWN]:
        instance = book.picture.instances[key]
        seen.missing.append(Missing(instance, *book.picture.standing(instance)))
    return seen


def explain(book: TaskLedger, decision: Decision, task: Task, now: float, *, briefly: bool = False) -> Why:
    """Why a stored task is in its state; `briefly`: with only the budgets and limits that its message names."""
    members = [task] if briefly else book.members(task.unit)
    tasks = [one for one in members if one.state is task.state and one.disrupts] or [task]
    if task.state is State.WAITING:
        waiting = decision.waiting.get(task.unit, UnitWait())
        words, retry_s = _waiting_words(book, task, waiting)
        return _with_facts(book, tasks, waiting.obstacles, words, retry_s, briefly=briefly)
    words = {
        State.GRANTED: _granted_words(book, task, now),
        State.PROVISIONAL: (
            "granted provisionally: confirm it just before the work begins; until then ask for its state "
            f"at least every {book.rules.lapse_s:.0f} s"
        ),
        State.LAPSED: "the provisional grant lapsed because nobody asked for it; it waits again once somebody does",
        State.REJECTED: "rejected: it was impossible when it was decided",
    }[task.state]
    obstacles = consider(book, decision, tasks, now) if task.state is State.REJECTED else []
    if obstacles:
        words = f"rejected: {describe(book, obstacles)}"
    return _with_facts(book, tasks, obstacles, words, 0, briefly=briefly)


def explain_new(book: TaskLedger, decision: Decision, tasks: Sequence[Task], now: float) -> tuple[list[Obstacle], Why]:
    """Explain how tasks that are not stored would be decided: return their obstacles, and why."""
    obstacles = consider(book, decision, tasks, now)
    if book.closed and any(task.disrupts for task in tasks):
        return obstacles, _with_facts(book, tasks, obstacles, book.closed, 30)
    words = describe(book, obstacles) if obstacles else f"it could be granted now{_unknown(book, tasks)}"
    return obstacles, _with_facts(book, tasks, obstacles, words, _retry_s(obstacles))


def explain_obstacles(book: TaskLedger, tasks: Sequence[Task], obstacles: Sequence[Obstacle]) -> Why:
    """Explain the obstacles that the caller has found for tasks that are not stored."""
    return _with_facts(book, tasks, obstacles, describe(book, obstacles), 0)


def describe(book: TaskLedger, obstacles: Sequence[Obstacle]) -> str:
    """Describe the obstacles, and what would remove them."""
    return "; ".join(_words(book, obstacle) for obstacle in obstacles)


def _waiting_words(book: TaskLedger, task: Task, waiting: UnitWait) -> tuple[str, int]:
    if book.closed:
        return book.closed, 30
    if waiting.settles_in_s > 0:
        settles_in_s = math.ceil(waiting.settles_in_s)
        return f"waits {settles_in_s} s for more tasks of group {task.group}", settles_in_s
    if not waiting.obstacles:
        return "it is about to be decided", 1
    passed = "" if waiting.keeps_place else "; later tasks may pass it meanwhile"
    return describe(book, waiting.obstacles) + passed, _retry_s(waiting.obstacles)


def _retry_s(obstacles: Sequence[Obstacle]) -> int:
    return max((max(_RETRY_S[one.wait], _opens_in_s(one)) for one in obstacles), default=0)


def _opens_in_s(obstacle: Obstacle) -> int:
    return min(math.ceil(obstacle.retry_s), _MOST_RETRY_S)


def _granted_words(book: TaskLedger, task: Task, now: float) -> str:
    if task.overdue_at <= now:
        return f"granted; overdue for {now - task.overdue_at:.0f} s: {task.issuer or 'its issuer'} has not deleted it"
    return f"granted{_unknown(book, [task])}"


def _unknown(book: TaskLedger, tasks: Sequence[Task]) -> str:
    """Hosts on which no instance is known: perhaps mistyped."""
    unknown = sorted({host for task in tasks for host in task.hosts if not book.picture.instances_on(host)})
    more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
    return f"; no instance is known on {', '.join(unknown[:3])}{more}" if unknown else ""


def _with_facts(
    book: TaskLedger,
    tasks: Sequence[Task],
    obstacles: Sequence[Obstacle],
    words: str,
    retry_s: int,
    *,
    briefly: bool = False,
) -> Why:
    blocking = {(obstacle.kind, obstacle.name) for obstacle in obstacles}
    opens_in_s = max((_opens_in_s(one) for one in obstacles if one.wait is WaitCause.CLOSED), default=0)
    why = Why(words, retry_s, opens_in_s)
    if briefly:
        claim = Claim()
        budgets = {name for kind, name in blocking if kind == "budget"}
        limits = {name for kind, name in blocking if kind == "limit"}
    else:
        claim = claim_of([task for task in tasks if task.disrupts], book.picture, book.limits, book.locations)
        budgets, limits = set(claim.all), set(claim.domains)
    for name in sorted(budgets):
        why.budgets.append(view(book, name, claim, blocks=("budget", name) in blocking))
    for name in sorted(limits):
        busy = dict(sorted(book.limits.busy[name].items()))
        workers = tuple(tuple(book.tasks[one] for one in sorted(ids) if one in book.tasks) for ids in busy.values())
        why.limits.append(LimitView(book.limits.by_name[name], tuple(busy), ("limit", name) in blocking, workers))
    return why


def _words(book: TaskLedger, obstacle: Obstacle) -> str:
    if obstacle.kind == "rights":
        return obstacle.name
    if obstacle.kind == "location":
        return f"location {obstacle.name} is silent: what runs on these hosts is unknown until it answers"
    if obstacle.kind == "window":
        return _window_words(obstacle)
    if obstacle.kind == "limit":
        return _limit_words(book, obstacle)
    seen = view(book, obstacle.name)
    left_out = f", {obstacle.left_out} left out" if obstacle.left_out else ""
    of = f"{seen.total - obstacle.left_out} available{left_out}"
    rule = f"budget {seen.name} ({seen.rule}) must keep {obstacle.needed} of {of}"
    if obstacle.wait is WaitCause.IMPOSSIBLE:
        return (
            f"{rule}: this request cannot be granted even when all are ready. Add instances, lower the floor, or ask "
            "for fewer at a time"
        )
    return f"{rule} and would have {max(0, obstacle.left)}: {_culprits(seen)}"


def _window_words(obstacle: Obstacle) -> str:
    if obstacle.wait is WaitCause.IMPOSSIBLE:
        return f"{obstacle.text}: this request cannot begin at any time. Split it, or change the windows"
    return obstacle.text


def _culprits(seen: BudgetView) -> str:
    holders = [str(held) for held in seen.holders[:5]]
    missing = [str(one) for one in seen.missing[:5]]
    more = seen.missing_total - len(missing[:5])
    if more > 0:
        missing.append(f"{more} more are not available")
    return "; ".join([*holders, *missing]) or "earlier tasks wait for the same"


def _limit_words(book: TaskLedger, obstacle: Obstacle) -> str:
    limit = book.limits.by_name[obstacle.name]
    noun = PLURALS[limit.kind] if limit.most != 1 else {"dc": "data centre"}.get(limit.kind, limit.kind)
    rule = f"limit {limit.name}: at most {limit.most} {noun} under work at once"
    if obstacle.wait is WaitCause.IMPOSSIBLE:
        return f"{rule}, and it asks for more: split it"
    return f"{rule}; {_under_work(sorted(book.limits.busy[limit.name]))}"


def _under_work(busy: Sequence[str]) -> str:
    return f"under work: {', '.join(busy[:5]) or 'none, but earlier tasks wait for the same'}"
