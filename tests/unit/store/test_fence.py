"""Fences: what they prove, whom they serve, and what they notice."""

from __future__ import annotations

import asyncio

import pytest

from store.fence import FenceTimes
from store.flight import Closed
from store.port import StoreError, Unavailable
from tests.support.faulty_store import Fate, faulty
from tests.support.fenced_store import KEY, fences_in, foreign_write
from tests.support.store_parts import Parts
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_fence_proves_that_earlier_acknowledged_writes_are_in_memory() -> None:
    store = faulty()
    store.delay_s = 0.2
    async with Parts(store) as parts:
        for n in range(20):
            acknowledged = await foreign_write(store, f"ops/{n}")
            passed = await parts.fence.wait_for_fence()
            assert passed > acknowledged
            assert parts.version >= passed


@in_virtual_time
async def test_a_fence_serves_only_callers_that_asked_before_its_put_was_sent() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.silence()
        first = asyncio.create_task(parts.fence.wait_for_fence())
        await asyncio.sleep(0.1)
        sent = fences_in(store)
        second = asyncio.create_task(parts.fence.wait_for_fence())
        store.speak()
        versions = [await first, await second]
        assert fences_in(store) == sent + 1
        assert versions[0] < versions[1]


@in_virtual_time
async def test_callers_that_come_together_share_a_fence() -> None:
    store = faulty()
    async with Parts(store) as parts:
        before = fences_in(store)
        await asyncio.gather(*(parts.fence.wait_for_fence() for _ in range(50)))
        assert fences_in(store) == before + 1


@pytest.mark.parametrize("callers", [1, 4, 200])
@in_virtual_time
async def test_there_are_at_most_fifty_fences_a_second_however_many_callers_ask(callers: int) -> None:
    store = faulty()
    async with Parts(store) as parts:
        before, until, answers = fences_in(store), parts.clock.now() + 10, 0

        async def ask_again_and_again() -> None:
            nonlocal answers
            while parts.clock.now() < until:
                await parts.fence.wait_for_fence()
                answers += 1

        await asyncio.gather(*(ask_again_and_again() for _ in range(callers)))
        assert fences_in(store) - before <= 10 / FenceTimes().spacing_s + 1
        assert answers >= 400 * callers  # each waits for one spacing at most, and is not forgotten


@in_virtual_time
async def test_a_caller_after_a_pause_does_not_wait_to_share_a_fence() -> None:
    async with Parts(faulty()) as parts:
        await asyncio.sleep(FenceTimes().spacing_s * 2)
        before = parts.clock.now()
        await parts.fence.wait_for_fence()
        assert parts.clock.now() - before < FenceTimes().spacing_s / 2


@in_virtual_time
async def test_an_idle_replica_proves_its_freshness_every_three_seconds() -> None:
    async with Parts(faulty()) as parts:
        for _ in range(100):
            await asyncio.sleep(0.37)
            staleness_s = parts.fence.staleness_s()
            assert staleness_s is not None
            assert staleness_s <= FenceTimes().idle_s + 0.2


@in_virtual_time
async def test_without_a_store_staleness_grows_and_fences_fail() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.go_away()
        with pytest.raises(Unavailable):
            await parts.fence.wait_for_fence()
        await asyncio.sleep(60)
        staleness_s = parts.fence.staleness_s()
        assert staleness_s is not None
        assert staleness_s > 59
        assert parts.fence.error
        store.away = False
        await asyncio.sleep(5)
        staleness_s = parts.fence.staleness_s()
        assert staleness_s is not None
        assert staleness_s < 5
        assert not parts.fence.error


@in_virtual_time
async def test_a_silent_watch_is_noticed_by_the_fence_and_opened_again() -> None:
    store = faulty()
    async with Parts(store) as parts:
        restarts = parts.follower.restarts
        store.silence()
        with pytest.raises(Unavailable):
            await parts.fence.wait_for_fence()
        at = await foreign_write(store)
        store.speak()
        await asyncio.sleep(0.5)
        assert parts.follower.restarts > restarts
        assert parts.version >= at
        await parts.fence.wait_for_fence()


@in_virtual_time
async def test_a_slow_watch_that_still_brings_changes_is_left_alone() -> None:
    store = faulty()
    async with Parts(store) as parts:
        restarts = parts.follower.restarts
        store.delay_s = 1.5
        for n in range(40):
            await foreign_write(store, f"ops/{n}")
        with pytest.raises(Unavailable):
            await parts.fence.wait_for_fence()
        await asyncio.sleep(60)
        assert parts.follower.restarts == restarts


@in_virtual_time
async def test_a_fence_while_a_watch_is_reopened_fails_without_harm() -> None:
    store = faulty()
    async with Parts(store) as parts:
        failed = 0
        for _ in range(20):
            fence = asyncio.create_task(parts.fence.wait_for_fence())
            store.silence()
            await asyncio.sleep(store._rng.uniform(0, 2.1))
            store.go_away()
            await asyncio.sleep(store._rng.uniform(0, 3))
            store.away = False
            store.speak()
            (outcome,) = await asyncio.gather(fence, return_exceptions=True)
            failed += isinstance(outcome, StoreError)
        assert failed
        _, head = await store.get(KEY)
        assert await parts.fence.wait_for_fence() > head


@in_virtual_time
async def test_an_unanswered_put_that_the_watch_brings_back_is_proof_enough() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.UNANSWERED, touching=KEY)
        before = fences_in(store)
        await parts.fence.wait_for_fence()
        assert fences_in(store) == before + 1


@in_virtual_time
async def test_a_late_put_of_an_earlier_fence_proves_nothing() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.LATE, touching=KEY)
        with pytest.raises(Unavailable):
            await parts.fence.wait_for_fence()
        passed = await parts.fence.wait_for_fence()
        assert parts.version >= passed
        await store.arrived()
        await parts.fence.wait_for_fence()


@in_virtual_time
async def test_after_a_new_epoch_the_staleness_is_unknown() -> None:
    store = faulty()
    async with Parts(store) as parts:
        parts.reset()
        assert parts.fence.staleness_s() is None


@in_virtual_time
async def test_callers_are_told_when_the_replica_goes_away() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.silence()
        served = asyncio.create_task(parts.fence.wait_for_fence())
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(parts.fence.wait_for_fence())
        await asyncio.sleep(0.1)
        await parts.stop()
        answers = await asyncio.gather(served, waiting, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Closed, Closed]
        with pytest.raises(Closed):
            await parts.fence.wait_for_fence()
