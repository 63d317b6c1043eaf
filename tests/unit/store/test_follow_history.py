"""Every sign of another history is noticed, and the same history is never taken for another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from store.port import Write
from tests.support.faulty_store import FaultyStore, faulty, rewound
from tests.support.mirrored_store import caught_up, delete, put
from tests.support.store_parts import Parts
from tests.support.virtual_time import in_virtual_time


async def restored(
    store: FaultyStore, parts: Parts, change: Callable[[], Awaitable[None]], *, snapshot_before: int = 0
) -> None:
    """Take the store away, undo its last revisions, run `change`, and bring it back."""
    before, told = parts.epoch.current, parts.listings
    store.go_away()
    await asyncio.sleep(1)
    store.store = rewound(store.store, store.store._revision - snapshot_before)
    await change()
    store.away = False
    await caught_up(parts)
    assert parts.epoch.current != before
    assert parts.listings == told + 1


async def nothing() -> None:
    pass


@in_virtual_time
async def test_a_store_restored_to_a_lower_revision_is_another_history() -> None:
    store = faulty()
    async with Parts(store) as parts:
        for n in range(5):
            await put(store, f"{n}")
        await caught_up(parts)
        await restored(store, parts, nothing, snapshot_before=3)


@in_virtual_time
async def test_a_store_restored_and_grown_beyond_its_old_revision_is_another_history() -> None:
    store = faulty()
    async with Parts(store) as parts:
        for n in range(5):
            await put(store, f"{n}")
        await caught_up(parts)

        async def grow() -> None:
            for n in range(50):
                await put(store, f"other-{n}")

        await restored(store, parts, grow, snapshot_before=3)


@in_virtual_time
async def test_another_value_at_the_same_revision_is_another_history() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await caught_up(parts)

        async def same_key_other_value() -> None:
            last = max(below_prefix_of_mirror.values(), key=lambda r: r.modified)
            await store.store.commit((), (Write((), ((last.key, b"another"),)),), 1)

        below_prefix_of_mirror = dict(parts.records)
        await restored(store, parts, same_key_other_value, snapshot_before=1)


@in_virtual_time
async def test_a_restored_store_without_the_last_deletion_is_another_history() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await put(store, "a")
        await caught_up(parts)
        gone = await delete(store, "a")
        while parts.version < gone:
            await asyncio.sleep(0)

        async def grow() -> None:
            await put(store, "b")
            await put(store, "c")

        await restored(store, parts, grow, snapshot_before=store.store._revision - gone + 1)


@in_virtual_time
async def test_a_restored_and_compacted_store_without_the_last_fence_is_another_history() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await caught_up(parts)
        await caught_up(parts)

        async def grow_and_compact() -> None:
            head = [await put(store, f"other-{n}") for n in range(20)][-1]
            await store.store.compact(head)

        # The snapshot holds an older word of this replica's fence: that must not pass.
        await restored(store, parts, grow_and_compact, snapshot_before=1)


@in_virtual_time
async def test_an_empty_store_is_another_history() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await restored(store, parts, nothing, snapshot_before=store.store._revision - 1)


@in_virtual_time
async def test_a_history_that_others_compacted_while_no_replica_ran_is_the_same() -> None:
    """No key below the prefix is as new as what is left of the history, and no fence was sent yet."""
    store = faulty()
    async with Parts(store) as parts:
        epoch = parts.epoch.current
    others = [Write((), ((b"/others/%d" % n, b"x"),)) for n in range(5)]
    heads = [(await store.store.commit((), (write,), 1)).revision for write in others]
    await store.store.compact(heads[-1])
    async with Parts(store, "two") as parts:
        assert parts.epoch.current == epoch
        assert parts.listings == 1


@pytest.mark.long
@in_virtual_time
async def test_the_same_history_is_recognized_after_any_gap() -> None:
    store = faulty()
    async with Parts(store) as parts:
        epoch = parts.epoch.current
        for gap_s, compacts in ((1, False), (100, True), (4_000, True)):
            store.go_away()
            head = [await put(store, f"{n}") for n in range(10)][-1]
            if compacts:
                await store.store.compact(head)
            await asyncio.sleep(gap_s)
            store.away = False
            await caught_up(parts)
        assert parts.epoch.current == epoch
        assert parts.listings == 1


@in_virtual_time
async def test_the_same_history_is_recognized_after_a_long_time_of_a_full_store() -> None:
    """Operators compact up to the head: the last put lies before it, and all fences since were refused."""
    store = faulty()
    async with Parts(store) as parts:
        await put(store, "a")
        await caught_up(parts)
        epoch = parts.epoch.current
        store.full = True
        gone = await delete(store, "a")
        await asyncio.sleep(300)
        await store.store.compact(gone)
        store.store.disconnect()
        await asyncio.sleep(10)
        store.full = False
        await caught_up(parts)
        assert parts.epoch.current == epoch
        assert parts.listings == 1
