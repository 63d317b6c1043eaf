"""The ledger: all tasks, what they hold, and the order in which those that wait are decided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from cms.ledger.budgets import Budget, Budgets
from cms.ledger.calendar import Calendar
from cms.ledger.claim_cache import ClaimCache
from cms.ledger.limits import DomainLimits
from cms.ledger.picture import InstanceIndex
from cms.ledger.states import State
from cms.ledger.tasks import Task, UnitKey

_MOST_ASKED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Rules:
    """Timing rules, in seconds.

    Attributes:
        settle_s: a group is decided when no task was added to it for this long;
        settle_most_s: or this long after the first one.
        pass_s: a unit that waits for something broken lets others pass after this time.
        lapse_s: a provisional ok ends after this time without a poll.
        age_s: a unit that has waited for this long takes turns with repairs, and its ok is not taken back.
        turn_s: the length of a turn, and of the pause after it.
        unasked_s: a machine's wait for its reboot ends after this time without a question.
        patience_s: an instance not heard from for this long is not counted on.
        reboot_away_s: a reboot takes a host away for at most this long, when all goes well.
    """

    settle_s: float = 5.0
    settle_most_s: float = 60.0
    pass_s: float = 600.0
    lapse_s: float = 120.0
    age_s: float = 3600.0
    turn_s: float = 600.0
    unasked_s: float = 900.0
    patience_s: float = 270.0
    reboot_away_s: float = 600.0


@dataclass(slots=True)
class TaskLedger:
    """Everything that a decision looks at.

    Attributes:
        locations: all there are.
        closed: why nothing may be granted (frozen, a new epoch); empty: it may.
        calendar: when work may begin.
        wall_offset_s: what the wall clock shows, less the ledger's clock.
        stuck_since: units that wait for something broken, and since when.
        barred: why a task's owner may no longer take down what the task names; empty: it may.
        asked: requests deleted before they were granted: since when each was asked for, and when it was deleted.
        claims: cached claims of waiting units, to decide faster.
    """

    picture: InstanceIndex
    limits: DomainLimits = field(default_factory=DomainLimits)
    rules: Rules = field(default_factory=Rules)
    locations: frozenset[str] = frozenset()
    closed: str = ""
    calendar: Calendar = field(default_factory=Calendar)
    wall_offset_s: float = 0.0
    tasks: dict[str, Task] = field(default_factory=dict)
    stuck_since: dict[UnitKey, float] = field(default_factory=dict)
    asked: dict[object, tuple[float, float]] = field(default_factory=dict)
    claims: ClaimCache = field(default_factory=ClaimCache)
    barred: Callable[[Task], str] = lambda _: ""

    @classmethod
    def empty(cls, rules: Rules, locations: Iterable[str], budgets: Budgets | None = None) -> TaskLedger:
        """A ledger without tasks."""
        picture = InstanceIndex(budgets or Budgets(), rules.patience_s, rules.reboot_away_s)
        return cls(picture, DomainLimits(), rules, frozenset(locations))

    def put_task(self, task: Task) -> None:
        """Take over a stored task."""
        before = self.tasks.get(task.id)
        if before is None:
            task = self._with_its_waiting_time(task)
        self.tasks[task.id] = task
        if before is not None and before.holds:
            self._release(before)
        if task.holds:
            self.picture.hold(task)
            self.limits.hold(task)

    def drop_task(self, task_id: str, now: float) -> None:
        """Remove a deleted task. If it was granted, its instances count again only once they are heard from."""
        task = self.tasks.pop(task_id, None)
        if task is not None and task.state in (State.WAITING, State.LAPSED, State.PROVISIONAL):
            if len(self.asked) >= _MOST_ASKED:
                self.asked.pop(next(iter(self.asked)))
            self.asked[task.asks_for] = (task.asked_at, now)
        if task is None or not task.holds:
            return
        self._release(task)
        if task.state is State.GRANTED and not task.proves_itself:
            self.picture.work_ended(task, now)

    def _with_its_waiting_time(self, task: Task) -> Task:
        """A task that was asked for again keeps its place: it has waited since the first request."""
        asked_at, dropped_at = self.asked.pop(task.asks_for, (task.asked_at, float("-inf")))
        is_again = task.asked_at - dropped_at < self.rules.age_s
        return replace(task, asked_at=min(asked_at, task.asked_at)) if is_again else task

    def has_aged(self, tasks: Collection[Task], now: float) -> bool:
        """Whether a unit has waited so long that repairs do not always go first."""
        return now - min(task.asked_at for task in tasks) >= self.rules.age_s

    def has_turn(self, tasks: Sequence[Task], now: float) -> bool:
        """Whether it is a unit's turn: in every other `turn_s` since it has aged."""
        asked_at = tasks[0].asked_at if len(tasks) == 1 else min(task.asked_at for task in tasks)
        aged_s = now - asked_at - self.rules.age_s
        return aged_s >= 0 and int(aged_s / self.rules.turn_s) % 2 == 0

    def rule(self, budgets: Budgets, changed: Collection[Budget]) -> None:
        """Put new budgets into force."""
        self.picture.rule(budgets, changed)

    def limit(self, limits: DomainLimits) -> None:
        """Put new domain limits or sites into force."""
        self.limits = limits
        self.claims = ClaimCache()
        for task in self.tasks.values():
            if task.holds:
                limits.hold(task)

    def members(self, unit: UnitKey) -> list[Task]:
        """The tasks of a unit, in order."""
        if unit.task_id:
            return [self.tasks[unit.task_id]] if unit.task_id in self.tasks else []
        return sorted((task for task in self.tasks.values() if task.unit == unit), key=_order)

    def units(self, *states: State) -> Iterator[tuple[UnitKey, list[Task]]]:
        """Tasks in these states by unit; units in the order of their first task."""
        found: dict[UnitKey, list[Task]] = {}
        for task in sorted([task for task in self.tasks.values() if task.state in states], key=_order):
            found.setdefault(task.unit, []).append(task)
        yield from found.items()

    def overdue(self, now: float) -> frozenset[str]:
        """Ids of the tasks whose work should have ended."""
        return frozenset(task.id for task in self.tasks.values() if task.holds and task.overdue_at <= now)

    def _release(self, task: Task) -> None:
        self.picture.release(task)
        self.limits.release(task)


_order: Final = attrgetter("order")
