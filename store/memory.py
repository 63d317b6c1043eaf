"""The store in memory: the same promises as etcd, without a disk. For unit tests and for trying things out.

Nothing survives the process. It keeps its history until `compact`, like etcd, and has etcd's default limits.
"""

from __future__ import annotations

import asyncio
import bisect
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from store.port import (
    Applied,
    Batch,
    Commit,
    Compacted,
    Compare,
    ConditionFailed,
    Disconnected,
    FutureRevision,
    KeyChange,
    MemberStatus,
    Record,
    Rejected,
    StorePage,
    Unavailable,
    Write,
)

State = dict[bytes, Record]

MAX_OPERATIONS = 128  # etcd's default for conditions or writes of one transaction, nested ones included
MAX_BYTES = 3 << 19  # etcd's default for one request, 1.5 MiB


class MemoryStore:
    """An ordered, versioned, watchable map. All its methods answer at once, but yield to the loop first."""

    def __init__(self) -> None:
        self._revision = 1
        self._compacted = 0
        self._live: State = {}
        self._base: State = {}  # what was live at `_compacted`
        self._log: list[Batch] = []  # one per revision from `_compacted` on
        self._past: tuple[int, State] = (0, {})  # the last older state that was asked for
        self._watches: set[_Watch] = set()
        self._closed = False

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        await self._turn()
        check_limits(guards, writes)
        if not all(holds(self._live, guard) for guard in guards):
            return Commit(self._revision, guarded=False, outcomes=[])
        passed = [all(holds(self._live, c) for c in write.when) for write in writes]
        refused = [
            ConditionFailed({c.key: self._mod_revision(c.key) for c in w.when if c.range_end is None}) for w in writes
        ]
        revision = self._revision + 1
        changes = [c for write, ok in zip(writes, passed, strict=True) if ok for c in self._apply(write, revision)]
        if changes:
            self._append(Batch(revision, changes))
        outcomes = [Applied() if ok else refusal for ok, refusal in zip(passed, refused, strict=True)]
        return Commit(self._revision, guarded=True, outcomes=outcomes)

    async def get(self, key: bytes, *, revision: int = 0) -> tuple[Record | None, int]:
        await self._turn()
        return self._state(revision).get(key), self._revision

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False) -> StorePage:
        await self._turn()
        state = self._state(revision)
        keys = sorted(key for key in state if inside(key, start, end))
        records = [state[key]._replace(value=b"") if keys_only else state[key] for key in keys[:limit]]
        return StorePage(records, len(keys) > limit, self._revision)

    async def count(self, start: bytes, end: bytes, *, revision: int) -> int:
        await self._turn()
        return sum(inside(key, start, end) for key in self._state(revision))

    async def newest(self, start: bytes, end: bytes) -> tuple[int, int, int]:
        await self._turn()
        found = [r.modified for r in self._live.values() if inside(r.key, start, end)]
        return len(found), max(found, default=0), self._revision

    @asynccontextmanager
    async def watch(self, start: bytes, end: bytes, *, after: int) -> AsyncIterator[_Watch]:
        if self._closed:
            raise Disconnected("the store is closed")
        if after < self._compacted:
            raise Compacted(self._compacted)
        watch = _Watch(start, end, after, self._since(after))
        self._watches.add(watch)
        try:
            yield watch
        finally:
            self._watches.discard(watch)

    async def compact(self, revision: int) -> None:
        await self._turn()
        if revision > self._revision:
            raise FutureRevision
        if revision <= self._compacted:
            raise Compacted(self._compacted)
        self._base, self._log = dict(self._state(revision)), self._since(revision - 1)
        self._compacted, self._past = revision, (0, {})

    async def members(self) -> list[MemberStatus]:
        return [MemberStatus("memory", "memory", leader=True)]

    async def close(self) -> None:
        self._closed = True
        self.disconnect()

    def disconnect(self) -> None:
        """End every open watch, as a lost connection would."""
        for watch in self._watches:
            watch.cut()

    async def _turn(self) -> None:
        await asyncio.sleep(0)
        if self._closed:
            raise Unavailable("the store is closed")

    def _mod_revision(self, key: bytes) -> int:
        record = self._live.get(key)
        return record.modified if record else 0

    def _apply(self, write: Write, revision: int) -> Iterable[KeyChange]:
        for key, value in write.puts:
            old = self._live.get(key)
            self._live[key] = Record(key, value, old.created if old else revision, revision)
            yield KeyChange(key, value, self._live[key].created, revision)
        for key in write.deletes:
            if self._live.pop(key, None) is not None:
                yield KeyChange(key, None, 0, revision)

    def _append(self, batch: Batch) -> None:
        self._revision = batch.revision
        self._log.append(batch)
        for watch in self._watches:
            watch.add(batch)

    def _state(self, revision: int) -> State:
        """Return the keys that were live at a revision (0: now)."""
        if revision == 0 or revision == self._revision:
            return self._live
        if revision > self._revision:
            raise FutureRevision
        if revision < self._compacted:
            raise Compacted(self._compacted)
        if self._past[0] != revision:
            self._past = (revision, self._past_state(revision))
        return self._past[1]

    def _past_state(self, revision: int) -> State:
        state = dict(self._base)
        for batch in self._log:
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
    """One open watch, with what it has not delivered yet."""

    def __init__(self, start: bytes, end: bytes, after: int, missed: Iterable[Batch]) -> None:
        self._start, self._end, self._after = start, end, after
        self._pending: deque[Batch] = deque()
        self._moved = asyncio.Event()
        self._is_cut = False
        for batch in missed:
            self.add(batch)

    def add(self, batch: Batch) -> None:
        changes = [c for c in batch.changes if inside(c.key, self._start, self._end)]
        if changes and batch.revision > self._after:
            self._pending.append(Batch(batch.revision, changes))
            self._moved.set()

    def cut(self) -> None:
        self._is_cut = True
        self._moved.set()

    async def __aiter__(self) -> AsyncIterator[Batch]:
        while True:
            await self._moved.wait()
            if self._is_cut:
                raise Disconnected("the watch was cut off")
            batch = self._pending.popleft()
            if not self._pending:
                self._moved.clear()
            yield batch
            await asyncio.sleep(0)


