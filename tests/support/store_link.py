"""A replica's way to the store, which a test can cut, mend and hold back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from store.memory import MemoryStore
from store.port import (
    Batch,
    Commit,
    Compare,
    Disconnected,
    MemberStatus,
    Record,
    Store,
    StorePage,
    Unavailable,
    UnknownOutcome,
    WatchStream,
    Write,
)

T = TypeVar("T")
READ_S = 3.0


class Link:
    """A replica's way to the store, which can be cut. What was sent into a cut arrives when it is mended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._up, self._flowing = asyncio.Event(), asyncio.Event()
        self._up.set()
        self._flowing.set()
        self._breaks = 0
        self._late: set[asyncio.Task[object]] = set()

    def cut(self) -> None:
        """Nothing is answered and nothing is refused, as when a machine hangs."""
        self._up.clear()
        self._breaks += 1

    def mend(self) -> None:
        self._up.set()

    def hold_watch(self) -> None:
        """Writes and reads of single keys go through, but nothing tells what changed: no watch, and no listing."""
        self._flowing.clear()

    def release_watch(self) -> None:
        self._flowing.set()

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        async def arrive() -> Commit:
            await self._up.wait()
            return await self._store.commit(guards, writes, timeout_s)

        task = asyncio.ensure_future(arrive())
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(task)
        except TimeoutError:
            raise UnknownOutcome("the store did not answer") from None

    async def get(self, key: bytes, *, revision: int = 0) -> tuple[Record | None, int]:
        return await self._read(lambda: self._store.get(key, revision=revision))

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False) -> StorePage:
        if not self._flowing.is_set():
            raise Unavailable("the store did not answer")
        reading = partial(self._store.page, start, end, revision=revision, limit=limit, keys_only=keys_only)
        return await self._read(reading)

    async def count(self, start: bytes, end: bytes, *, revision: int) -> int:
        return await self._read(lambda: self._store.count(start, end, revision=revision))

    async def newest(self, start: bytes, end: bytes) -> tuple[int, int, int]:
        return await self._read(lambda: self._store.newest(start, end))

    async def compact(self, revision: int) -> None:
        await self._read(lambda: self._store.compact(revision))

    async def members(self) -> list[MemberStatus]:
        return await self._read(self._store.members)

    async def close(self) -> None:
        for task in list(self._late):
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)
        if not isinstance(self._store, MemoryStore):  # the one in memory is everybody's
            await self._store.close()

    @asynccontextmanager
    async def watch(self, start: bytes, end: bytes, *, after: int) -> AsyncIterator[WatchStream]:
        if not self._up.is_set():
            await asyncio.sleep(READ_S)
            raise Disconnected("the store did not answer")
        async with self._store.watch(start, end, after=after) as stream:
            yield _HeldStream(stream, self._pass, self._breaks)

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(READ_S):
                await self._up.wait()
        except TimeoutError:
            raise Unavailable("the store did not answer") from None
        return await call()

    async def _pass(self, breaks: int) -> None:
        await self._flowing.wait()
        if self._breaks > breaks:
            await self._up.wait()
            raise Disconnected("the connection was lost")


class _HeldStream:
    """A watch that may be held back before every batch."""

    def __init__(self, stream: WatchStream, passing: Callable[[int], Awaitable[None]], breaks: int) -> None:
        self._stream, self._passing, self._breaks = stream, passing, breaks

    async def __aiter__(self) -> AsyncIterator[Batch]:
        async for batch in self._stream:
            await self._passing(self._breaks)
            yield batch
