"""Which changes of a decision one transaction stores.

A group too large for one is noted in the ledger first and completed before anything else is decided, whoever acts
then: what is noted is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cms.ledger.book import TaskLedger
from cms.ledger.decide import TaskChange
from cms.ledger.states import TaskEvent
from cmspb.storage.v1 import ledger_pb2

MOST_AT_ONCE: Final = 90  # records in one transaction; etcd takes 128


def first_part(
    ledger: ledger_pb2.Ledger, changes: Sequence[TaskChange], book: TaskLedger, epoch: str
) -> list[TaskChange]:
    """The first changes, as many as one transaction takes, without splitting a unit. Empty: the first one was noted."""
    taken = list(changes[:MOST_AT_ONCE])
    if len(taken) == len(changes):
        return taken
    cut = book.tasks[changes[MOST_AT_ONCE].task_id].unit
    taken = [change for change in taken if book.tasks[change.task_id].unit != cut]
    if not taken:
        ledger.epoch = epoch
        for task_id, event in changes:
            task = book.tasks[task_id]
            if task.unit == cut:
                ledger.moving.add(task_id=task_id, order=task.order, event=event)
    return taken


def next_part(ledger: ledger_pb2.Ledger, book: TaskLedger) -> list[TaskChange]:
    """The next changes of those that were noted. Tasks that were deleted or re-created meanwhile are skipped."""
    part = ledger.moving[:MOST_AT_ONCE]
    del ledger.moving[:MOST_AT_ONCE]
    return [
        TaskChange(one.task_id, TaskEvent(one.event))
        for one in part
        if one.task_id in book.tasks and book.tasks[one.task_id].order == one.order
    ]
