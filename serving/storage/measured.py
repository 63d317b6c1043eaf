"""A store that counts its calls, by method and outcome, with their times and the newest revision it returned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar

from serving.clock import Clock
from serving.telemetry.metrics import Histogram
from store.port import (
    Commit,
    Compacted,
    Compare,
    FutureRevision,
    MemberStatus,
    NoSpace,
    Record,
    Rejected,
    Store,
    StorePage,
    Unavailable,
    UnknownOutcome,
    WatchStream,
    Write,
)

T = TypeVar("T")

BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_WORDS: Final[dict[type[BaseException], str]] = {
    NoSpace: "no_space",
    UnknownOutcome: "unknown_outcome",
    Rejected: "rejected",
    Compacted: "compacted",
    FutureRevision: "future_revision",
    Unavailable: "unavailable",  # the last: others derive from it
}


class MeasuredStore:
    """The port `Store` over another one.

    Attributes:
        calls: by (method, outcome).
        seconds: by (method,), of calls that succeeded.
        head: the store's revision, as the last answer gave it.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._now = store, clock.now
        self.calls: Counter[tuple[str, ...]] = Counter()
        self.seconds: defaultdict[tuple[str, ...], Histogram] = defaultdict(lambda: Histogram(BOUNDS_S))
        self.head = 0

    @property
    def files_fault(self) -> str:
        """Why the current contents of the store's TLS files are not in force; empty: they are, or it has none."""
        return str(getattr(self._store, "files_fault", ""))

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        commit = await self._measure_call("commit", self._store.commit(guards, writes, timeout_s))
        self.head = commit.revision
        return commit

    async def get(self, key: bytes, *, revision: int = 0) -> tuple[Record | None, int]:
        record, self.head = await self._measure_call("get", self._store.get(key, revision=revision))
        return record, self.head

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False) -> StorePage:
        reading = self._store.page(start, end, revision=revision, limit=limit, keys_only=keys_only)
        page = await self._measure_call("page", reading)
        self.head = page.revision
        return page

    async def count(self, start: bytes, end: bytes, *, revision: int) -> int:
        return await self._measure_call("count", self._store.count(start, end, revision=revision))

    async def newest(self, start: bytes, end: bytes) -> tuple[int, int, int]:
        count, modified, self.head = await self._measure_call("newest", self._store.newest(start, end))
        return count, modified, self.head

    async def compact(self, revision: int) -> None:
        await self._measure_call("compact", self._store.compact(revision))

    async def members(self) -> list[MemberStatus]:
        return await self._measure_call("members", self._store.members())

    def watch(self, start: bytes, end: bytes, *, after: int) -> AbstractAsyncContextManager[WatchStream]:
        return self._measure_watch(self._store.watch(start, end, after=after))

    async def close(self) -> None:
        await self._store.close()

    @asynccontextmanager
    async def _measure_watch(self, opening: AbstractAsyncContextManager[WatchStream]) -> AsyncIterator[WatchStream]:
        # A watch always ends with an error: which one is the outcome. An error of the reader's own is not.
        try:
            async with opening as stream:
                yield stream
        except (Unavailable, Compacted) as error:
            self.calls["watch", _outcome(error)] += 1
            raise

    async def _measure_call(self, method: str, call: Awaitable[T]) -> T:
        began = self._now()
        try:
            answer = await call
        except Exception as error:
            self.calls[method, _outcome(error)] += 1
            raise
        self.seconds[(method,)].add(self._now() - began)
        self.calls[method, "ok"] += 1
        return answer


def _outcome(error: Exception) -> str:
    return next((word for kind, word in _WORDS.items() if isinstance(error, kind)), "failed")
