"""Which changes of a decision one transaction stores.

A group too large for one transaction is noted in the ledger first, and by that it is decided: whoever acts then
completes it before deciding anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cms.ledger.book import TaskLedger
from cms.ledger.decide import TaskChange
from cms.ledger.states import TaskEvent
from cmspb.storage.v1 import ledger_pb2

MOST_AT_ONCE: Final = 90  # records in one transaction; etcd takes 128
_MOST_BYTES: Final = 1 << 20  # of these records; etcd takes half as much again
SizeOf = Callable[[str], int]
"""The bytes of a stored task."""


def count_fitting(task_ids: Iterable[str], size_of: SizeOf) -> int:
    """How many of these, from the first on, one transaction takes; at least one, if there is one."""
    left, count = _MOST_BYTES, 0
    for task_id in task_ids:
        left -= size_of(task_id)
        if count == MOST_AT_ONCE or (count and left < 0):
            break
        count += 1
    return count


def first_part(
    ledger: ledger_pb2.Ledger, changes: Sequence[TaskChange], book: TaskLedger, epoch: str, size_of: SizeOf
) -> list[TaskChange]:
    """The first changes, as many as one transaction takes, no unit split. Empty: the first unit was noted."""
    taken = list(changes[: count_fitting((change.task_id for change in changes), size_of)])
    if len(taken) == len(changes):
        return taken
    cut = book.tasks[changes[len(taken)].task_id].unit
    taken = [change for change in taken if book.tasks[change.task_id].unit != cut]
    if not taken:
        ledger.epoch = epoch
        for task_id, event in changes:
            task = book.tasks[task_id]
            if task.unit == cut:
                ledger.moving.add(task_id=task_id, order=task.order, event=event)
    return taken


def next_part(ledger: ledger_pb2.Ledger, book: TaskLedger, size_of: SizeOf) -> list[TaskChange]:
    """The next changes of those that were noted. Tasks that were deleted or re-created meanwhile are skipped."""
    count = count_fitting((one.task_id for one in ledger.moving), size_of)
    part = ledger.moving[:count]
    del ledger.moving[:count]
    return [
        TaskChange(one.task_id, TaskEvent(one.event))
        for one in part
        if one.task_id in book.tasks and book.tasks[one.task_id].order == one.order
    ]
