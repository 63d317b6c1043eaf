"""The storage format: a store is no longer served from the moment it needs a newer reader."""

from __future__ import annotations

import asyncio

import pytest

from store.epoch import FormatTooNew
from store.port import Write
from storepb.v1 import store_pb2
from tests.support.faulty_store import FaultyStore, faulty
from tests.support.mirrored_store import OPS, caught_up, put
from tests.support.store_parts import Parts
from tests.support.virtual_time import in_virtual_time

FORMAT = b"/hq/v1/format"
FUTURE = store_pb2.FormatRecord(format=9, oldest_reader=8).SerializeToString()


async def raise_format(store: FaultyStore, value: bytes = FUTURE) -> int:
    return (await store.store.commit((), (Write((), ((FORMAT, value),)),), 1)).revision


@in_virtual_time
async def test_a_store_in_a_newer_format_ends_the_follower_with_an_explanation() -> None:
    store = faulty()
    await raise_format(store)
    parts = Parts(store)
    with pytest.raises(FormatTooNew, match="upgrade this process"):
        await parts.follower.run()


@in_virtual_time
async def test_a_format_raised_while_following_ends_the_follower_with_an_explanation() -> None:
    store = faulty()
    parts = Parts(store)
    following = asyncio.create_task(parts.follower.run())
    await asyncio.sleep(10)
    assert parts.listings == 1
    await put(store, "before")
    await raise_format(store)
    await put(store, "behind")
    with pytest.raises(FormatTooNew, match="upgrade this process"):
        await asyncio.wait_for(following, 10)
    assert OPS + b"before" in parts.records
    assert OPS + b"behind" not in parts.records


@in_virtual_time
async def test_a_format_raised_in_a_compacted_gap_ends_the_follower_with_an_explanation() -> None:
    store = faulty()
    parts = await Parts(store).__aenter__()
    epoch = parts.epoch.current
    store.go_away()
    await raise_format(store)
    await store.store.compact(await put(store, "behind"))
    store.away = False
    await asyncio.sleep(10)
    with pytest.raises(FormatTooNew, match="upgrade this process"):
        await parts.stop()
    assert OPS + b"behind" not in parts.records
    assert parts.epoch.current == epoch


@in_virtual_time
async def test_a_format_raised_just_before_the_listing_ends_the_follower_with_an_explanation() -> None:
    store = faulty()
    parts = Parts(store)
    settle = parts.epoch.settle

    async def and_then_it_is_raised() -> None:
        await settle()
        await raise_format(store)

    parts.epoch.settle = and_then_it_is_raised  # type: ignore[method-assign]
    with pytest.raises(FormatTooNew, match="upgrade this process"):
        await asyncio.wait_for(parts.follower.run(), 10)


@in_virtual_time
async def test_a_format_raised_and_lowered_again_before_the_start_does_no_harm() -> None:
    """A start replays history from the last compaction mark on."""
    store = faulty()
    async with Parts(store) as first:
        mine = first.records[FORMAT].value
        await first.compactor.once()
        first.compactor.on_compaction_mark(first.records[first.key_names.compaction])
        await first.compactor.once()
    await raise_format(store)
    await raise_format(store, mine)
    async with Parts(store, "two", seed=2) as second:
        assert [batch for batch, _ in second.told if any(change.value == FUTURE for change in batch.changes)]
        await caught_up(second)


@in_virtual_time
async def test_a_format_record_that_breaks_while_following_does_no_harm() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await raise_format(store, b"\xff")
        await caught_up(parts)
        assert parts.listings == 1


@in_virtual_time
async def test_a_start_waits_until_a_broken_format_record_is_mended() -> None:
    store = faulty()
    await raise_format(store, b"\xff")
    parts = Parts(store)
    following = asyncio.create_task(parts.follower.run())
    await asyncio.sleep(10)
    assert parts.listings == 0
    assert not following.done()
    await store.store.commit((), (Write((), deletes=(FORMAT,)),), 1)
    await asyncio.sleep(10)
    assert parts.listings == 1
    following.cancel()
