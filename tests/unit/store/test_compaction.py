"""Compaction by one of several replicas, and the removal of the keys of replicas that are gone."""

from __future__ import annotations

import asyncio
import random

import pytest

from hq.keys import COMMITS, FENCE, HEARTBEATS, PER_REPLICA, SESSION
from store.burial import Burial
from store.listing import marked_revision
from store.port import NoSpace, Unavailable, Write
from tests.support.faulty_store import Fate, FaultyStore, faulty
from tests.support.store_parts import Parts, stored
from tests.support.virtual_time import in_virtual_time


async def put(store: FaultyStore, key: bytes, value: bytes = b"x") -> int:
    return (await store.store.commit((), (Write((), ((key, value),)),), 1)).revision


@in_virtual_time
async def test_the_first_mark_compacts_nothing_and_the_second_compacts_at_the_first() -> None:
    store = faulty()
    async with Parts(store) as parts:
        assert await parts.compactor.once()
        first = await stored(store, parts.key_names.compaction)
        assert first is not None
        assert store.store._compacted == 0
        await parts.fence.wait_for_fence()
        assert await parts.compactor.once()
        assert store.store._compacted == first.modified
        assert await marked_revision(store, parts.key_names) == first.modified


@in_virtual_time
async def test_of_several_replicas_one_compacts_at_a_time() -> None:
    store = faulty()
    async with Parts(store) as one, Parts(store, "two", seed=2) as two, Parts(store, "three", seed=3) as three:
        done = await asyncio.gather(*(parts.compactor.once() for parts in (one, two, three)))
        assert sorted(done) == [False, False, True]
        await asyncio.gather(*(parts.fence.wait_for_fence() for parts in (one, two, three)))
        done = await asyncio.gather(*(parts.compactor.once() for parts in (one, two, three)))
        assert sorted(done) == [False, False, True]


@in_virtual_time
async def test_replicas_together_compact_once_per_interval() -> None:
    store = faulty()
    many = [Parts(store, f"{n}", seed=n, compact_every_s=300, idle_s=60) for n in range(4)]
    for parts in many:
        await parts.__aenter__()
    await asyncio.sleep(3_600)
    compactions = sum(parts.compactor.compactions for parts in many)
    assert 8 <= compactions <= 11
    for parts in many:
        await parts.stop()


@in_virtual_time
async def test_an_interval_of_zero_never_compacts() -> None:
    store = faulty()
    async with Parts(store, compact_every_s=0) as parts:
        await asyncio.sleep(3_600)
        assert await stored(store, parts.key_names.compaction) is None


@in_virtual_time
async def test_a_deleted_mark_is_written_again() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.compactor.once()
        await parts.fence.wait_for_fence()
        await store.store.commit((), (Write((), deletes=(parts.key_names.compaction,)),), 1)
        assert not await parts.compactor.once()
        assert await parts.compactor.once()


@in_virtual_time
async def test_after_a_new_epoch_marks_of_the_old_history_are_ignored() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.compactor.once()
        await parts.fence.wait_for_fence()
        parts.compactor.on_compaction_mark((await stored(store, parts.key_names.compaction))._replace(modified=10**6))  # type: ignore[union-attr]
        assert not await parts.compactor.once()
        assert await parts.compactor.once()
        assert store.store._compacted > 0


@in_virtual_time
async def test_a_full_store_is_compacted_too() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.compactor.once()
        await parts.fence.wait_for_fence()
        mark = await stored(store, parts.key_names.compaction)
        assert mark is not None
        store.plan(Fate.FULL, touching=parts.key_names.compaction)
        with pytest.raises(NoSpace):
            await parts.compactor.once()
        assert store.store._compacted == mark.modified


@in_virtual_time
async def test_another_epoch_stops_a_replica_from_compacting() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.compactor.once()
        await parts.fence.wait_for_fence()
        await parts.stop()
        await put(store, parts.key_names.epoch, b"")
        assert not await parts.compactor.once()
        assert store.store._compacted == 0


@in_virtual_time
async def test_a_failed_compaction_is_tried_again_an_interval_later() -> None:
    store = faulty()
    async with Parts(store, compact_every_s=300, idle_s=60) as parts:
        store.plan(Fate.LOST, Fate.AWAY, touching=parts.key_names.compaction)
        await asyncio.sleep(2_400)
        assert parts.compactor.compactions >= 2


# --- burial -----------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_the_keys_of_a_replica_gone_for_an_hour_are_removed_and_its_fence_after_a_week() -> None:
    store = faulty()
    parts = Parts(store)
    await parts.epoch.settle()
    names = parts.key_names
    dead = {kind: names.of(kind, "dead") for kind in (FENCE, SESSION, HEARTBEATS, COMMITS)}
    for key in (*dead.values(), names.of(FENCE, "one")):
        await put(store, key)
    burial = Burial(store, names, "one", parts.epoch, parts.clock, PER_REPLICA)
    left: list[set[str]] = []
    for wait_s in (0, 3_500, 200, 6 * 24 * 3_600, 24 * 3_600):
        await asyncio.sleep(wait_s)
        await burial.once()
        left.append({kind for kind, key in dead.items() if await stored(store, key)})
    assert left == [set(dead), set(dead), {FENCE}, {FENCE}, set()]
    assert await stored(store, names.of(FENCE, "one")) is not None


@in_virtual_time
async def test_the_keys_of_any_number_of_gone_replicas_are_removed() -> None:
    store = faulty()
    parts = Parts(store)
    await parts.epoch.settle()
    names = parts.key_names
    for n in range(1_200):
        for kind in (FENCE, SESSION):
            await put(store, names.of(kind, f"dead-{n:04}"))
    burial = Burial(store, names, "one", parts.epoch, parts.clock, PER_REPLICA)
    for wait_s in (0, 3_700):
        await asyncio.sleep(wait_s)
        await burial.once()
    left, _, _ = await store.newest(names.of(SESSION, ""), names.of(SESSION, "~"))
    assert left == 0


@in_virtual_time
async def test_a_replica_whose_fence_moves_is_left_alone() -> None:
    store = faulty()
    async with Parts(store, idle_s=600) as parts, Parts(store, "two", seed=2, idle_s=600) as other:
        await other.session.ready(1)
        burial = Burial(store, parts.key_names, "one", parts.epoch, parts.clock, PER_REPLICA)
        for _ in range(5):
            await burial.once()
            await asyncio.sleep(3_700)
        assert await stored(store, parts.key_names.of(SESSION, "two")) is not None


@pytest.mark.long
@in_virtual_time
async def test_a_replica_that_comes_back_after_hours_finds_the_same_history() -> None:
    store = faulty()
    async with Parts(store, compact_every_s=300, idle_s=60) as parts:
        sleeper = FaultyStore(store.store, random.Random(2))
        async with Parts(sleeper, "two", seed=2, idle_s=60) as other:
            await other.write("a")
            epoch = other.epoch.current
            sleeper.away = True
            store.store.disconnect()
            await asyncio.sleep(2 * 3_600)
            assert await stored(store, parts.key_names.of(SESSION, "two")) is None
            sleeper.away = False
            await asyncio.sleep(10)
            with pytest.raises(Unavailable):
                await other.write("b")  # the session must be settled anew
            assert await other.write("b") > 0
            assert other.epoch.current == parts.epoch.current == epoch
            assert other.listings == 1
