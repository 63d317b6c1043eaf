"""Acting: one process at a time; a pause or an absent store makes no other process take over."""

from __future__ import annotations

import asyncio

import pytest

from control import MayNotBegin, NotActing
from control.acting import HolderSilence, Sight
from store.memory import MemoryStore
from tests.support.controllers import BOOK, Books, Word
from tests.support.store_link import Link
from tests.support.virtual_time import in_virtual_time


def test_a_holder_that_was_silent_for_a_whole_term_is_replaced() -> None:
    silence, sight = HolderSilence(10.0), Sight(5, 7)
    for now in range(0, 11, 2):
        assert not silence.is_over(sight)
        silence.record_sight(sight, now, now)
    assert silence.is_over(sight)


def test_a_refresh_begins_the_term_anew() -> None:
    silence = HolderSilence(10.0)
    for now in range(0, 9, 2):
        silence.record_sight(Sight(5, 7), now, now)
    for now in range(10, 19, 2):
        silence.record_sight(Sight(5, 8), now, now)
        assert not silence.is_over(Sight(5, 8))


def test_time_not_covered_by_a_fence_is_no_silence_of_the_holder() -> None:
    silence, sight = HolderSilence(10.0), Sight(5, 7)
    silence.record_sight(sight, 0.0, 0.0)
    silence.record_sight(sight, 60.0, 60.0)
    assert not silence.is_over(sight)


def test_a_slow_fence_proves_nothing_after_the_moment_it_was_asked_for() -> None:
    silence, sight = HolderSilence(10.0), Sight(5, 7)
    for asked_at in (0.0, 3.0, 6.0, 9.0):
        silence.record_sight(sight, asked_at, asked_at + 2.0)
    assert not silence.is_over(sight)


@in_virtual_time
async def test_another_process_takes_over_a_term_after_a_kill() -> None:
    store = MemoryStore()
    async with Books(store) as one:
        await one.acting()
        two = await Books(store, "two", seed=2).__aenter__()
        began = asyncio.get_running_loop().time()
        await one.kill()
        await two.acting()
        await two.kill()
        assert 7.5 <= asyncio.get_running_loop().time() - began <= 20.0


@in_virtual_time
async def test_a_process_that_leaves_is_replaced_at_once() -> None:
    store = MemoryStore()
    async with Books(store) as one:
        await one.acting()
        async with Books(store, "two", seed=2) as two:
            await one.controller.leave()
            began = asyncio.get_running_loop().time()
            await two.acting()
            assert asyncio.get_running_loop().time() - began < 3.0


@in_virtual_time
async def test_a_process_that_was_cut_off_writes_nothing_when_it_comes_back() -> None:
    store = MemoryStore()
    link = Link(store)
    async with Books(link) as one:
        await one.acting()
        change = one.controller.change()
        assert change.get(BOOK, "b1") is None
        change.put(BOOK, "b1", Word(value="late"))
        async with Books(store, "two", seed=2) as two:
            link.cut()
            late = asyncio.create_task(change.commit(timeout_s=60.0))
            await two.acting()
            link.mend()
            with pytest.raises(NotActing):
                await late
            assert two.read("b1") == []
            assert not one.controller.is_acting


@in_virtual_time
async def test_no_effect_starts_later_than_half_a_lease_after_its_intent() -> None:
    async with Books(MemoryStore()) as books:
        await books.acting()
        intent = await books.controller.intend(books.controller.change())
        intent.check()
        await asyncio.sleep(5.0)
        with pytest.raises(MayNotBegin, match="too long ago"):
            intent.check()


@in_virtual_time
async def test_an_intent_from_before_the_work_restarted_may_not_begin() -> None:
    async with Books(MemoryStore()) as books:
        await books.acting()
        intent = await books.controller.intend(books.controller.change())
        books.controller.loaded.clear()
        await asyncio.sleep(2.0)
        books.controller.loaded.set()
        with pytest.raises(MayNotBegin, match="restarted its work"):
            intent.check()
        (await books.controller.intend(books.controller.change())).check()


@in_virtual_time
async def test_no_effect_begins_when_a_successor_might_act_within_half_a_term() -> None:
    link = Link(MemoryStore())
    async with Books(link) as books:
        await books.acting()
        await asyncio.sleep(20.0)
        intent = await books.controller.intend(books.controller.change())
        link.cut()
        await asyncio.sleep(4.9)
        with pytest.raises(MayNotBegin, match="could not renew"):
            intent.check()
        link.mend()


@in_virtual_time
async def test_while_the_audit_log_cannot_be_written_running_work_ends_and_nothing_new_begins() -> None:
    async with Books(MemoryStore()) as books:
        await books.acting()
        intent = await books.controller.intend(books.controller.change())
        books.unrecorded = "the audit log cannot be written: full"
        intent.check(new=False)
        with pytest.raises(MayNotBegin, match="cannot be written: full"):
            intent.check()
        with pytest.raises(MayNotBegin, match="cannot be written: full"):
            await books.controller.intend(books.controller.change())
        books.unrecorded = ""
        await books.controller.intend(books.controller.change())


@in_virtual_time
async def test_a_freeze_lets_running_work_end_and_nothing_new_begin() -> None:
    async with Books(MemoryStore()) as books:
        await books.acting()
        intent = await books.controller.intend(books.controller.change())
        await books.controller.freeze("me", "because")
        intent.check(new=False)
        with pytest.raises(MayNotBegin, match="frozen by me: because"):
            intent.check()
        with pytest.raises(MayNotBegin):
            await books.controller.intend(books.controller.change())
        await books.controller.unfreeze("me", "done")
        (await books.controller.intend(books.controller.change())).check()


@in_virtual_time
async def test_an_emergency_stop_works_without_the_store() -> None:
    link = Link(MemoryStore())
    async with Books(link) as books:
        await books.acting()
        intent = await books.controller.intend(books.controller.change())
        link.cut()
        books.controller.stop.trip("signal")
        with pytest.raises(MayNotBegin, match="signal"):
            intent.check(new=False)
        link.mend()
