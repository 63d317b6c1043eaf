"""The epoch: one identity for each history, whichever replica notices it first."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hq.keys import HqKeys
from hqpb.storage.v1 import storage_pb2
from store.epoch import FORMAT, Epoch, FormatTooNew
from store.memory import MemoryStore
from store.port import Record, Store, StoreError, Unavailable, Write
from storepb.v1 import store_pb2
from tests.support.faulty_store import Fate, FaultyStore
from tests.support.store_parts import stored
from tests.support.virtual_time import in_virtual_time, run_virtually

KEYS = HqKeys()


def epoch_on(store: Store, seed: int = 1) -> Epoch:
    return Epoch(store, KEYS, random.Random(seed))


async def put(store: Store, key: bytes, value: bytes) -> None:
    await store.commit((), (Write((), ((key, value),)),), 1)


async def epoch_in(store: Store) -> storage_pb2.EpochRecord:
    record = await stored(store, KEYS.epoch)
    assert record is not None
    return storage_pb2.EpochRecord.FromString(record.value)


@in_virtual_time
async def test_the_first_replica_makes_an_epoch_and_the_others_adopt_it() -> None:
    store = MemoryStore()
    epochs = [epoch_on(store, seed) for seed in range(5)]
    await asyncio.gather(*(epoch.settle() for epoch in epochs))
    assert len({epoch.current for epoch in epochs}) == 1
    assert (await epoch_in(store)).epoch == epochs[0].current != ""


@in_virtual_time
async def test_the_guard_holds_while_the_epoch_stands() -> None:
    store = MemoryStore()
    one, other = epoch_on(store, 1), epoch_on(store, 2)
    assert not (await store.commit((one.guard(),), (), 1)).guarded
    await one.settle()
    await other.settle()
    assert (await store.commit((one.guard(),), (), 1)).guarded
    await other.on_history_changed()
    assert not (await store.commit((one.guard(),), (), 1)).guarded
    assert not one.stands_in(await stored(store, KEYS.epoch))
    assert other.stands_in(await stored(store, KEYS.epoch))


@in_virtual_time
async def test_a_history_without_a_successor_gets_one_that_names_its_predecessors() -> None:
    store = MemoryStore()
    epoch = epoch_on(store)
    await epoch.settle()
    words = [epoch.current]
    for _ in range(3):
        await epoch.on_history_changed()
        words.append(epoch.current)
    assert list((await epoch_in(store)).predecessor) == words[:-1]
    assert len(set(words)) == 4


@in_virtual_time
async def test_a_successor_of_our_epoch_is_adopted_and_not_replaced() -> None:
    store = MemoryStore()
    one, other = epoch_on(store, 1), epoch_on(store, 2)
    await one.settle()
    await other.settle()
    await one.on_history_changed()
    await one.on_history_changed()
    await other.on_history_changed()
    assert one.current == other.current == (await epoch_in(store)).epoch


@in_virtual_time
async def test_an_older_epoch_of_a_restored_store_is_replaced() -> None:
    store = MemoryStore()
    epoch = epoch_on(store)
    await epoch.settle()
    old = await stored(store, KEYS.epoch)
    assert old is not None
    await epoch.on_history_changed()
    second = epoch.current
    await put(store, KEYS.epoch, old.value)
    await epoch.on_history_changed()
    record = await epoch_in(store)
    assert record.epoch == epoch.current not in (second, storage_pb2.EpochRecord.FromString(old.value).epoch)
    assert second in record.predecessor


@given(seed=st.integers(0, 2**32), replicas=st.integers(2, 6))
def test_replicas_that_notice_another_history_at_once_end_up_in_one_epoch(seed: int, replicas: int) -> None:
    async def history() -> None:
        store = FaultyStore(MemoryStore(), random.Random(seed))
        epochs = [epoch_on(store, n) for n in range(replicas)]
        for epoch in epochs:
            await epoch.settle()
        first = epochs[0].current
        store.delay_s = 0.5
        store.chances = dict.fromkeys((Fate.LOST, Fate.UNANSWERED, Fate.LATE, Fate.AWAY), 0.1)
        await asyncio.gather(*map(until_it_moved, epochs))
        store.chances = {}
        await store.arrived()
        # A late try may replace the epoch once more: then the watch says so, and everybody reads it again.
        for epoch in epochs:
            await epoch.settle()
        assert len({epoch.current for epoch in epochs}) == 1
        assert epochs[0].current != first
        assert first in (await epoch_in(store)).predecessor

    run_virtually(history)


async def until_it_moved(epoch: Epoch) -> None:
    while True:
        try:
            await epoch.on_history_changed()
        except StoreError:
            continue
        return


@in_virtual_time
async def test_only_a_newer_record_contradicts_an_epoch() -> None:
    store = MemoryStore()
    epoch = epoch_on(store)
    await put(store, KEYS.epoch, storage_pb2.EpochRecord(epoch="first").SerializeToString())
    await put(store, KEYS.epoch, storage_pb2.EpochRecord(epoch="second").SerializeToString())
    await epoch.settle()
    record, head = await store.get(KEYS.epoch)
    assert record is not None
    assert not epoch.contradicts(b"first", record.modified - 1)
    assert not epoch.contradicts(record.value, head + 5)
    assert epoch.contradicts(b"third", head + 5)
    assert epoch.contradicts(None, head + 5)


@pytest.mark.parametrize("value", [b"\xff broken", b""])
@in_virtual_time
async def test_an_epoch_that_cannot_be_read_is_replaced(value: bytes) -> None:
    store = MemoryStore()
    epoch = epoch_on(store)
    await epoch.settle()
    before = epoch.current
    await put(store, KEYS.epoch, value)
    await epoch.settle()
    assert (await epoch_in(store)).epoch == epoch.current != before
    assert list((await epoch_in(store)).predecessor) == [before]


@in_virtual_time
async def test_the_format_is_written_once() -> None:
    store = MemoryStore()
    await asyncio.gather(epoch_on(store, 1).settle(), epoch_on(store, 2).settle())
    record = await stored(store, KEYS.format)
    assert record is not None
    assert record.created == record.modified
    assert store_pb2.FormatRecord.FromString(record.value).format == FORMAT


@in_virtual_time
async def test_a_newer_format_that_old_readers_understand_is_left_as_it_is() -> None:
    store = MemoryStore()
    newer = store_pb2.FormatRecord(format=FORMAT + 1, oldest_reader=FORMAT).SerializeToString()
    await put(store, KEYS.format, newer)
    await epoch_on(store).settle()
    record = await stored(store, KEYS.format)
    assert record == Record(KEYS.format, newer, 2, 2)


@in_virtual_time
async def test_a_format_that_is_too_new_is_refused_with_what_to_do() -> None:
    store = MemoryStore()
    future = store_pb2.FormatRecord(format=9, oldest_reader=8).SerializeToString()
    await put(store, KEYS.format, future)
    with pytest.raises(FormatTooNew, match=r"format 9.*reader of format 8.*upgrade this process"):
        await epoch_on(store).settle()


@in_virtual_time
async def test_a_broken_format_is_named_with_what_to_do() -> None:
    store = MemoryStore()
    await put(store, KEYS.format, b"\xff")
    with pytest.raises(Unavailable, match=r"/hq/v1/format.*repair or delete"):
        await epoch_on(store).settle()
