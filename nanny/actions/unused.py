"""Contents without a snapshot: they are stored before it, and stay if it is refused or its caller is lost."""

from __future__ import annotations

from typing import Final

from control import Controller
from nanny.records import kinds

_AGAIN_S: Final = 600.0
_AT_ONCE: Final = 50  # deletions in one transaction


class UnusedContents:
    """Deletes chunks that had no snapshot at two looks: one that is being added gets its snapshot in between.

    `run` is what the kit calls while this process acts.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._suspects: set[str] = set()

    async def run(self, _: str) -> float:
        """Look once; return in how many seconds to look again."""
        snapshots, chunks = self._controller.records(kinds.SNAPSHOT), self._controller.records(kinds.CHUNK)
        unused = {name for name in chunks if name.rpartition("/")[0] not in snapshots}
        gone = sorted(unused & self._suspects)
        for start in range(0, len(gone), _AT_ONCE):
            change = self._controller.change()
            for name in gone[start : start + _AT_ONCE]:
                change.get(kinds.SNAPSHOT, name.rpartition("/")[0])
                change.get(kinds.CHUNK, name)
                change.delete(kinds.CHUNK, name)
            await change.commit()
        self._suspects = unused - set(gone)
        return _AGAIN_S