# --- what a transaction means, as etcd has it ------------------------------------------------------------------------


def check_limits(guards: Sequence[Compare], writes: Sequence[Write]) -> None:
    """Raises Rejected where etcd would refuse the transaction whatever the state."""
    # Writes without conditions are not nested: each of their operations counts.
    width = max(len(guards), sum(1 if w.when else len(w.puts) + len(w.deletes) for w in writes))
    inner = max((max(len(w.when), len(w.puts) + len(w.deletes)) for w in writes if w.when), default=0)
    if width + inner > MAX_OPERATIONS:
        raise Rejected("too many operations in txn request")
    put = [key for write in writes for key, _ in write.puts]
    deleted = {key for write in writes for key in write.deletes}
    if len(set(put)) < len(put) or deleted.intersection(put):
        raise Rejected("duplicate key given in txn request")
    if not all((*put, *deleted, *(c.key for w in writes for c in w.when), *(g.key for g in guards))):
        raise Rejected("key is not provided")
    if sum(write.size_bytes for write in writes) > MAX_BYTES:
        raise Rejected("request is too large")


def inside(key: bytes, start: bytes, end: bytes) -> bool:
    """Whether a key lies in [start, end); the end b"\\0" is that of all keys."""
    return start <= key and (key < end or end == b"\0")


def holds(state: Mapping[bytes, Record], compare: Compare) -> bool:
    """Whether a condition holds in a state."""
    if compare.range_end is None:
        return _matches(compare, state.get(compare.key))
    found = [record for key, record in state.items() if inside(key, compare.key, compare.range_end)]
    return all(_matches(compare, record) for record in found) if found else _matches(compare, None)


def _matches(compare: Compare, record: Record | None) -> bool:
    operand = compare.operand
    if isinstance(operand, bytes):
        return record is not None and _relation_holds(record.value, operand, compare.relation)
    if record is None:
        return _relation_holds(0, operand, compare.relation)
    return _relation_holds(record.created if compare.field == "created" else record.modified, operand, compare.relation)


def _relation_holds(actual: bytes | int, operand: bytes | int, relation: str) -> bool:
    order = (actual > operand) - (actual < operand)  # type: ignore[operator]  # both are bytes or both numbers
    return order == {"<": -1, "=": 0, ">": 1}[relation]
