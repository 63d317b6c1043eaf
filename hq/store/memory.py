"""The store in memory: the same promises as etcd, without a disk. For unit tests and `hq dev --store memory`.

Nothing survives the process. It keeps its history until `compact`, like etcd.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from hq.store.port import (
    Applied,
    Batch,
    Change,
    Commit,
    Compacted,
    Compare,
    Disconnected,
    FutureRevision,
    MemberStatus,
    Page,
    Record,
    Refused,
    Rejected,
    Write,
)

MAX_OPERATIONS = 128  # etcd's default limit for one transaction


class MemoryStore:
    """An ordered, versioned, watchable map. All its methods answer at once, but yield to the loop first."""

    def __init__(self) -> None:
        self._revision = 1
        self._compacted = 0
        self._live: dict[bytes, Record] = {}
        self._log: list[Batch] = []  # one per revision
        self._moved = asyncio.Event()
        self._watches: set[_Watch] = set()

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        await asyncio.sleep(0)
        self._reject_malformed(writes)
        if not all(self._holds(guard) for guard in guards):
            return Commit(self._revision, guarded=False, outcomes=[])
        passed = [all(self._holds(c) for c in write.when) for write in writes]
        changes: list[Change] = []
        for write, ok in zip(writes, passed, strict=True):
            if ok:
                changes += self._apply(write, self._revision + 1)
        if changes:
            self._append(changes)
        outcomes = [
            Applied() if ok else Refused({c.key: self._modified(c.key) for c in write.when if c.range_end is None})
            for write, ok in zip(writes, passed, strict=True)
        ]
        return Commit(self._revision, guarded=True, outcomes=outcomes)

    async def get(self, key: bytes, *, revision: int = 0) -> tuple[Record | None, int]:
        await asyncio.sleep(0)
        return self._state(revision).get(key), self._revision

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int) -> Page:
        await asyncio.sleep(0)
        state = self._state(revision)
        keys = sorted(key for key in state if start <= key < end)
        return Page([state[key] for key in keys[:limit]], len(keys) > limit, self._revision)

    async def newest(self, start: bytes, end: bytes) -> tuple[int, int, int]:
        await asyncio.sleep(0)
        found = [r.modified for r in self._live.values() if start <= r.key < end]
        return len(found), max(found, default=0), self._revision

    @asynccontextmanager
    async def watch(self, start: bytes, end: bytes, *, after: int) -> AsyncIterator[_Watch]:
        if after + 1 < self._compacted:
            raise Compacted(self._compacted)
        watch = _Watch(self, start, end, after)
        self._watches.add(watch)
        try:
            yield watch
        finally:
            self._watches.discard(watch)

    async def compact(self, revision: int) -> None:
        if revision > self._revision:
            raise FutureRevision
        if revision <= self._compacted:
            raise Compacted(self._compacted)
        self._compacted = revision

    async def members(self) -> list[MemberStatus]:
        return [MemberStatus("memory", "memory", leader=True)]

    async def close(self) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """End every open watch, as a lost connection would."""
        for watch in self._watches:
            watch.cut = True
        self._wake()

    def _reject_malformed(self, writes: Sequence[Write]) -> None:
        touched = [key for write in writes for key, _ in write.puts] + [k for write in writes for k in write.deletes]
        if len(set(touched)) < len(touched):
            raise Rejected("duplicate key given in txn request")
        if len(writes) > MAX_OPERATIONS:
            raise Rejected("too many operations in txn request")

    def _holds(self, compare: Compare) -> bool:
        if compare.range_end is None:
            return self._matches(compare, self._live.get(compare.key))
        inside = [r for key, r in self._live.items() if compare.key <= key < compare.range_end]
        return all(self._matches(compare, record) for record in inside)

    @staticmethod
    def _matches(compare: Compare, record: Record | None) -> bool:
        operand = compare.operand
        if isinstance(operand, bytes):
            return record is not None and record.value == operand
        actual = 0 if record is None else record.created if compare.field == "created" else record.modified
        return {"=": actual == operand, "<": actual < operand, ">": actual > operand}[compare.relation]

    def _modified(self, key: bytes) -> int:
        record = self._live.get(key)
        return record.modified if record else 0

    def _apply(self, write: Write, revision: int) -> list[Change]:
        changes = []
        for key, value in write.puts:
            old = self._live.get(key)
            self._live[key] = Record(key, value, old.created if old else revision, revision)
            changes.append(Change(key, value, self._live[key].created, revision))
        for key in write.deletes:
            if self._live.pop(key, None) is not None:
                changes.append(Change(key, None, 0, revision))
        return changes

    def _append(self, changes: list[Change]) -> None:
        self._revision += 1
        self._log.append(Batch(self._revision, changes))
        self._wake()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _state(self, revision: int) -> dict[bytes, Record]:
        """What was live at a revision (0: now)."""
        if revision == 0 or revision == self._revision:
            return self._live
        if revision > self._revision:
            raise FutureRevision
        if revision < self._compacted:
            raise Compacted(self._compacted)
        state: dict[bytes, Record] = {}
        for batch in self._since(0):
            if batch.revision > revision:
                break
            for key, value, created, modified in batch.changes:
                if value is None:
                    state.pop(key, None)
                else:
                    state[key] = Record(key, value, created, modified)
        return state

    def _since(self, after: int) -> list[Batch]:
        return self._log[bisect.bisect_right(self._log, after, key=lambda batch: batch.revision) :]


class _Watch:
    """One open watch: iterates over the store's log from its own position."""

    def __init__(self, store: MemoryStore, start: bytes, end: bytes, after: int) -> None:
        self._store, self._start, self._end, self._after = store, start, end, after
        self.cut = False

    async def __aiter__(self) -> AsyncIterator[Batch]:
        while True:
            moved = self._store._moved
            if self.cut:
                raise Disconnected("the watch was cut off")
            for batch in self._store._since(self._after):
                self._after = batch.revision
                changes = [c for c in batch.changes if self._start <= c.key < self._end]
                if changes:
                    yield Batch(batch.revision, changes)
            if moved is self._store._moved:
                await moved.wait()
