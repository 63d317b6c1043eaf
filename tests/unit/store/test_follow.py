"""Following: nothing is lost, nothing is doubled, and another history is noticed however it shows."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from hqpb.storage.v1 import storage_pb2
from store.memory import MemoryStore
from store.port import Write
from storepb.v1 import store_pb2
from tests.support.faulty_store import FaultyStore, faulty
from tests.support.mirrored_store import OPS, caught_up, delete, put
from tests.support.store_parts import Parts
from tests.support.virtual_time import in_virtual_time, run_virtually


@in_virtual_time
async def test_a_start_reads_everything_and_follows_from_there() -> None:
    store = faulty()
    for n in range(3_000):
        await put(store, f"{n:05}")
    async with Parts(store) as parts:
        await put(store, "later")
        await caught_up(parts)
        assert parts.listings == 1


@in_virtual_time
async def test_a_start_replays_since_the_last_compaction_mark() -> None:
    store = faulty()
    await put(store, "a")
    async with Parts(store) as first:
        await first.compactor.once()
        first.compactor.on_compaction_mark(first.records[first.key_names.compaction])
        since = await put(store, "b")
        await caught_up(first)
        await first.compactor.once()
        async with Parts(store, "two", seed=2) as second:
            await caught_up(second)
            assert since in [change.revision for batch, _ in second.told for change in batch.changes]


@in_virtual_time
async def test_an_unreadable_or_compacted_mark_is_ignored() -> None:
    for revision in (1, 10**6, -5):
        store = faulty()
        mark = store_pb2.CompactionRecord(revision=revision).SerializeToString()
        for value in (mark, b"\xff broken"):
            at = (await store.store.commit((), (Write((), ((b"/hq/v1/compaction", value),)),), 1)).revision
            if revision == 1:
                await store.compact(at)
            async with Parts(store) as parts:
                await caught_up(parts)


@in_virtual_time
async def test_every_change_is_told_once_over_many_interruptions() -> None:
    store = faulty()
    async with Parts(store) as parts:
        after = parts.version
        for n in range(200):
            await put(store, f"{n % 10}", b"%d" % n)
            if n % 7 == 0:
                store.store.disconnect()
            await asyncio.sleep(0.02)
        await caught_up(parts)
        told = [change.revision for batch, _ in parts.told for change in batch.changes]
        expected = [c.revision for b in store.store._log for c in b.changes if b.revision > after]
        assert told[-len(expected) :] == expected
        assert parts.listings == 1
        assert parts.follower.restarts > 10


@given(seed=st.integers(0, 2**32), cut_chance=st.sampled_from([0.05, 0.3]), compacts=st.booleans())
def test_the_mirror_ends_up_equal_to_the_store(seed: int, cut_chance: float, compacts: bool) -> None:
    async def history() -> None:
        rng = random.Random(seed)
        store = FaultyStore(MemoryStore(), rng)
        async with Parts(store) as parts:
            store.cut_chance, store.delay_s = cut_chance, 0.05
            for n in range(rng.randrange(300)):
                name = str(rng.randrange(20))
                head = await (delete(store, name) if rng.random() < 0.3 else put(store, name, b"%d" % n))
                if compacts and rng.random() < 0.05 and head > store.store._compacted:
                    await store.store.compact(head)
                if rng.random() < 0.3:
                    await asyncio.sleep(rng.uniform(0, 0.2))
            store.cut_chance = 0.0
            await caught_up(parts)

    run_virtually(history)


# --- compaction -----------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_after_a_compaction_the_difference_is_told_as_one_collapsed_batch() -> None:
    store = faulty()
    async with Parts(store) as parts:
        for name in ("kept", "changed", "gone", "anew"):
            await put(store, name)
        await caught_up(parts)
        store.go_away()
        await put(store, "changed", b"1")
        await put(store, "changed", b"2")
        await delete(store, "gone")
        await delete(store, "anew")
        await put(store, "anew", b"again")
        head = await put(store, "new")
        await store.store.compact(head)
        store.away = False
        await caught_up(parts)
        collapsed = [batch for batch, is_collapsed in parts.told if is_collapsed]
        assert len(collapsed) == 1
        changes = {c.key[len(OPS) :]: c.value for c in collapsed[0].changes if c.key.startswith(OPS)}
        assert changes == {b"changed": b"2", b"gone": None, b"anew": b"again", b"new": b"x"}
        assert parts.listings == 1
        assert parts.resets == 2  # both of the start


@in_virtual_time
async def test_an_epoch_replaced_in_a_compacted_gap_is_noticed() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.go_away()
        await asyncio.sleep(1)
        new = storage_pb2.EpochRecord(epoch="new", predecessor=[parts.epoch.current]).SerializeToString()
        head = (await store.store.commit((), (Write((), ((parts.key_names.epoch, new),)),), 1)).revision
        await store.store.compact(head)
        store.away = False
        await caught_up(parts)
        assert parts.epoch.current == "new"
        assert await parts.write("a") > 0


@in_virtual_time
async def test_an_epoch_replaced_between_reading_it_and_listing_is_noticed() -> None:
    store = faulty()
    async with Parts(store, "two", seed=2) as other:
        parts = Parts(store)
        await parts.epoch.settle()
        settle = parts.epoch.settle

        async def and_then_it_moves() -> None:
            await settle()
            if parts.resets == 1:
                await other.epoch.on_history_changed()

        parts.epoch.settle = and_then_it_moves  # type: ignore[method-assign]
        async with parts:
            assert parts.epoch.current == other.epoch.current
            assert await parts.write("a") > 0


# --- what cannot be mended ------------------------------------------------------------------------------------------


@in_virtual_time
async def test_no_failure_of_the_store_ends_the_follower() -> None:
    store = faulty()
    parts = Parts(store)
    store.away = True
    parts.start()
    await asyncio.sleep(30)
    store.away, store.full = False, True
    await asyncio.sleep(30)
    store.full, store.poisonous = False, lambda _: True
    await asyncio.sleep(30)
    store.poisonous = lambda _: False
    await asyncio.sleep(10)
    await caught_up(parts)
    await parts.stop()


@in_virtual_time
async def test_cutting_a_watch_that_is_not_open_does_no_harm() -> None:
    store = faulty()
    async with Parts(store) as parts:
        for wait_s in (0.0, 0.001, 0.01, 0.1, 1.0):
            parts.follower.cut()
            parts.follower.cut()
            await asyncio.sleep(wait_s)
        store.go_away()
        await asyncio.sleep(0.5)
        parts.follower.cut()
        store.away = False
        await caught_up(parts)
