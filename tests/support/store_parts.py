"""The parts of the store area put together as a replica does it, over any store, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from types import TracebackType

from hq import keys as k
from hq.keys import HqKeys
from store.commit import Committer
from store.compaction import Compactor
from store.epoch import Epoch
from store.fence import Fence, FenceTimes
from store.follow import StoreFollower
from store.keys import encode_word, new_word, word_of
from store.port import Batch, Compare, KeyChange, Record, Store, Write
from store.proof import Proof
from store.session import WriterSession
from tests.support.virtual_time import VirtualClock


class Mirror:
    """A sink that keeps what it is told: the records, and every call.

    Attributes:
        told: batches and whether each was collapsed, in order.
        resets, listings: how many there were; `up`: whether a watch is open.
    """

    def __init__(self) -> None:
        self.records: dict[bytes, Record] = {}
        self.version = 0
        self.told: list[tuple[Batch, bool]] = []
        self.resets = self.listings = 0
        self.up = False
        self._moved = asyncio.Event()

    def reset(self) -> None:
        self.records.clear()
        self.version = 0
        self.resets += 1

    def load(self, records: list[Record]) -> None:
        self.records.update((record.key, record) for record in records)

    def on_listing_complete(self, revision: int) -> None:
        self.listings += 1
        self._move(revision)

    def apply(self, batch: Batch, *, collapsed: bool) -> None:
        assert batch.revision > self.version, "a batch came twice"
        self.told.append((batch, collapsed))
        for key, value, created, revision in batch.changes:
            if value is None:
                assert self.records.pop(key, None) is not None or collapsed, "a deletion of nothing"
            else:
                assert revision > self.version, "old news"
                self.records[key] = Record(key, value, created, revision)
        self._move(batch.revision)

    def connection(self, up: bool) -> None:
        assert up is not self.up
        self.up = up

    def keys(self) -> Iterable[bytes]:
        return list(self.records)

    def version_of(self, key: bytes) -> int | None:
        record = self.records.get(key)
        return record.modified if record else 0

    def mend(self, changes: list[KeyChange], revision: int) -> None:
        assert revision == self.version
        for key, value, created, modified in changes:
            if value is None:
                del self.records[key]
            else:
                self.records[key] = Record(key, value, created, modified)

    def _move(self, version: int) -> None:
        self.version = version
        self._moved.set()
        self._moved = asyncio.Event()

    async def wait_for(self, version: int) -> None:
        while self.version < version:
            await self._moved.wait()


class Parts(Mirror):
    """One replica's store parts, wired. Use as a context manager: entered when a fence has come back."""

    def __init__(
        self,
        store: Store,
        replica: str = "one",
        *,
        seed: int = 1,
        compact_every_s: float = 0,
        queue_limit: int = 20_000,
        idle_s: float = 3.0,
        proves: bool = False,
    ) -> None:
        """`proves`: compare memory with the store all the time, as servers do."""
        super().__init__()
        self.store, self.key_names, self.rng, self.clock = store, HqKeys(), random.Random(seed), VirtualClock()
        self.replica = replica
        store_, names, rng = store, self.key_names, self.rng
        self.epoch = Epoch(store_, names, rng)
        self.follower = StoreFollower(store_, names, self, self.epoch, rng)
        self.fence = Fence(
            store_, names, replica, self.epoch, self.follower, self.clock, rng, FenceTimes(idle_s=idle_s)
        )
        self.proof = Proof(store_, names, replica, self.epoch, self.follower, self, self.fence, self.clock, rng)
        self.session = WriterSession(store_, names, replica, self.epoch, rng, self.wait_for)
        self.committer = Committer(
            store_, names, replica, self.epoch, self.session, self.clock, rng, queue_limit=queue_limit
        )
        self.compactor = Compactor(store_, names, replica, self.epoch, self.clock, rng, compact_every_s)
        self._proves = proves
        self._running: list[asyncio.Task[None]] = []

    # --- the sink ---------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        super().reset()
        self.fence.forget()
        self.committer.forget()

    def load(self, records: list[Record]) -> None:
        super().load(records)
        for record in records:
            if record.key == self.key_names.compaction:
                self.compactor.on_compaction_mark(record)

    def apply(self, batch: Batch, *, collapsed: bool) -> None:
        self.committer.observe(batch, collapsed=collapsed)
        super().apply(batch, collapsed=collapsed)
        for key, value, created, revision in batch.changes:
            if value is not None and self.key_names.name(key).kind == k.FENCE:
                self.fence.on_fence_key(key, word_of(value), revision)
            elif value is not None and key == self.key_names.compaction:
                self.compactor.on_compaction_mark(Record(key, value, created, revision))

    # --- running ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        proof = (self.proof,) if self._proves else ()
        for part in (self.follower, self.fence, self.committer, self.compactor, *proof):
            self._running.append(asyncio.create_task(part.run(), name=type(part).__name__))

    async def __aenter__(self) -> Parts:
        self.start()
        while not self.follower.applied:
            await asyncio.sleep(0.01)
        await self.fence.wait_for_fence()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        died = [task for task in self._running if task.done()]
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for task in died:
            task.result()
        self._running.clear()

    # --- writing ----------------------------------------------------------------------------------------------------

    def spec(self, name: str) -> bytes:
        return self.key_names.spec(name)

    async def write(
        self,
        name: str,
        *when: Compare,
        text: bytes = b"",
        timeout_s: float = 10.0,
        guards: tuple[Compare, ...] = (),
        write_id: int = 0,
    ) -> int:
        """Put a record as replicas do; return its version."""
        write_id = write_id or new_word(self.rng)
        write = Write(when, ((self.spec(name), encode_word(write_id) + text),))
        return await self.committer.commit(name, write, write_id, self.clock.now() + timeout_s, guards)

    async def delete(self, name: str, *when: Compare, timeout_s: float = 10.0) -> int:
        write = Write(when, deletes=(self.spec(name),))
        return await self.committer.commit(name, write, 0, self.clock.now() + timeout_s)

    def at(self, name: str, version: int) -> Compare:
        return Compare(self.spec(name), "modified", version)


async def stored(store: Store, key: bytes) -> Record | None:
    return (await store.get(key))[0]
