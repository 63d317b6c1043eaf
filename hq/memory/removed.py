"""Recently deleted instances, by the request that created them."""

from __future__ import annotations

from typing import Final

from hq.memory.entry import Entry

_MOST: Final = 4_096


class Removed:
    """The most recently deleted instances: a repeated creation must not bring back what was deleted since."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}  # by id and request id, oldest first

    def record_removal(self, entry: Entry, after: Entry | None) -> None:
        """`after`: what has taken its place, perhaps the same instance."""
        if entry.request_id and (after is None or after.spec_created != entry.spec_created):
            self._entries[entry.traits.id, entry.request_id] = entry
            if len(self._entries) > _MOST:
                del self._entries[next(iter(self._entries))]

    def get(self, instance_id: str, request_id: str) -> Entry | None:
        """Return the instance that this request created, as it last was; None: none, or no longer remembered."""
        return self._entries.get((instance_id, request_id))
