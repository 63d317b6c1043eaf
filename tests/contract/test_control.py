"""The kit of the controllers keeps its promises over memory and over every etcd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from control import EventRefused, MayNotBegin, NotActing, RecordChanged, RequestConflict
from serving.clock import SystemClock
from store.keys import Keys
from store.port import Write
from storepb.v1 import store_pb2
from tests.support.controllers import BOOK, Books, Word
from tests.support.stores import Place

TERM_S = 10.0  # a machine that stalls for a while takes the word from nobody


class Shop:
    """Processes of one controller over one store."""

    def __init__(self, place: Place, stack: AsyncExitStack) -> None:
        self.place, self._stack, self._started = place, stack, 0

    async def start(self, process: str, term_s: float = TERM_S) -> Books:
        """One more, loaded."""
        self._started += 1
        made = Books(
            self.place.store,
            process,
            seed=self._started,
            term_s=term_s,
            clock=SystemClock(),
            prefix=self.place.start.decode(),
        )
        return await self._stack.enter_async_context(made)

    async def replace_epoch(self) -> None:
        """Replace the epoch, as a process does that finds another history."""
        keys = Keys(self.place.start.decode())
        old, _ = await self.place.store.get(keys.epoch)
        assert old is not None
        theirs = store_pb2.EpochRecord.FromString(old.value)
        new = store_pb2.EpochRecord(epoch="another", predecessor=[*theirs.predecessor, theirs.epoch])
        await self.place.store.commit((), (Write((), ((keys.epoch, new.SerializeToString()),)),), 5.0)


@pytest.fixture
async def shop(place: Place) -> AsyncIterator[Shop]:
    async with AsyncExitStack() as stack, asyncio.timeout(60):
        yield Shop(place, stack)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@pytest.mark.long
async def test_writes_through_several_processes_are_all_stored_once(shop: Shop) -> None:
    one, two = await shop.start("one", 1.0), await shop.start("two", 1.0)
    await asyncio.gather(*(books.write("b", f"{n}", f"r{n}") for n in range(20) for books in (one, two)))
    # Who asked knows what it wrote; what the other one wrote, each of them hears of by itself.
    await until(lambda: min(len(one.read("b")), len(two.read("b"))) >= 20)
    assert sorted(one.read("b"), key=int) == [str(n) for n in range(20)] == sorted(two.read("b"), key=int)


async def test_a_refusal_reaches_the_process_that_asked(shop: Shop) -> None:
    one, two = await shop.start("one"), await shop.start("two")
    await one.acting()
    with pytest.raises(EventRefused, match="b does not take it"):
        await two.write("b", "no")


async def test_a_request_id_stands_for_one_content(shop: Shop) -> None:
    one = await shop.start("one")
    await one.write("b", "a", "r1")
    with pytest.raises(RequestConflict):
        await one.write("b", "c", "r1")


async def test_a_successor_goes_on_where_the_dead_one_was(shop: Shop) -> None:
    one, two = await shop.start("one", 1.0), await shop.start("two", 1.0)
    await one.acting()
    await one.write("b", "a")
    await one.kill()
    await two.write("b", "c")
    assert two.read("b") == ["a", "c"]
    await two.acting()


async def test_a_change_that_was_overtaken_stores_nothing(shop: Shop) -> None:
    one = await shop.start("one")
    await one.acting()
    late, early = one.controller.change(), one.controller.change()
    for change, word in ((late, "late"), (early, "early")):
        assert change.get(BOOK, "b") is None
        change.put(BOOK, "b", Word(value=word))
    await early.commit()
    with pytest.raises(RecordChanged):
        await late.commit()
    assert one.read("b") == ["early"]


async def test_a_process_that_no_longer_acts_writes_nothing_more(shop: Shop) -> None:
    one, two = await shop.start("one"), await shop.start("two")
    await one.acting()
    change = one.controller.change()
    assert change.get(BOOK, "b") is None
    change.put(BOOK, "b", Word(value="late"))
    await one.controller.leave()
    await two.acting()
    with pytest.raises(NotActing):
        await change.commit()
    assert two.read("b") == []


async def test_records_are_read_again_at_a_start(shop: Shop) -> None:
    one = await shop.start("one")
    await one.write("b", "a")
    two = await shop.start("two")
    assert two.read("b") == ["a"]


@pytest.mark.long
async def test_a_new_epoch_stops_effects_and_old_orders_until_it_is_opened(shop: Shop) -> None:
    one = await shop.start("one", 1.0)
    await one.acting()
    await one.write("b", "a")
    await shop.replace_epoch()
    await until(lambda: one.controller.epoch == "another" and one.controller.loaded.is_set())
    await one.acting()
    assert not one.controller.is_open
    with pytest.raises(MayNotBegin, match="until an operator has checked it"):
        await one.controller.intend(one.controller.change())
    await one.write("b", "c")  # an order of the new epoch is handled
    await one.controller.open("me", "looked at it")
    (await one.controller.intend(one.controller.change())).check()
    assert one.read("b") == ["a", "c"]


async def test_a_freeze_holds_at_every_process(shop: Shop) -> None:
    one, two = await shop.start("one"), await shop.start("two")
    await one.acting()
    await two.controller.freeze("me", "because")
    await until(lambda: one.controller.frozen is not None)
    with pytest.raises(MayNotBegin, match="frozen by me: because"):
        await one.controller.intend(one.controller.change())


async def test_only_creations_need_no_acting_process(shop: Shop) -> None:
    one, two = await shop.start("one"), await shop.start("two")
    await one.acting()
    creation = two.controller.creation()
    assert creation.get(BOOK, "b") is None
    creation.put(BOOK, "b", Word(value="made"))
    await creation.commit()
    again = two.controller.creation()
    found = again.get(BOOK, "b")
    assert found is not None
    with pytest.raises(NotActing, match="only the leader changes it"):
        again.put(BOOK, "b", Word(value="changed"))
