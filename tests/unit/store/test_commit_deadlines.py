"""Group commit: deadlines, and callers and replicas that go away."""

from __future__ import annotations

import asyncio

import pytest

from store.flight import MAX_WRITES, Closed, Queue, QueuedWrite, TimedOut
from store.port import UnknownOutcome, Write
from tests.support.faulty_store import Fate, faulty
from tests.support.store_parts import Parts, stored
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_deadline_before_the_write_was_sent_means_that_nothing_is_ever_stored() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.SILENT, touching=parts.spec("first"))
        first = asyncio.create_task(parts.write("first"))
        await asyncio.sleep(0.1)
        with pytest.raises(TimedOut):
            await parts.write("a", timeout_s=1)
        await first
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None


@in_virtual_time
async def test_a_deadline_during_the_session_setup_means_that_nothing_is_ever_stored() -> None:
    store = faulty()
    async with Parts(store) as parts:
        parts.session.doubt()
        store.delay_s = 1.9
        with pytest.raises(TimedOut):
            await parts.write("a", timeout_s=0.1)
        store.delay_s = 0
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None


@in_virtual_time
async def test_a_deadline_after_the_write_was_sent_leaves_the_outcome_unknown() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.SILENT, touching=parts.spec("a"))
        with pytest.raises(UnknownOutcome):
            await parts.write("a", timeout_s=1)
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None, "a write whose caller was told 'unknown' is not sent again"


@in_virtual_time
async def test_a_deadline_that_has_passed_already_stores_nothing() -> None:
    store = faulty()
    async with Parts(store) as parts:
        with pytest.raises(TimedOut):
            await parts.write("a", timeout_s=-1)
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None


@in_virtual_time
async def test_the_write_of_a_caller_that_went_away_while_waiting_is_not_sent() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.delay_s = 1
        first = asyncio.create_task(parts.write("first"))
        await asyncio.sleep(0.1)
        gone = asyncio.create_task(parts.write("a"))
        await asyncio.sleep(0.1)
        gone.cancel()
        await first
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None


@in_virtual_time
async def test_a_replica_that_shuts_down_says_of_each_write_whether_it_was_sent() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.SILENT, touching=parts.spec("sent"))
        sent = asyncio.create_task(parts.write("sent"))
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(parts.write("waiting"))
        await asyncio.sleep(0.1)
        await parts.stop()
        answers = await asyncio.gather(sent, waiting, return_exceptions=True)
        assert [type(answer) for answer in answers] == [UnknownOutcome, Closed]
        with pytest.raises(Closed):
            await parts.write("later")


async def test_grouping_yields_to_callers_that_all_leave_at_once() -> None:
    queue = Queue()
    items = [
        QueuedWrite(str(n), Write((), ()), 0, (), asyncio.get_running_loop().create_future())
        for n in range(2 * MAX_WRITES)
    ]
    for item in items:
        queue.add(item)
    assert len(await queue.group()) == MAX_WRITES
    for item in items:
        item.done.cancel()
    leaving = asyncio.create_task(_leave(queue, items))
    for _ in range(10):
        await queue.group()
        if leaving.done():
            return
    raise AssertionError("groups of nobody were taken over and over, and nothing else was done")


async def _leave(queue: Queue, items: list[QueuedWrite]) -> None:
    for item in items:
        queue.drop(item)
    queue.add(QueuedWrite("later", Write((), ()), 0, (), asyncio.get_running_loop().create_future()))
