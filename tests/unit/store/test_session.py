"""The session word: settled before the first transaction, and changed after one without an answer."""

from __future__ import annotations

import asyncio

import pytest

from hq.keys import SESSION
from store.keys import word_of
from store.port import Compare, Unavailable, Write
from tests.support.faulty_store import Fate, FaultyStore, faulty
from tests.support.store_parts import Parts, stored
from tests.support.virtual_time import in_virtual_time

KEY = b"/hq/v1/session/one"


async def word_in(store: FaultyStore) -> int:
    record = await stored(store, KEY)
    return word_of(record.value) if record else 0


async def holds(store: FaultyStore, guard: Compare) -> bool:
    return (await store.store.commit((guard,), (), 1)).guarded


@in_virtual_time
async def test_the_first_use_stores_a_word_that_the_guard_compares() -> None:
    store = faulty()
    async with Parts(store) as parts:
        assert not await holds(store, parts.session.guard())
        await parts.session.ready(1)
        assert await word_in(store) != 0
        assert await holds(store, parts.session.guard())


@in_virtual_time
async def test_a_word_that_is_still_stored_is_kept() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.session.ready(1)
        word = await word_in(store)
        parts.session.doubt()
        await parts.session.ready(1)
        assert await word_in(store) == word


@in_virtual_time
async def test_concurrent_users_settle_one_word() -> None:
    store = faulty()
    store.delay_s = 0.1
    async with Parts(store) as parts:
        await asyncio.gather(*(parts.session.ready(5) for _ in range(5)))
        assert await holds(store, parts.session.guard())


@in_virtual_time
async def test_after_a_change_the_old_guard_does_not_hold() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.session.ready(1)
        old = parts.session.guard()
        await parts.session.change()
        assert not await holds(store, old)
        assert await holds(store, parts.session.guard())


@in_virtual_time
async def test_a_change_returns_only_after_the_watch_has_brought_it_back() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.session.ready(1)
        store.silence()
        change = asyncio.create_task(parts.session.change())
        await asyncio.sleep(0.5)
        assert not change.done()
        store.speak()
        await change
        record = await stored(store, KEY)
        assert record is not None
        assert parts.version >= record.modified


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.UNANSWERED, Fate.LATE, Fate.AWAY, Fate.SILENT])
@in_virtual_time
async def test_a_lost_change_is_tried_until_it_is_stored(fate: Fate) -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.session.ready(1)
        old = parts.session.guard()
        store.plan(fate, fate, touching=KEY)
        await parts.session.change()
        await store.arrived()
        assert not await holds(store, old)
        assert await holds(store, parts.session.guard())


@in_virtual_time
async def test_a_session_whose_key_was_removed_is_settled_anew() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.write("a")
        await store.store.commit((), (Write((), deletes=(KEY,)),), 1)
        with pytest.raises(Unavailable):
            await parts.write("a")
        assert await parts.write("a") > 0


@in_virtual_time
async def test_a_change_survives_the_removal_of_its_key() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.session.ready(1)
        await store.store.commit((), (Write((), deletes=(KEY,)),), 1)
        await parts.session.change()
        assert await holds(store, parts.session.guard())


@in_virtual_time
async def test_a_new_epoch_ends_a_change_that_cannot_succeed() -> None:
    store = faulty()
    async with Parts(store) as parts, Parts(store, "two", seed=2) as other:
        await parts.session.ready(1)
        store.plan(*[Fate.LOST] * 5, touching=KEY)
        change = asyncio.create_task(parts.session.change())
        await other.epoch.on_history_changed()
        await change
        await parts.session.ready(1)
        assert await holds(store, parts.session.guard())


@in_virtual_time
async def test_during_a_change_other_users_are_told_to_retry() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.session.ready(1)
        store.silence()
        change = asyncio.create_task(parts.session.change())
        await asyncio.sleep(0.1)
        parts.session.doubt()
        with pytest.raises(Unavailable):
            await parts.session.ready(1)
        store.speak()
        await change


@in_virtual_time
async def test_without_a_store_the_session_is_unavailable() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.away = True
        with pytest.raises(Unavailable):
            await parts.session.ready(1)
        store.away = False
        store.delay_s = 100
        with pytest.raises(Unavailable):
            await parts.session.ready(1)
        store.delay_s = 0
        await parts.session.ready(1)
        assert parts.key_names.of(SESSION, "one") == KEY
