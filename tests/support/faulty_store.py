"""A store in memory that fails as networks, members and disks do. Every fault is planned or comes from a seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, auto

from store.memory import MemoryStore, _Watch
from store.port import (
    Batch,
    Commit,
    Compare,
    Disconnected,
    MemberStatus,
    NoSpace,
    Record,
    Rejected,
    StorePage,
    Unavailable,
    UnknownOutcome,
    WatchStream,
    Write,
)


class Fate(Enum):
    """What becomes of a transaction."""

    DONE = auto()
    AWAY = auto()  # certainly not sent
    LOST = auto()  # sent, and lost: unknown
    UNANSWERED = auto()  # took place, and the answer is lost: unknown
    LATE = auto()  # unknown, and it arrives later through another member
    FULL = auto()  # certainly refused, for want of space
    LAST = auto()  # took place and used up the last space: said to be refused
    SILENT = auto()  # neither takes place nor is answered before the timeout


@dataclass(slots=True)
class _Plan:
    fate: Fate
    touching: bytes


class FaultyStore:
    """Wraps a store in memory. `plan` decides single transactions, `chances` the others.

    Attributes:
        delay_s: every call takes up to so long.
        late_s: a late transaction arrives within so long.
        cut_chance: of a watch to end before each batch.
        away: nothing can be reached, watches end.
        full: what puts without conditions is refused for want of space.
        files_fault: why its files for TLS are not in force.
        unreadable: so many more reads of single keys fail.
        poisonous: a transaction with such a write is rejected as a whole.
        sent: all transactions that were tried, with what they were guarded by.
    """

    def __init__(self, store: MemoryStore, rng: random.Random, chances: Mapping[Fate, float] | None = None) -> None:
        self.store, self._rng, self.chances = store, rng, dict(chances or {})
        self.delay_s = 0.0
        self.late_s = 5.0
        self.cut_chance = 0.0
        self.away = self.full = False
        self.files_fault = ""
        self.unreadable = 0
        self.poisonous: Callable[[Write], bool] = lambda _: False
        self.sent: list[tuple[Sequence[Compare], Sequence[Write]]] = []
        self._plans: list[_Plan] = []
        self._late: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    def plan(self, *fates: Fate, touching: bytes = b"") -> None:
        """What becomes of the next transactions, or of those that put or delete keys with this beginning."""
        self._plans += [_Plan(fate, touching) for fate in fates]

    def forget_plans(self) -> None:
        """Nothing more will become of those that were planned and did not come."""
        self._plans.clear()

    def silence(self) -> None:
        """Watches stay open and bring nothing, those opened from now on too."""
        self._flowing.clear()

    def speak(self) -> None:
        self._flowing.set()

    def go_away(self) -> None:
        self.away = True
        self.store.disconnect()

    async def arrived(self) -> None:
        """Return when every late transaction has arrived."""
        while self._late:
            await asyncio.gather(*self._late)

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        await self._call()
        self.sent.append((guards, writes))
        self._check(writes)
        fate = self._fate(writes)
        if fate is Fate.AWAY:
            raise Unavailable("connection refused")
        if fate is Fate.FULL:
            raise NoSpace("the store is full")
        if fate is Fate.LATE:
            task = asyncio.create_task(self._arrive(self.store, guards, writes))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
        elif fate in (Fate.DONE, Fate.UNANSWERED, Fate.LAST):
            commit = await self.store.commit(guards, writes, timeout_s)
            if fate is Fate.LAST:
                raise NoSpace("the store is full")
            if fate is Fate.DONE:
                await self._call()
                return commit
        # A connection that broke says so at once, a member that hangs never does.
        await asyncio.sleep(timeout_s if fate is Fate.SILENT else self._rng.uniform(0, timeout_s))
        raise UnknownOutcome(fate.name.lower())

    def _check(self, writes: Sequence[Write]) -> None:
        if any(map(self.poisonous, writes)):
            raise Rejected("poisoned")
        if self.full and any(write.puts and not write.when for write in writes):
            raise NoSpace("the store is full")

    async def _arrive(self, store: MemoryStore, guards: Sequence[Compare], writes: Sequence[Write]) -> None:
        # At the store it was sent to: members that come back from a snapshot do not have the old ones' queues.
        await asyncio.sleep(self._rng.uniform(0, self.late_s))
        await store.commit(guards, writes, 1.0)

    def _fate(self, writes: Sequence[Write]) -> Fate:
        keys = [key for write in writes for key in (*(key for key, _ in write.puts), *write.deletes)]
        for plan in self._plans:
            if any(key.startswith(plan.touching) for key in keys):
                self._plans.remove(plan)
                return plan.fate
        draw = self._rng.random()
        for fate, chance in self.chances.items():
            draw -= chance
            if draw < 0:
                return fate
        return Fate.DONE

    async def _call(self) -> None:
        await asyncio.sleep(self._rng.uniform(0, self.delay_s))
        if self.away:
            raise Unavailable("the store is away")

    async def get(self, key: bytes, *, revision: int = 0) -> tuple[Record | None, int]:
        await self._call()
        if self.unreadable:
            self.unreadable -= 1
            raise Unavailable("the store is away")
        return await self.store.get(key, revision=revision)

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False) -> StorePage:
        await self._call()
        return await self.store.page(start, end, revision=revision, limit=limit, keys_only=keys_only)

    async def count(self, start: bytes, end: bytes, *, revision: int) -> int:
        await self._call()
        return await self.store.count(start, end, revision=revision)

    async def newest(self, start: bytes, end: bytes) -> tuple[int, int, int]:
        await self._call()
        return await self.store.newest(start, end)

    @asynccontextmanager
    async def watch(self, start: bytes, end: bytes, *, after: int) -> AsyncIterator[WatchStream]:
        if self.away:
            raise Disconnected("the store is away")
        async with self.store.watch(start, end, after=after) as stream:
            yield _FaultyWatch(self, stream)

    async def pass_on(self) -> None:
        """Before each batch of a watch."""
        await self._flowing.wait()
        await asyncio.sleep(self._rng.uniform(0, self.delay_s))
        if self._rng.random() < self.cut_chance:
            raise Disconnected("the watch was cut off")

    async def compact(self, revision: int) -> None:
        """Compact as etcd does for watches that are behind: see `forget_compacted`."""
        await self._call()
        await self.store.compact(revision)
        for watch in self.store._watches:
            forget_compacted(watch, revision)

    async def members(self) -> list[MemberStatus]:
        return await self.store.members()

    async def close(self) -> None:
        await self.store.close()


class _FaultyWatch:
    def __init__(self, store: FaultyStore, stream: WatchStream) -> None:
        self._store, self._stream = store, stream

    async def __aiter__(self) -> AsyncIterator[Batch]:
        async for batch in self._stream:
            await self._store.pass_on()
            yield batch


def forget_compacted(watch: _Watch, revision: int) -> None:
    """A watch that has not delivered this revision gets no deletion of it any more; one further behind ends.

    etcd reads what slow watches missed from what a compaction left (etcd#18089): at the compacted revision itself, that
    is puts only.
    """
    if not watch._pending:
        return
    first = watch._pending[0]
    if first.revision < revision:
        watch.cut()
    elif first.revision == revision:
        watch._pending.popleft()
        if left := [change for change in first.changes if change.value is not None]:
            watch._pending.appendleft(Batch(revision, left))
        elif not watch._pending:
            watch._moved.clear()


def faulty() -> FaultyStore:
    """An empty one, whose faults come from a seed."""
    return FaultyStore(MemoryStore(), random.Random(1))


def rewound(store: MemoryStore, revision: int) -> MemoryStore:
    """Another one, as restored from a snapshot that was taken of this one at a revision."""
    made = type(store)()
    made._revision = revision
    made._log = [batch for batch in store._log if batch.revision <= revision]
    made._live = made._past_state(revision)
    return made
