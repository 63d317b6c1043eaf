"""Fences when etcd is full and takes no puts: a read takes their place."""

from __future__ import annotations

import asyncio

import pytest

from store.keys import encode_word
from store.port import Unavailable, Write
from tests.support.faulty_store import faulty
from tests.support.fenced_store import foreign_write
from tests.support.store_parts import Parts
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_fence_of_a_full_store_reads_instead_of_writing() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.full = True
        acknowledged = await foreign_write(store)
        assert await parts.fence.wait_for_fence() >= acknowledged
        await asyncio.sleep(30)
        staleness_s = parts.fence.staleness_s()
        assert staleness_s is not None
        assert staleness_s < 4


@in_virtual_time
async def test_in_a_full_store_writes_outside_the_prefix_are_not_waited_for() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.full = True
        elsewhere = await foreign_write(store, "other", prefix="/elsewhere/")
        assert await parts.fence.wait_for_fence() < elsewhere


@in_virtual_time
async def test_in_a_full_store_a_silent_watch_is_noticed_too() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.full = True
        store.silence()
        at = await foreign_write(store)
        with pytest.raises(Unavailable):
            await parts.fence.wait_for_fence()
        store.speak()
        assert await parts.fence.wait_for_fence() >= at


@in_virtual_time
async def test_in_a_full_store_a_deletion_that_did_not_come_is_noticed() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await foreign_write(store)
        await parts.fence.wait_for_fence()
        store.full = True
        store.silence()
        await store.store.commit((), (Write((), deletes=(b"/hq/v1/ops/guard",)),), 1)
        with pytest.raises(Unavailable):
            await parts.fence.wait_for_fence()
        store.speak()
        await parts.fence.wait_for_fence()
        assert b"/hq/v1/ops/guard" not in parts.records


@in_virtual_time
async def test_a_full_store_of_another_epoch_proves_nothing() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.full = True
        store.silence()
        other = Write((), ((parts.key_names.epoch, encode_word(1)),))
        await store.store.commit((), (other,), 1)
        with pytest.raises(Unavailable, match="epoch"):
            await parts.fence.wait_for_fence()
