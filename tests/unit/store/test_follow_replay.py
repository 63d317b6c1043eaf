"""Starts and returning replicas catch up even if the store cannot bring a replay in time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from store.memory import MemoryStore
from store.port import Batch, StorePage, WatchStream, Write
from storepb.v1 import store_pb2
from tests.support.faulty_store import FaultyStore, faulty
from tests.support.mirrored_store import caught_up, put
from tests.support.store_parts import Parts
from tests.support.virtual_time import in_virtual_time

MUCH, REPLAY_S = 50, 60.0


class SlowToReplay(FaultyStore):
    """A watch gets all that it missed in one message, after a minute; each new watch has to wait anew."""

    @asynccontextmanager
    async def watch(self, start: bytes, end: bytes, *, after: int) -> AsyncIterator[WatchStream]:
        missed = self.store._revision - after
        async with super().watch(start, end, after=after) as stream:
            yield _Late(stream, REPLAY_S if missed > MUCH else 0.0)


class _Late:
    def __init__(self, stream: WatchStream, delay_s: float) -> None:
        self._stream, self._delay_s = stream, delay_s

    async def __aiter__(self) -> AsyncIterator[Batch]:
        await asyncio.sleep(self._delay_s)
        async for batch in self._stream:
            yield batch


async def marked(store: FaultyStore) -> None:
    """Write a compaction mark, and much after it."""
    at = await put(store, "first")
    mark = store_pb2.CompactionRecord(revision=at).SerializeToString()
    await store.store.commit((), (Write((), ((b"/hq/v1/compaction", mark),)),), 1)
    for n in range(2 * MUCH):
        await put(store, f"{n:05}")


def slow() -> SlowToReplay:
    return SlowToReplay(MemoryStore(), random.Random(1))


@in_virtual_time
async def test_a_start_succeeds_however_much_was_written_since_the_mark() -> None:
    store = slow()
    await marked(store)
    parts = Parts(store)
    parts.start()
    try:
        async with asyncio.timeout(REPLAY_S / 3):
            await proven(parts)
        await caught_up(parts)
    finally:
        await parts.stop()


@in_virtual_time
async def test_a_replica_that_missed_much_catches_up_with_one_difference() -> None:
    store = slow()
    async with Parts(store) as parts:
        await put(store, "before")
        await caught_up(parts)
        store.go_away()
        for n in range(2 * MUCH):
            await put(store, f"{n:05}")
        store.away = False
        async with asyncio.timeout(REPLAY_S / 3):
            await proven(parts)
        await caught_up(parts)
        assert [batch.revision for batch, collapsed in parts.told if collapsed] != []
        assert parts.listings == 1


@in_virtual_time
async def test_a_single_silent_watch_is_reopened_without_a_listing() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.silence()
        while not parts.follower.restarts:
            await asyncio.sleep(0.1)
        store.speak()
        await proven(parts)
        assert not any(collapsed for _, collapsed in parts.told)


@pytest.mark.long
@in_virtual_time
async def test_watches_that_stay_silent_for_an_hour_cost_a_handful_of_listings() -> None:
    store, pages = faulty(), 0
    async with Parts(store) as parts:
        page = store.page

        async def counted(start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False) -> StorePage:
            nonlocal pages
            pages += 1
            return await page(start, end, revision=revision, limit=limit, keys_only=keys_only)

        store.page = counted  # type: ignore[method-assign]
        store.silence()
        await asyncio.sleep(3600)
        assert parts.follower.restarts > 500
        assert 2 <= pages <= 10
        store.speak()
        await caught_up(parts)


async def proven(parts: Parts) -> None:
    """Wait until a fence has come back."""
    before = parts.fence.proven_at
    while parts.fence.proven_at == before:
        await asyncio.sleep(0.1)
