"""Burial: removes the keys of processes that are gone for good, which would otherwise stay for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from store.epoch import Epoch
from store.keys import COMMITS, FENCE, MENDED, SESSION, Keys
from store.port import Compare, Record, Store, StoreClock, Write

_TIMEOUT_S = 5.0
_DEAD_AFTER_S = 3600.0
# A replica that comes back and does not find its fence assumes another history, which costs everybody a resync.
_FORGOTTEN_AFTER_S = 7 * 24 * 3600.0
_FENCES_AT_ONCE = 1_000


class _StillFence(NamedTuple):
    """A fence that does not move: since when (injected clock), and whether its replica's other keys are gone."""

    modified: int
    since: float
    buried: bool = False


class Burial:
    """Removes the keys of processes that are gone for good: every start of a process makes new ones.

    Looks at all fences now and then; one that has not moved for an hour belongs to a replica that is gone.
    """

    def __init__(
        self, store: Store, keys: Keys, replica: str, epoch: Epoch, clock: StoreClock, kinds: Sequence[str]
    ) -> None:
        self._store, self._keys, self._replica, self._epoch, self._clock = store, keys, replica, epoch, clock
        self._kinds = (SESSION, COMMITS, MENDED, *kinds)
        self._seen: dict[bytes, _StillFence] = {}

    async def once(self) -> None:
        """Remove what is due. Raises Unavailable, NoSpace, UnknownOutcome."""
        fences = await self._fences()
        now, seen = self._clock.now(), {}
        for fence in fences:
            last = self._seen.get(fence.key)
            seen[fence.key] = last if last and last.modified == fence.modified else _StillFence(fence.modified, now)
        self._seen = seen
        for fence in fences:
            await self._look(fence, self._seen[fence.key], now)

    async def _fences(self) -> list[Record]:
        """All fences: they are kept for a week, in which a process that fails at every start leaves thousands."""
        start, end, found = self._keys.of(FENCE, ""), self._keys.of(FENCE, "\U0010ffff"), list[Record]()
        while True:
            page = await self._store.page(start, end, revision=0, limit=_FENCES_AT_ONCE)
            found += page.records
            if not page.more:
                return found
            start = page.records[-1].key + b"\0"

    async def _look(self, fence: Record, sight: _StillFence, now: float) -> None:
        replica, silent_s = self._keys.name(fence.key).rest, now - sight.since
        if replica == self._replica or silent_s <= _DEAD_AFTER_S:
            return
        kinds = [] if sight.buried else list(self._kinds)
        if silent_s > _FORGOTTEN_AFTER_S:
            kinds.append(FENCE)
        if kinds:
            gone = tuple(self._keys.of(kind, replica) for kind in kinds)
            still = Compare(fence.key, "modified", fence.modified)
            await self._store.commit((self._epoch.guard(),), (Write((still,), deletes=gone),), _TIMEOUT_S)
            self._seen[fence.key] = sight._replace(buried=True)
