"""Records that could not be decoded: named and counted, never a reason to stop."""

from __future__ import annotations

from typing import NamedTuple

_SHOWN_AT_MOST = 100


class Quarantined(NamedTuple):
    """One record.

    Attributes:
        kind, rest: its key below the prefix, e.g. "spec" and the instance id.
        version: modified revision of the record as it lies in the store.
        served_from_older: an older state of the instance is shown in its place.
    """

    kind: str
    rest: str
    version: int
    error: str
    served_from_older: bool


class Quarantine:
    """The records in quarantine, by key. A delete or a good overwrite lets a record go."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], Quarantined] = {}
        self._older: tuple[str, ...] | None = ()

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: Quarantined) -> None:
        self._records[record.kind, record.rest] = record
        self._older = None

    def release(self, kind: str, rest: str) -> None:
        if self._records and self._records.pop((kind, rest), None) is not None:
            self._older = None

    def get(self, kind: str, rest: str) -> Quarantined | None:
        return self._records.get((kind, rest)) if self._records else None

    def note_shown(self, rest: str, kinds: tuple[str, ...], *, shown: bool) -> None:
        """The instance of these records is shown, as it was before them, or it is not."""
        for kind in kinds:
            record = self._records.get((kind, rest))
            if record is not None and record.served_from_older is not shown:
                self.put(record._replace(served_from_older=shown))

    def all(self) -> list[Quarantined]:
        """In order of keys."""
        return [self._records[key] for key in sorted(self._records)]

    def shown_older(self) -> tuple[str, ...]:
        """The ids of instances that are shown in an older state, in order; the first hundred of them.

        The very same tuple as long as nothing changed. Every answer bears it, so rubbish in the store must not fill it.
        """
        if self._older is None:
            older = {record.rest for record in self._records.values() if record.served_from_older}
            self._older = tuple(sorted(older)[:_SHOWN_AT_MOST])
        return self._older

    def clear(self) -> None:
        self._records.clear()
        self._older = ()
