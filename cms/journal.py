"""Tells recorders what the ledger knows and decides.

At each decision the ledger is compared with what was told before: what comes and goes between two decisions does not
matter. While nobody follows, nothing is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from cms import entries
from cms.ledger.book import TaskLedger
from cms.ledger.claims import claim_of, ordinary_floor
from cms.ledger.decide import Decision, TaskChange
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.states import State
from cms.ledger.tasks import Task, UnitKey
from cmspb.v1 import record_pb2
from control.followers import EntryFollower

_MOST_TOUCHED: Final = 200
Entries = list[record_pb2.LedgerEntry]
LedgerFollower = EntryFollower[record_pb2.LedgerEntry]


class LedgerJournal:
    """Writes for all followers what a ledger knows at each decision, and the decision."""

    def __init__(self, book: TaskLedger) -> None:
        self._book = book
        self._followers: set[LedgerFollower] = set()
        self._instances: dict[InstanceKey, tuple[Instance, bool]] = {}
        self._tasks: dict[str, Task] = {}
        self._settings: tuple[object, ...] = ()
        self._waits: record_pb2.LedgerWaits | None = None  # as told last; None: the next decision says them
        self._was_idle = False
        self._barred: dict[str, str] = {}

    @contextmanager
    def follow(self) -> Iterator[LedgerFollower]:
        """All that the ledger knows, and then what it decides."""
        if not self._followers:
            self._begin()
        self._waits, self._was_idle = None, False
        follower = LedgerFollower(list(entries.state_entries(self._book)))
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            if not self._followers:
                self._book.picture.unrecorded = None
                self._instances, self._tasks = {}, {}

    def end(self) -> None:
        """End all followers, as another process may decide now: they start over there."""
        for follower in self._followers:
            follower.end()

    def note_barred(self, task: Task, why: str) -> str:
        """Note why the owner of a task may no longer do what the task names (empty: it may); returns `why`."""
        if why and self._followers:
            self._barred[task.id] = why
        return why

    def add_decision(self, decision: Decision, now: float) -> None:
        """Tell followers a decision on all that waits; an idle one after an idle one only if something changed."""
        if not self._followers:
            return
        states = {task.state for task in self._book.tasks.values()}
        is_idle = states.isdisjoint({State.WAITING, State.PROVISIONAL})
        found = self._differences()
        if is_idle and self._was_idle and not found:
            return
        self._was_idle = is_idle
        made = self._decision(decision.changes, now)
        waits = waits_of(decision)
        if waits != self._waits:
            self._waits = waits
            made.waits.CopyFrom(waits)
        self._tell([*found, record_pb2.LedgerEntry(decision=made)])

    def add_confirmation(self, task_id: str, outcome: Sequence[TaskChange] | str, now: float) -> None:
        """Tell followers the decision on the confirmation of a task: what happens, or why nothing does."""
        if not self._followers:
            return
        found = self._differences()
        made = self._decision([] if isinstance(outcome, str) else outcome, now)
        made.confirmed, made.refused = task_id, outcome if isinstance(outcome, str) else ""
        self._tell([*found, record_pb2.LedgerEntry(decision=made)])

    def _decision(self, changes: Iterable[TaskChange], now: float) -> record_pb2.LedgerDecision:
        book, barred = self._book, self._barred
        self._barred = {}
        made = record_pb2.LedgerDecision(now_s=now, wall_offset_s=book.wall_offset_s, closed=book.closed, barred=barred)
        units: set[UnitKey] = set()
        for task_id, event in changes:
            task = book.tasks[task_id]
            touched = touched_by(book, task)
            change = made.change.add(task_id=task_id, event=event, touched=touched[:_MOST_TOUCHED])
            change.touches_more = len(touched) > _MOST_TOUCHED
            if task.unit not in units:
                units.add(task.unit)
                change.budget.extend(budget_facts(book, task.unit))
        return made

    # --- what is new --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        picture = self._book.picture
        doubt = picture.hearing.doubt
        picture.unrecorded = set()
        self._instances = {key: (one, bool(doubt(one))) for key, one in picture.instances.items()}
        self._tasks, self._settings = dict(self._book.tasks), self._current_settings()

    def _current_settings(self) -> tuple[object, ...]:
        book = self._book
        return book.picture.budgets, book.limits, book.calendar, book.picture.certain

    def _differences(self) -> Entries:
        """New tasks, then instances, then ended tasks: so a replay sees which task held an instance that changed."""
        return [*self._new_settings(), *self._new_tasks(), *self._new_instances(), *self._ended_tasks()]

    def _new_settings(self) -> Iterator[record_pb2.LedgerEntry]:
        book, before, now = self._book, self._settings, self._current_settings()
        self._settings = now
        budgets, limits, calendar, certain = (one is not other for one, other in zip(before, now, strict=True))
        if budgets:
            yield entries.budgets_entry(book.picture.budgets)
        if limits:
            yield entries.limits_entry(book.limits)
        if calendar:
            yield entries.calendar_entry(book.calendar)
        if certain and before[3] != now[3]:
            yield entries.certain_entry(book.picture.certain)

    def _new_instances(self) -> Iterator[record_pb2.LedgerEntry]:
        picture = self._book.picture
        looked_at, picture.unrecorded = picture.unrecorded or set(), set()
        for key in looked_at:
            instance = picture.instances.get(key)
            if instance is None:
                if self._instances.pop(key, None) is not None:
                    yield entries.instance_gone_entry(key)
                continue
            known = instance, bool(picture.hearing.doubt(instance))
            if self._instances.get(key) != known:
                self._instances[key] = known
                yield entries.instance_entry(instance, is_doubted=known[1])

    def _new_tasks(self) -> Iterator[record_pb2.LedgerEntry]:
        for task_id, task in self._book.tasks.items():
            if self._tasks.get(task_id) is not task:
                self._tasks[task_id] = task
                yield entries.task_entry(task)

    def _ended_tasks(self) -> Iterator[record_pb2.LedgerEntry]:
        for gone in self._tasks.keys() - self._book.tasks.keys():
            del self._tasks[gone]
            yield record_pb2.LedgerEntry(task_gone=gone)

    def _tell(self, new: Entries) -> None:
        for follower in self._followers:
            follower.add(new)


def waits_of(decision: Decision) -> record_pb2.LedgerWaits:
    """The units that a decision leaves waiting, and what for; without times, which differ each second."""
    waits = record_pb2.LedgerWaits()
    for unit, wait in decision.waiting.items():
        obstacles = sorted(f"{one.kind}:{one.name}:{one.wait}" for one in wait.obstacles)
        name = unit.task_id or f"{unit.owner}/{unit.group}"
        waits.wait.add(unit=name, obstacle=obstacles, keeps_place=wait.keeps_place)
    return waits


def budget_facts(book: TaskLedger, unit: UnitKey) -> Iterator[record_pb2.BudgetFact]:
    """How the budgets stand that a unit comes under."""
    working = [task for task in book.members(unit) if task.disrupts]
    claim = claim_of(working, book.picture, book.limits, book.locations)
    for name in sorted(claim.all):
        tally = book.picture.tallies[name]
        yield record_pb2.BudgetFact(
            name=name,
            total=tally.total,
            floor=ordinary_floor(tally, claim, book.picture),
            available=tally.available,
            needs=claim.all[name],
        )


def touched_by(book: TaskLedger, task: Task) -> list[record_pb2.TouchedInstance]:
    """Return the instances that a task takes down, each combination of service, node and location once."""
    found = (book.picture.instances[key] for key in book.picture.disrupted_by(task))
    places = Counter((one.service, one.host, one.key.location) for one in found)
    return [
        record_pb2.TouchedInstance(service=service, host=host, location=location)
        for service, host, location in sorted(places)
    ]
