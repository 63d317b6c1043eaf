"""What each owner's tasks take of what all share: bytes of the store, and time of every decision."""

from __future__ import annotations

from collections import Counter
from typing import Final

from cmspb.storage.v1 import ledger_pb2
from control import Records
from serving.errors import Overloaded

MOST_BYTES: Final = 64 << 20
MOST_TASKS: Final = 10_000  # each that waits costs every decision some 20 us
_RETRY_S: Final = 60.0


class OwnerSizes:
    """Follows the stored tasks."""

    def __init__(self, tasks: Records[ledger_pb2.Task]) -> None:
        self._tasks = tasks
        self._of: dict[str, tuple[str, int]] = {}
        self._sums: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        tasks.listen(self._on_task_changed)

    def check_room(self, task: ledger_pb2.Task) -> None:
        """Raises Overloaded: with this one, its owner's tasks take too much."""
        if self._sums[task.owner] + task.ByteSize() <= MOST_BYTES and self._counts[task.owner] < MOST_TASKS:
            return
        # Deleted while the store was reread: then listeners are told only of the tasks that are left.
        for gone in self._of.keys() - set(self._tasks):
            self._on_task_changed(gone)
        owner = task.owner or "callers without an identity"
        if self._counts[task.owner] >= MOST_TASKS:
            raise Overloaded(f"{owner}: {self._counts[task.owner]} tasks already: end some", _RETRY_S)
        if self._sums[task.owner] + task.ByteSize() > MOST_BYTES:
            raise Overloaded(f"the tasks of {owner} take {MOST_BYTES >> 20} MiB of the store: end some", _RETRY_S)

    def _on_task_changed(self, task_id: str) -> None:
        if task_id in self._of:
            owner, size = self._of.pop(task_id)
            self._sums[owner] -= size
            self._counts[owner] -= 1
            if not self._counts[owner]:
                del self._sums[owner], self._counts[owner]
        record = self._tasks.get(task_id) if task_id not in self._tasks.unreadable else None
        if record is not None:
            self._of[task_id] = record.owner, record.ByteSize()
            self._sums[record.owner] += record.ByteSize()
            self._counts[record.owner] += 1
