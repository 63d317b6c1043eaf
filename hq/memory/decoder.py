"""Decodes records from the store; an undecodable one goes into quarantine, and its last good state stays in use."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Literal, NamedTuple

from hq import keys as k
from hq.memory.record import (
    NO_STATUS,
    Pool,
    Spec,
    Status,
    Undecodable,
    decode_secrets,
    decode_spec,
    decode_status,
    decode_traits,
)
from store.port import KeyChange

_SHOWN_AT_MOST = 100


class Quarantined(NamedTuple):
    """One record in quarantine.

    Attributes:
        kind, rest: its key below the prefix, e.g. "spec" and the instance id.
        version: modified revision of the record in the store.
        served_from_older: an older state of the instance is shown in its place.
    """

    kind: str
    rest: str
    version: int
    error: str
    served_from_older: bool


class Quarantine:
    """The records in quarantine, by key. A delete or a good overwrite lets a record go.

    Attributes:
        changes: counts up at each change: while it is the same, so is the quarantine.
    """

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], Quarantined] = {}
        self.changes = 0
        self._shown_at, self._shown = -1, tuple[str, ...]()

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: Quarantined) -> None:
        self._records[record.kind, record.rest] = record
        self.changes += 1

    def release(self, kind: str, rest: str) -> None:
        if self._records and self._records.pop((kind, rest), None) is not None:
            self.changes += 1

    def get(self, kind: str, rest: str) -> Quarantined | None:
        return self._records.get((kind, rest)) if self._records else None

    def note_shown(self, rest: str, kinds: tuple[str, ...], *, shown: bool) -> None:
        """Note whether the instance is shown as it was before these records, or not at all."""
        for kind in kinds:
            record = self._records.get((kind, rest))
            if record is not None and record.served_from_older is not shown:
                self.put(record._replace(served_from_older=shown))

    def all(self) -> list[Quarantined]:
        """Ordered by key."""
        return [self._records[key] for key in sorted(self._records)]

    def shown_older(self) -> tuple[str, ...]:
        """The ids of instances that are shown in an older state, in order; the first hundred of them.

        Every answer contains it, so bad data in the store must not fill it.
        """
        if self._shown_at != self.changes:
            older = sorted({one.rest for one in self._records.values() if one.served_from_older})
            self._shown_at, self._shown = self.changes, tuple(older[:_SHOWN_AT_MOST])
        return self._shown

    def clear(self) -> None:
        self._records.clear()
        self.changes += 1


_POOLED_AT_MOST = 200_000


class Same(Enum):
    """A record is as it was: untouched, or unreadable."""

    SAME = auto()


SAME: Final = Same.SAME
NewSpec = Spec | Literal[Same.SAME] | None
NewStatus = Status | Literal[Same.SAME]


class RecordDecoder:
    """Decodes the records of instances.

    Attributes:
        pool: where equal strings are kept once.
    """

    def __init__(self, quarantine: Quarantine) -> None:
        self._quarantine = quarantine
        self.pool: Pool = {}

    def spec(self, instance_id: str, change: KeyChange | None, *, shown: int) -> NewSpec:
        """The spec after a change of its record; None if it was deleted, or recreated and unreadable.

        `shown`: the create revision of the record whose state is served; 0: none is. It tells if a deletion was missed.
        """
        if change is None:
            return SAME
        self._quarantine.release(k.SPEC, instance_id)
        if change.value is None:
            return None
        try:
            spec = decode_spec(change.value, change.created, change.revision)
            return spec._replace(traits=decode_traits(instance_id, spec.record, self.trimmed_pool()))
        except Undecodable as error:
            is_older = change.created == shown
            self._quarantine.put(Quarantined(k.SPEC, instance_id, change.revision, str(error), is_older))
            return SAME if is_older else None

    def status(self, instance_id: str, change: KeyChange | None, *, shown: bool) -> NewStatus:
        """The status after a change of its record; NO_STATUS if it was deleted."""
        if change is None:
            return SAME
        self._quarantine.release(k.STATUS, instance_id)
        if change.value is None:
            return NO_STATUS
        try:
            return decode_status(change.value, change.revision)
        except Undecodable as error:
            self._quarantine.put(Quarantined(k.STATUS, instance_id, change.revision, str(error), shown))
            return SAME

    def check_secrets(self, instance_id: str, change: KeyChange) -> None:
        """Put a secrets record that cannot be read into quarantine. No older one is served: readers get an error."""
        self._quarantine.release(k.SECRETS, instance_id)
        if change.value is None:
            return
        try:
            decode_secrets(change.value)
        except Undecodable as error:
            broken = Quarantined(k.SECRETS, instance_id, change.revision, str(error), served_from_older=False)
            self._quarantine.put(broken)

    def trimmed_pool(self) -> Pool:
        """The pool, emptied if it grew too large."""
        if len(self.pool) > _POOLED_AT_MOST:
            self.pool.clear()
        return self.pool
