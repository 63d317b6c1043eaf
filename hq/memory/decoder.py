"""Records as they come from the store, decoded; what cannot be goes into quarantine, and its last good state holds."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Literal

from hq import keys as k
from hq.memory.quarantine import Quarantine, Quarantined
from hq.memory.record import NO_STATUS, Spec, Status, Undecodable, decode_secrets, decode_spec, decode_status
from hq.memory.traits import Pool
from store.port import Change

_POOLED_AT_MOST = 200_000


class Same(Enum):
    """A record is as it was: untouched, or unreadable."""

    SAME = auto()


SAME: Final = Same.SAME
NewSpec = Spec | Literal[Same.SAME] | None
NewStatus = Status | Literal[Same.SAME]


class Decoder:
    """Decodes the records of instances.

    Attributes:
        pool: where equal strings are kept once.
    """

    def __init__(self, quarantine: Quarantine) -> None:
        self._quarantine = quarantine
        self.pool: Pool = {}

    def spec(self, instance_id: str, change: Change | None, *, shown: int) -> NewSpec:
        """The spec after a change of its record; None if it was deleted, or lives another life that nobody can read.

        `shown`: where the record was created whose state is being served; 0: none is. A deletion may have been missed.
        """
        if change is None:
            return SAME
        self._quarantine.release(k.SPEC, instance_id)
        if change.value is None:
            return None
        try:
            return decode_spec(instance_id, change.value, change.created, change.revision, self._trimmed_pool())
        except Undecodable as error:
            is_older = change.created == shown
            self._quarantine.put(Quarantined(k.SPEC, instance_id, change.revision, str(error), is_older))
            return SAME if is_older else None

    def status(self, instance_id: str, change: Change | None, *, shown: bool) -> NewStatus:
        """Likewise of the status; NO_STATUS if it was deleted."""
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

    def check_secrets(self, instance_id: str, change: Change) -> None:
        """Name a secrets record that cannot be read. Nothing takes its place: whoever asks for it is told."""
        self._quarantine.release(k.SECRETS, instance_id)
        if change.value is None:
            return
        try:
            decode_secrets(change.value)
        except Undecodable as error:
            broken = Quarantined(k.SECRETS, instance_id, change.revision, str(error), served_from_older=False)
            self._quarantine.put(broken)

    def _trimmed_pool(self) -> Pool:
        if len(self.pool) > _POOLED_AT_MOST:
            self.pool.clear()
        return self.pool
