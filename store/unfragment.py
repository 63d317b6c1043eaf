"""Complete revisions out of a stream that may split them. Pure."""

from __future__ import annotations

from store.port import Batch, KeyChange


class Unfragment:
    """Puts fragments of a watch together again.

    etcd splits a large message into fragments, also in the middle of a revision. A revision counts only when all of it
    has come; whatever is at or below `applied` is a replay (a 3.4 member does that after a snapshot) and dropped.
    """

    def __init__(self, applied: int) -> None:
        self._applied = applied
        self._held: list[KeyChange] = []

    def take(self, changes: list[KeyChange], *, more_follows: bool) -> Batch | None:
        """The revisions that became complete with these changes, oldest first; None if none did."""
        held = self._held + [c for c in changes if c.revision > self._applied]
        if not held:
            return None
        # The newest revision may go on in the next fragment.
        open_revision = held[-1].revision if more_follows else held[-1].revision + 1
        whole = [c for c in held if c.revision < open_revision]
        self._held = [c for c in held if c.revision >= open_revision]
        if not whole:
            return None
        self._applied = whole[-1].revision
        return Batch(self._applied, whole)
