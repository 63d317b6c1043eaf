"""Audit lines of orders that only stop something, kept in the store while the log of the process is full.

Such orders are carried out in any case (a freeze must not need a disk), so their lines have to outlive the process. The
acting process writes them to its own log as soon as it can, and only then deletes them: a line may be there twice.
"""

from __future__ import annotations

import random
from typing import Final

from control.controller import Controller
from control.records import Kind
from controlpb.v1 import control_pb2
from serving.context import ServerContext
from serving.errors import StoreFull
from store.keys import new_word

KEPT: Final = Kind("audit", control_pb2.KeptLine)
_MOST: Final = 1_000  # more stay in memory: somebody who stops something all the time must not fill the store
_AGAIN_S: Final = 5.0


class KeptLines:
    """Keeps lines in the store, from any process; writes them to the log of the acting one, if it has one."""

    def __init__(self, controller: Controller, shared: ServerContext, rng: random.Random) -> None:
        self._controller, self._rng = controller, rng
        self._audit = shared.security.audit if shared.security is not None else None
        self._lines = controller.records(KEPT)
        writing = controller.reconcile("audit", self._write, lambda: list(self._lines), workers=1, while_closed=True)
        self._lines.listen(writing.trigger)
        if self._audit is not None:
            self._audit.keep = self.keep

    async def keep(self, line: str) -> None:
        """Store a line. Raises StoreFull: there are too many; and what a change raises."""
        if len(self._lines) >= _MOST:
            raise StoreFull(f"{_MOST} lines of the audit log wait in the store already")
        # In order of time, as far as the clocks of the processes agree.
        name = f"{self._controller.clock.wall_ms():015d}-{new_word(self._rng):016x}"
        change = self._controller.creation()
        change.get(KEPT, name)
        change.put(KEPT, name, control_pb2.KeptLine(line=line))
        await change.commit()

    async def _write(self, name: str) -> float | None:
        """Write a line to the log and delete it; return when to try again, if the log cannot be written."""
        change = self._controller.change()
        stored = change.get(KEPT, name)
        if stored is None:
            return None
        if self._audit is None or not self._audit.record_kept(stored.line):
            return _AGAIN_S
        change.delete(KEPT, name)
        await change.commit()
        return None
