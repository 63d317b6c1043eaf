"""Records that could not be decoded: named and counted, never a reason to stop."""

from __future__ import annotations

from typing import NamedTuple


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

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: Quarantined) -> None:
        self._records[record.kind, record.rest] = record

    def release(self, kind: str, rest: str) -> None:
        if self._records:
            self._records.pop((kind, rest), None)

    def get(self, kind: str, rest: str) -> Quarantined | None:
        return self._records.get((kind, rest)) if self._records else None

    def all(self) -> list[Quarantined]:
        """In order of keys."""
        return [self._records[key] for key in sorted(self._records)]

    def shown_older(self) -> list[str]:
        """The ids of the instances that are shown in an older state."""
        return sorted({r.rest for r in self._records.values() if r.served_from_older}) if self._records else []

    def clear(self) -> None:
        self._records.clear()
