"""What the store in memory does beyond the contract of all stores."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.memory import MemoryStore
from store.port import Disconnected, Write
from tests.support.loop_turns import counted_turns
from tests.support.stores import batches, end_of
from tests.support.virtual_time import in_virtual_time, run_virtually


async def put(store: MemoryStore, key: bytes, value: bytes = b"x") -> int:
    return (await store.commit((), (Write((), ((key, value),)),), 1)).revision


@in_virtual_time
async def test_disconnecting_ends_open_watches_and_lets_new_ones_in() -> None:
    store = MemoryStore()
    async with store.watch(b"a", b"b", after=1) as stream:
        store.disconnect()
        with pytest.raises(Disconnected):
            await end_of(stream)
    at = await put(store, b"a")
    async with store.watch(b"a", b"b", after=1) as stream:
        assert len(await batches(stream, at)) == 1


@in_virtual_time
async def test_compaction_frees_history() -> None:
    store = MemoryStore()
    for n in range(1_000):
        head = await put(store, b"a", b"%d" % n)
        if n % 100 == 99:
            await store.compact(head)
    assert len(store._log) <= 100


@in_virtual_time
async def test_a_busy_watch_does_not_starve_others() -> None:
    store = MemoryStore()
    at = [await put(store, b"a") for _ in range(1_000)][-1]
    async with store.watch(b"a", b"b", after=1) as stream, counted_turns() as turns:
        await batches(stream, at)
    assert turns.count >= 500


@given(st.integers(0, 2**32))
def test_every_past_state_can_be_read_until_it_is_compacted(seed: int) -> None:
    async def history() -> None:
        rng, store = random.Random(seed), MemoryStore()
        states: dict[int, dict[bytes, bytes]] = {1: {}}
        for n in range(60):
            key, state = b"%d" % rng.randrange(5), dict(states[max(states)])
            if rng.random() < 0.3 and key in state:
                write = Write((), deletes=(key,))
                del state[key]
            else:
                write = Write((), ((key, b"%d" % n),))
                state[key] = b"%d" % n
            states[(await store.commit((), (write,), 1)).revision] = state
        compacted = rng.choice(list(states)[1:])
        await store.compact(compacted)
        for revision in rng.sample([r for r in states if r >= compacted], k=len(states) - compacted + 1):
            page = await store.page(b"\0", b"\0", revision=revision, limit=100)
            assert {r.key: r.value for r in page.records} == states[revision]

    run_virtually(history)
