"""The recorded ledger, decided again. Pure.

Under the recorded rules each decision is made from exactly the data of then, and has to be the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cms import entries
from cms.journal import waits_of
from cms.ledger.book import TaskLedger
from cms.ledger.budgets import Budgets
from cms.ledger.calendar import Calendar
from cms.ledger.decide import TaskChange, confirm, decide
from cms.ledger.hearing import Hearing
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.limits import DomainLimits
from cms.ledger.states import TaskEvent
from cmspb.v1 import record_pb2

_DOUBT: Final = "ready, but it could not be counted on"


class RecordedHearing(Hearing):
    """Doubts what the record says was doubted: a record has no reports."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.doubted: set[InstanceKey] = set()

    def doubt(self, instance: Instance) -> str:
        return _DOUBT if instance.key in self.doubted else ""

    def too_old(self, now: float) -> Iterator[InstanceKey]:  # silence is recorded as doubt
        return iter(())

    def work_ended(self, hosts: tuple[str, ...], instances: tuple[InstanceKey, ...], at: float) -> None:
        """Do nothing: what the end of work leads to is recorded as doubt, too."""


@dataclass(frozen=True, slots=True)
class OtherRules:
    """Rules of a replay instead of those that were in force; None: as recorded."""

    budgets: Budgets | None = None
    calendar: Calendar | None = None
    limits: DomainLimits | None = None


class RecordedStep(NamedTuple):
    """News to the ledger, and the decision that it made then."""

    number: int
    learned: list[record_pb2.LedgerEntry]
    decision: record_pb2.LedgerDecision


class ReplayedStep(NamedTuple):
    """A decision as recorded and as made again; `waits`: units that go on waiting, and what for."""

    step: RecordedStep
    changes: list[TaskChange]
    refused: str
    waits: record_pb2.LedgerWaits
    recorded_waits: record_pb2.LedgerWaits

    @property
    def recorded(self) -> list[TaskChange]:
        """Return the recorded decision."""
        return [TaskChange(one.task_id, TaskEvent(one.event)) for one in self.step.decision.change]

    @property
    def is_same(self) -> bool:
        """Whether the same was decided again, for the same reasons."""
        same_waits = bool(self.step.decision.confirmed) or self.waits == self.recorded_waits
        return self.changes == self.recorded and self.refused == self.step.decision.refused and same_waits


def steps_of(found: Iterable[record_pb2.LedgerEntry]) -> Iterator[RecordedStep]:
    """Entries up to each decision. What comes after the last one was not decided on."""
    learned: list[record_pb2.LedgerEntry] = []
    number = 0
    for entry in found:
        if entry.HasField("decision"):
            yield RecordedStep(number, learned, entry.decision)
            number, learned = number + 1, []
        else:
            learned.append(entry)


class ReplayedLedger:
    """A ledger that learns from a record, and decides."""

    def __init__(self, other: OtherRules | None = None) -> None:
        """`other`: rules that are in force instead of those recorded."""
        self._other = other or OtherRules()
        self.hearing = RecordedHearing()
        self.book = TaskLedger.empty(entries.rules_of(record_pb2.LedgerStart()), ())
        self._waits = record_pb2.LedgerWaits()

    def learn(self, entry: record_pb2.LedgerEntry) -> None:
        """Take over what the ledger learned. Raises ValueError, KeyError: a newer version wrote it."""
        book, kind = self.book, entry.WhichOneof("entry")
        if kind == "start":
            self._start(entry.start)
        elif kind == "instance":
            self.put_instance(entry.instance)
        elif kind == "instance_gone":
            book.picture.drop_instance(entries.key_of(entry.instance_gone))
        elif kind == "task":
            book.put_task(entries.task_of(entry.task))
        elif kind == "task_gone":
            book.drop_task(entry.task_gone, 0.0)
            book.asked.clear()  # since when a later task has waited is recorded with that task
        elif kind == "certain":
            book.picture.believe(entry.certain.location)
        else:
            self._learn_rules(entry)

    def put_instance(self, one: record_pb2.LedgerInstance) -> None:
        """An instance as it stands now."""
        instance = entries.instance_of(one)
        (self.hearing.doubted.add if one.is_doubted else self.hearing.doubted.discard)(instance.key)
        self.book.picture.put_instance(instance)

    def _learn_rules(self, entry: record_pb2.LedgerEntry) -> None:
        book, kind = self.book, entry.WhichOneof("entry")
        if kind == "budgets" and self._other.budgets is None:
            self._rule(entries.budgets_of(entry.budgets))
        elif kind == "limits" and self._other.limits is None:
            book.limit(entries.limits_of(entry.limits))
        elif kind == "calendar" and self._other.calendar is None:
            book.calendar = entries.calendar_of(entry.calendar)

    def _rule(self, budgets: Budgets) -> None:
        before = self.book.picture.budgets
        self.book.rule(budgets, [*before.by_name.values(), *budgets.by_name.values()])

    def _start(self, start: record_pb2.LedgerStart) -> None:
        self.hearing = RecordedHearing()
        self.book = TaskLedger.empty(entries.rules_of(start), start.location)
        self.book.picture.hearing = self.hearing
        self.book.stuck_since = entries.stuck_of(start)
        self._waits = record_pb2.LedgerWaits()
        if self._other.budgets is not None:
            self._rule(self._other.budgets)
        if self._other.limits is not None:
            self.book.limit(DomainLimits(self._other.limits.by_name.values(), self._other.limits.sites))
        if self._other.calendar is not None:
            self.book.calendar = self._other.calendar

    def decide_again(self, step: RecordedStep) -> ReplayedStep:
        """Learn what a step learned, and make its decision again."""
        for entry in step.learned:
            self.learn(entry)
        recorded, book = step.decision, self.book
        book.closed, book.wall_offset_s = recorded.closed, recorded.wall_offset_s
        book.barred = lambda task: recorded.barred.get(task.id, "")
        if recorded.confirmed:
            outcome = confirm(book, book.tasks[recorded.confirmed].unit, recorded.now_s)
            refused = outcome if isinstance(outcome, str) else ""
            changes = [] if isinstance(outcome, str) else outcome
            return ReplayedStep(step, changes, refused, self._waits, self._waits)
        decision = decide(book, recorded.now_s)
        if recorded.HasField("waits"):
            self._waits = recorded.waits
        return ReplayedStep(step, decision.changes, "", waits_of(decision), self._waits)


@dataclass(slots=True)
class Repetition:
    """The result of deciding again under the recorded rules.

    Attributes:
        differing: decisions that came out otherwise, the first ones.
    """

    decisions: int = 0
    grants: int = 0
    differing: list[ReplayedStep] = field(default_factory=list)


_MOST_KEPT: Final = 20


def repeat(found: Iterable[record_pb2.LedgerEntry]) -> Repetition:
    """Decide again under the recorded rules. Raises ValueError, KeyError: a newer version wrote the record."""
    ledger, made = ReplayedLedger(), Repetition()
    for step in steps_of(found):
        again = ledger.decide_again(step)
        made.decisions += 1
        made.grants += sum(event in (TaskEvent.GRANT, TaskEvent.OFFER) for _, event in again.recorded)
        if not again.is_same and len(made.differing) < _MOST_KEPT:
            made.differing.append(replace_learned(again))
    return made


def replace_learned(again: ReplayedStep) -> ReplayedStep:
    """The step without the entries that it learned, which may be a whole cloud."""
    return again._replace(step=again.step._replace(learned=[]))
