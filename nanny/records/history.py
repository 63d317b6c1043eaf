"""Who did what to a service: the last entries, in one record beside the service's."""

from __future__ import annotations

from typing import Final

from control import Change
from nanny.records import kinds
from nannypb.v1 import records_pb2, service_pb2

KEPT: Final = 300
_LONGEST: Final = 500
NOBODY_KNOWN: Final = "somebody"  # without authentication people need not say who they are; no author at all is Nanny
_MOST_BYTES: Final = 256 << 10  # long comments must not keep what follows, a pause say, from being recorded


class Story:
    """Entries of one event, stored with what it changes.

    Args:
        by: who caused the event, and when; entries for its consequences name Nanny.
    """

    def __init__(self, change: Change, service_id: str, by: service_pb2.Authorship) -> None:
        self._change, self._service_id, self._by = change, service_id, by
        self._entries: list[service_pb2.HistoryEntry] = []

    def tell(self, what: str, snapshot: str = "", *, by_nanny: bool = False) -> None:
        """Add an entry."""
        comment = "; ".join(text for text in (self._by.comment, self._by.ticket) if text)
        entry = service_pb2.HistoryEntry(time=self._by.time, what=what[:_LONGEST], snapshot_id=snapshot)
        if not by_nanny:
            entry.author, entry.comment = self._by.author or NOBODY_KNOWN, comment[:_LONGEST]
        self._entries.append(entry)

    def store(self) -> None:
        """Put the entries into the change."""
        record = self._change.get(kinds.HISTORY, self._service_id) or records_pb2.HistoryRecord()
        record.entry.extend(self._entries)
        del record.entry[:-KEPT]
        while record.ByteSize() > _MOST_BYTES:
            del record.entry[: 1 + len(record.entry) // 10]
        self._change.put(kinds.HISTORY, self._service_id, record)
