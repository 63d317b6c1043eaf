"""Is it still the same history? What was applied last must be in the store, at its revision.

etcd restored from a snapshot may show the same ids and a lower or higher revision, so only its contents tell.
The check is made after a watch was opened: stopping a store to restore it ends its watches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import attrgetter

from store.kept import Footing, footing_of
from store.port import Batch, Compacted, FutureRevision, Record, Store

_WORDS_KEPT = 20
_modified = attrgetter("modified")


class HistoryCheck:
    """Remembers the last put and the last deletion that were applied, and what this replica's fence key may hold."""

    def __init__(self) -> None:
        self._put: Record | None = None
        self._put_at = 0  # a revision at which the put was there: its own, or that of the listing that showed it
        self._gone: tuple[bytes, int] | None = None  # a deletion after the last put
        self._fence = self._word = b""  # the fence key, and the word that came back last
        # The words sent since: one whose try got no answer may still arrive. A full store refuses each.
        self._sent: deque[bytes] = deque(maxlen=_WORDS_KEPT)

    def clear(self) -> None:
        """Forget what was applied: a listing follows."""
        self._put = self._gone = None

    def footing(self) -> Footing | None:
        """Return the changes that prove the history to a later process; None: nothing was applied yet."""
        return footing_of(self._put, self._put_at, self._gone) if self._put is not None else None

    def stand_on(self, put: Record, footing: Footing) -> None:
        """Go on from where an earlier process ended."""
        self._put, self._put_at, self._gone = put, footing.at, footing.gone

    def on_records_listed(self, records: Sequence[Record], revision: int) -> None:
        """Remember the newest put in a part of a listing, and the word under this replica's fence key."""
        for record in self.telling(records):
            if self._put is None or record.modified > self._put.modified:
                self._put, self._put_at = record, revision
            self._came_back(record.key, record.value)

    def telling(self, records: Sequence[Record]) -> list[Record]:
        """The records of a page that `on_records_listed` needs: for a page that can be given to it only later."""
        newest = max(records, key=_modified, default=None)
        return [record for record in records if record is newest or record.key == self._fence]

    def on_batch_applied(self, batch: Batch) -> None:
        """Remember the last put and the last deletion of a batch."""
        for key, value, created, revision in batch.changes:
            if value is None:
                self._gone = (key, revision)
            else:
                self._put, self._put_at = Record(key, value, created, revision), revision
                self._came_back(key, value)
        if self._gone and self._put and self._gone[1] <= self._put.modified:
            self._gone = None

    def sending_fence(self, key: bytes, value: bytes) -> None:
        """Remember a word that is about to be put under this replica's fence key."""
        self._fence = key
        self._sent.append(value)

    def _came_back(self, key: bytes, value: bytes) -> None:
        """Forget older words: once a word has come back, only another history shows an older one."""
        if key == self._fence and value in self._sent:
            self._word = value
            while self._sent.popleft() != value:
                pass

    async def holds(self, store: Store) -> bool:
        """Whether the store still has this history. Raises Unavailable."""
        try:
            if self._put is not None:
                found, _ = await store.get(self._put.key, revision=self._put_at)
                if found != self._put:
                    return False
            if self._gone is not None:
                found, _ = await store.get(self._gone[0], revision=self._gone[1])
                return found is None
        except FutureRevision:
            return False
        except Compacted:
            return await self._fence_stands(store)
        return True

    async def _fence_stands(self, store: Store) -> bool:
        if not self._fence:
            return False
        found, _ = await store.get(self._fence)
        return found is not None and found.value in (self._word, *self._sent)
