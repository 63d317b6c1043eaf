"""What the ledger of a CMS says becomes rows that are shown only to callers that may read what they name."""

from __future__ import annotations

import pytest

from cms.journal import LedgerJournal
from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.decide import decide
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.tasks import Task
from cmspb.v1 import record_pb2
from control.amounts import Amount
from recorder.decided import DecisionRow, ObservedLedger
from serving.rights.access import Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import READ, Role


def rows_of(entries: list[record_pb2.LedgerEntry]) -> list[DecisionRow]:
    ledger = ObservedLedger()
    return [row for entry in entries for row in ledger.apply(entry, 1)]


def task(name: str, owner: str, state: str, group: str = "") -> record_pb2.LedgerEntry:
    return record_pb2.LedgerEntry(task=record_pb2.LedgerTask(id=name, owner=owner, group_id=group, state=state))


def test_budgets_are_shown_at_the_tasks_of_their_unit_only() -> None:
    """Budgets of the unit before were once shown with a task that comes under no budget, to its owner."""
    tasks = [("t1", "ann", "g"), ("t2", "bob", "g"), ("t3", "ann", "g"), ("t4", "ann", "")]
    decision = record_pb2.LedgerDecision()
    for name, _, _ in tasks:
        decision.change.add(task_id=name, event="grant")
    decision.change[0].budget.add(name="web", total=4, available=4, floor=3, needs=1)
    found = rows_of(
        [
            *(task(name, owner, "waiting", group) for name, owner, group in tasks),
            record_pb2.LedgerEntry(decision=decision),
            *(task(name, owner, "granted", group) for name, owner, group in tasks),
        ]
    )
    granted = {row.subject: len(row.based_on) for row in found if row.event == "granted"}
    assert granted == {"t1": 1, "t2": 0, "t3": 1, "t4": 0}


def test_the_author_of_a_task_is_its_identity_and_no_name_that_it_gave_itself() -> None:
    entry = task("t1", "ci-web", "waiting")
    entry.task.issuer, entry.task.action, entry.task.need = "ops/ada", "reboot", "planned"
    (asked,) = rows_of([entry])
    assert (asked.by, asked.message) == ("ci-web", "reboot (planned) as ops/ada")
    entry.task.owner = ""  # of a CMS without authentication
    (asked,) = rows_of([entry])
    assert (asked.by, asked.message) == ("ops/ada", "reboot (planned)")


def readable(row: DecisionRow, name: str, services: list[str] | None) -> bool:
    scope = Scope(Patterns(services) if services else None, None)
    return row.readers.may_read(Access(Identity(name, ProofKind.TOKEN, 0.0), READ, {Role.READER: (scope,)}))


@pytest.mark.parametrize(("instances", "of_a"), [(200, [True, True]), (201, [True, True]), (201, [True, False])])
async def test_a_disruption_of_more_instances_than_recorded_is_for_readers_of_everything(
    instances: int, of_a: list[bool]
) -> None:
    """The first 200 places are of service `a`: whoever may read that one could read of the task on `b`, too."""
    book = TaskLedger.empty(Rules(), ("ams",))
    budgets = [Budget(name, name, max_unavailable=Amount.parse("100%")) for name in ("a", "b")]
    book.rule(Budgets(budgets), budgets)
    book.picture.believe(("ams",))
    keys = [InstanceKey("ams", f"i-{number:03}") for number in range(instances)]
    for number, key in enumerate(keys):
        service = "a" if number + 1 < instances or all(of_a) else "b"
        book.picture.put_instance(Instance(key, service, f"h{number:03}", is_ready=True))
        book.picture.record_report(key, 0.0)
    journal = LedgerJournal(book)
    with journal.follow() as follower:
        book.put_task(Task("t1", 1, "roll-out", (), tuple(keys), "ann", added_at=0.0, polled_at=0.0))
        decision = decide(book, 0.0)
        journal.add_decision(decision, 0.0)
        for name, event in decision.changes:
            book.put_task(book.tasks[name].after_event(event, 0.0))
        journal.add_decision(decide(book, 1.0), 1.0)
        entries = await follower.take(10**9, 0)
    [granted] = [row for row in rows_of(entries) if row.event == "granted"]
    assert readable(granted, "bob", ["a"]) is (instances == 200)
    assert readable(granted, "ann", ["a"])
    assert readable(granted, "bob", None)
