"""Replays recorded decisions under other rules. Pure.

Until the first decision that differs this is exact. From then on it is an estimate: from its new grant work lasts as
long as recorded, what it took down goes down and comes back with it, and issuers ask on until they are granted.
Times are Unix times in seconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from cms import entries
from cms.ledger.decide import TaskChange, confirm, decide
from cms.ledger.instances import InstanceKey
from cms.ledger.states import HOLDING, State, TaskEvent
from cms.ledger.tasks import Task
from cms.replay import OtherRules, RecordedStep, ReplayedLedger, steps_of
from cmspb.v1 import record_pb2

TICK_S: Final = 10.0
_SAME_S: Final = 1.0  # two processes of one CMS do not store at the same moment
_SOON_S: Final = 0.004
_GRANTS: Final = (TaskEvent.GRANT, TaskEvent.OFFER)
Entry = record_pb2.LedgerEntry


@dataclass(slots=True)
class TaskCourse:
    """The course of a task.

    Attributes:
        grants_s: the times of all its grants.
        granted_s: of the last grant, if it was not taken back; None: there is none.
        other_granted_s: likewise under the other rules.
        confirmed_s, ended_s: None: not on record.
        moved: what happened to instances that it held, with the time since the last grant.
    """

    task: Task
    asked_s: float
    grants_s: list[float] = field(default_factory=list)
    granted_s: float | None = None
    confirmed_s: float | None = None
    ended_s: float | None = None
    other_granted_s: float | None = None
    moved: list[tuple[float, Entry]] = field(default_factory=list)

    @property
    def is_moved(self) -> bool:
        """Whether under the other rules it was granted at another time, or only there, or not at all."""
        if self.granted_s is None or self.other_granted_s is None:
            return self.granted_s is not self.other_granted_s
        return abs(self.granted_s - self.other_granted_s) > _SAME_S


@dataclass(slots=True)
class LowestMargin:
    """The least that was available of a budget beyond its floor, on both sides; below 0: too few."""

    recorded: int | None = None
    other: int | None = None


@dataclass(slots=True)
class Comparison:
    """How decisions under other rules differ.

    Attributes:
        diverged_s: when the first decision differed: what is after it is an estimate; None: none did.
        courses: of all tasks, by id.
        budgets: the lowest margins, by name of the budget; the sides may have different budgets.
    """

    decisions: int = 0
    since_s: float = 0.0
    until_s: float = 0.0
    diverged_s: float | None = None
    courses: dict[str, TaskCourse] = field(default_factory=dict)
    budgets: dict[str, LowestMargin] = field(default_factory=dict)

    def moved(self) -> list[TaskCourse]:
        """Tasks that would have been granted at another time, or not at all; the one asked for first comes first."""
        return sorted((one for one in self.courses.values() if one.is_moved), key=lambda one: one.asked_s)


def compare(read: Callable[[], Iterable[Entry]], other: OtherRules, until_s: float = 0.0) -> Comparison:
    """Decide a record under other rules; `read` is called twice.

    `until_s`: up to when the record is known, if that is after its last entry.

    Raises ValueError, KeyError: a newer version wrote it.
    """
    made = Comparison()
    recorded = RecordedCourse(made)
    for step in steps_of(read()):
        recorded.follow(step)
    whatif = OtherCourse(made, other, recorded.belongs_to)
    for step in steps_of(read()):
        whatif.follow(step)
    whatif.end(until_s)
    made.until_s = max(made.until_s, until_s)
    return made


class _Course:
    """One side of the comparison."""

    def __init__(self, made: Comparison, ledger: ReplayedLedger) -> None:
        self._made, self._ledger = made, ledger
        self._offset_s = 0.0  # of Unix time, less the clock of the process that recorded
        self._entry = 0

    def _numbered(self, step: RecordedStep) -> Iterator[tuple[int, Entry]]:
        for entry in step.learned:
            if entry.HasField("start"):
                self._offset_s = entry.start.wall_offset_s
            self._entry += 1
            yield self._entry, entry

    def _time_s(self, step: RecordedStep) -> float:
        return step.decision.now_s + next(
            (one.start.wall_offset_s for one in reversed(step.learned) if one.HasField("start")), self._offset_s
        )

    def _note_margins(self, side: str) -> None:
        for name, tally in self._ledger.book.picture.tallies.items():
            lowest = self._made.budgets.setdefault(name, LowestMargin())
            before: int | None = getattr(lowest, side)
            margin = tally.available - tally.floor
            if tally.total and (before is None or margin < before):
                setattr(lowest, side, margin)


class RecordedCourse(_Course):
    """The recorded course, and which changes of instances belong to which work."""

    def __init__(self, made: Comparison) -> None:
        super().__init__(made, ReplayedLedger())
        # By number of an entry: the task that it belongs to, and when that task was granted.
        self.belongs_to: dict[int, tuple[str, float]] = {}
        self._offered: dict[str, float] = {}
        self._tail: dict[InstanceKey, str] = {}  # instances not yet back from work that ended, with its task

    def follow(self, step: RecordedStep) -> None:
        """Take over what a step learned and decided."""
        now_s = self._time_s(step)
        made = self._made
        made.since_s, made.until_s = made.since_s or now_s, now_s
        made.decisions += 1
        for number, entry in self._numbered(step):
            kind = entry.WhichOneof("entry")
            if kind == "task":
                self._note_task(entries.task_of(entry.task), now_s)
            elif kind == "task_gone":
                self._note_end(entry.task_gone, now_s)
            elif kind in ("instance", "instance_gone"):
                ref = entry.instance.ref if kind == "instance" else entry.instance_gone
                self._note_instance(number, entry, entries.key_of(ref), now_s)
            self._ledger.learn(entry)
        for change in step.decision.change:
            if change.event in _GRANTS:
                self._offered[change.task_id] = now_s
        if step.learned or step.decision.change:
            self._note_margins("recorded")

    def _note_task(self, task: Task, now_s: float) -> None:
        course = self._made.courses.get(task.id)
        if course is None:
            course = self._made.courses[task.id] = TaskCourse(task, now_s)
        before = self._ledger.book.tasks.get(task.id)
        had = before is not None and before.state in HOLDING
        if task.state in HOLDING and not had:
            course.granted_s = self._offered.pop(task.id, now_s)
            course.grants_s.append(course.granted_s)
            course.moved.clear()
        elif had and task.state not in HOLDING:
            course.granted_s = None
        if task.state is State.GRANTED and course.confirmed_s is None:
            course.confirmed_s = now_s
        course.task = task

    def _note_end(self, task_id: str, now_s: float) -> None:
        task, picture = self._ledger.book.tasks.get(task_id), self._ledger.book.picture
        self._made.courses[task_id].ended_s = now_s
        if task is not None and task.holds:
            for key in picture.disrupted_by(task):
                instance = picture.instances[key]
                if not instance.is_ready or picture.hearing.doubt(instance):
                    self._tail[key] = task_id

    def _note_instance(self, number: int, entry: Entry, key: InstanceKey, now_s: float) -> None:
        picture = self._ledger.book.picture
        known = picture.instances.get(key)
        holders = picture.holders(known) if known is not None else set()
        owner = min(holders) if holders else self._tail.get(key, "")
        course = self._made.courses.get(owner)
        if course is not None and course.granted_s is not None:
            self.belongs_to[number] = owner, course.granted_s
            course.moved.append((now_s - course.granted_s, entry))
        if not holders and entry.instance.is_ready and not entry.instance.is_doubted:
            self._tail.pop(key, None)


class OtherCourse(_Course):
    """The course under other rules."""

    def __init__(self, made: Comparison, other: OtherRules, belongs_to: dict[int, tuple[str, float]]) -> None:
        super().__init__(made, ReplayedLedger(other))
        self._belongs_to = belongs_to
        self._due: list[tuple[float, int, Callable[[float], None]]] = []
        self._serial = 0
        self._now_s: float | None = None
        self._decision = record_pb2.LedgerDecision()
        self._granted: dict[str, float] = {}  # when each task was granted last, taken back or not
        self._over: set[str] = set()  # tasks that have ended here, and not yet in the record
        self._turn: dict[str, int] = {}  # grows with each grant that is taken back: what was due is void

    def follow(self, step: RecordedStep) -> None:
        """Let time pass until a step, then take it over and decide."""
        now_s = self._time_s(step)
        if self._now_s is not None:
            self._pass_until(now_s)
        kept = dict(self._ledger.book.tasks)
        self._now_s, self._decision = now_s, step.decision
        is_start = any(entry.HasField("start") for entry in step.learned)
        for number, entry in self._numbered(step):
            self._learn(number, entry, kept)
        if is_start:
            for gone in kept.keys() - {entry.task.id for entry in step.learned if entry.HasField("task")}:
                self._drop(gone)
        if step.decision.confirmed:
            self._confirm(step.decision.confirmed, now_s)
        else:
            self._decide(now_s, step.decision)
        self._note_margins("other")

    def end(self, until_s: float) -> None:
        """Let time pass after the last step."""
        if self._now_s is not None:
            self._pass_until(until_s)

    # --- what is learned ----------------------------------------------------------------------------------------------

    def _learn(self, number: int, entry: Entry, kept: dict[str, Task]) -> None:
        kind = entry.WhichOneof("entry")
        assert self._now_s is not None
        if kind == "task":
            self._learn_task(entries.task_of(entry.task), kept)
        elif kind == "task_gone":
            self._learn_end(entry.task_gone)
        elif number not in self._belongs_to or self._is_as_recorded(*self._belongs_to[number]):
            self._ledger.learn(entry)
            if kind == "start":
                # By the clock of the process that leads from now on; in this replay all times are Unix times.
                self._ledger.book.stuck_since = {
                    u: s + self._offset_s for u, s in self._ledger.book.stuck_since.items()
                }

    def _is_as_recorded(self, task_id: str, granted_s: float) -> bool:
        """Whether a task was granted here when it was granted in the record."""
        return abs(self._granted.get(task_id, float("-inf")) - granted_s) <= _SAME_S

    def _learn_task(self, task: Task, kept: dict[str, Task]) -> None:
        book, offset_s = self._ledger.book, self._offset_s
        if task.id in self._over:
            return
        task = replace(
            task,
            added_at=task.added_at + offset_s,
            polled_at=task.polled_at + offset_s,
            since=task.since + offset_s,
            asked_at=task.asked_at + offset_s,
            overdue_at=task.overdue_at + offset_s,
        )
        known = book.tasks.get(task.id) or kept.get(task.id)
        if known is None:
            course = self._made.courses[task.id]
            if task.state in HOLDING:
                course.other_granted_s = self._granted[task.id] = course.grants_s[0]
        elif known.state is not task.state and not (known.state is State.LAPSED and task.state is State.WAITING):
            task = replace(known, need=task.need, polled_at=max(known.polled_at, task.polled_at))
        book.put_task(task)

    def _learn_end(self, task_id: str) -> None:
        course = self._made.courses[task_id]
        self._over.discard(task_id)
        if course.granted_s is None or self._is_as_recorded(task_id, course.granted_s):
            self._drop(task_id)  # it was given up, or ends as recorded

    def _end(self, task_id: str, *, is_early: bool) -> None:
        if is_early:
            self._over.add(task_id)
        self._drop(task_id)

    def _drop(self, task_id: str) -> None:
        self._ledger.book.drop_task(task_id, 0.0)
        self._ledger.book.asked.clear()

    # --- time ---------------------------------------------------------------------------------------------------------

    def _at(self, when_s: float, task_id: str, act: Callable[[float], None]) -> None:
        turn = self._turn.get(task_id, 0)
        self._serial += 1

        def act_if_due(now_s: float) -> None:
            if self._turn.get(task_id, 0) == turn:
                act(now_s)

        heapq.heappush(self._due, (when_s, self._serial, act_if_due))

    def _pass_until(self, until_s: float) -> None:
        """Do what is due, and decide then; after the first difference decide at each tick, too, while a task waits."""
        assert self._now_s is not None
        while True:
            is_waiting = self._made.diverged_s is not None and any(
                task.state in (State.WAITING, State.PROVISIONAL) for task in self._ledger.book.tasks.values()
            )
            tick_s = self._now_s + TICK_S if is_waiting else float("inf")
            next_s = min(tick_s, self._due[0][0] if self._due else float("inf"))
            if next_s >= until_s:
                return
            self._now_s = max(self._now_s, next_s)
            while self._due and self._due[0][0] <= self._now_s:
                heapq.heappop(self._due)[2](self._now_s)
            self._decide(self._now_s, None)
            self._note_margins("other")

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _decide(self, now_s: float, recorded: record_pb2.LedgerDecision | None) -> None:
        book, last = self._ledger.book, self._decision
        book.closed, book.wall_offset_s = last.closed, last.wall_offset_s - self._offset_s
        book.barred = lambda task: last.barred.get(task.id, "")
        if self._made.diverged_s is not None:
            self._poll_all(now_s)
        changes = decide(book, now_s).changes
        if recorded is not None and changes != [TaskChange(c.task_id, TaskEvent(c.event)) for c in recorded.change]:
            self._diverge(now_s)
        self._apply(changes, now_s)

    def _diverge(self, now_s: float) -> None:
        if self._made.diverged_s is None:
            self._made.diverged_s = now_s

    def _poll_all(self, now_s: float) -> None:
        """Assume that all issuers ask on: whether they would have, nobody knows."""
        for task in list(self._ledger.book.tasks.values()):
            if task.state is State.PROVISIONAL:
                self._ledger.book.put_task(replace(task, polled_at=now_s))

    def _confirm(self, task_id: str, now_s: float) -> None:
        task = self._ledger.book.tasks.get(task_id)
        if task is None or task.state is not State.PROVISIONAL:
            return
        outcome = confirm(self._ledger.book, task.unit, now_s)
        if not isinstance(outcome, str):
            self._apply(outcome, now_s)

    def _apply(self, changes: Iterable[TaskChange], now_s: float) -> None:
        book, has_any = self._ledger.book, False
        for task_id, event in changes:
            has_any = True
            book.put_task(book.tasks[task_id].after_event(event, now_s))
            course = self._made.courses[task_id]
            if event in _GRANTS:
                course.other_granted_s = self._granted[task_id] = now_s
                self._plan(course, now_s)
            elif event in (TaskEvent.WITHDRAW, TaskEvent.LAPSE):
                course.other_granted_s = None
                self._turn[task_id] = self._turn.get(task_id, 0) + 1
        if has_any and self._made.diverged_s is not None:
            self._at(now_s + _SOON_S, "", lambda _: None)  # the next decision follows at once

    def _plan(self, course: TaskCourse, now_s: float) -> None:
        """Make due what follows from a grant at another time than recorded."""
        task = course.task
        if course.granted_s is None or any(self._is_as_recorded(task.id, one) for one in course.grants_s):
            return
        self._diverge(now_s)
        if task.confirm:
            delay_s = max(0.0, (course.confirmed_s or course.granted_s) - course.granted_s)
            self._at(now_s + delay_s, task.id, lambda when_s: self._confirm(task.id, when_s))
        for since_s, entry in course.moved:
            self._at(now_s + since_s, task.id, lambda _, entry=entry: self._ledger.learn(entry))  # type: ignore[misc]
        if course.ended_s is not None:
            ends_s = now_s + course.ended_s - course.granted_s
            self._at(ends_s, task.id, lambda _: self._end(task.id, is_early=ends_s < (course.ended_s or 0.0)))
