"""Events: stored first, handled in order, once."""

from __future__ import annotations

import asyncio

import pytest

from control import Change, EventRefused, NotHandledYet, Refused, RequestConflict
from store.memory import MemoryStore
from tests.support.controllers import BOOK, Books, Word
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_events_take_effect_in_the_order_in_which_they_were_stored() -> None:
    async with Books(MemoryStore()) as books:
        for word in "abc":
            await books.write("b1", word)
        assert books.read("b1") == ["a", "b", "c"]


@in_virtual_time
async def test_a_process_that_does_not_act_takes_events_too() -> None:
    store = MemoryStore()
    async with Books(store) as one:
        await one.acting()
        async with Books(store, "two", seed=2) as two:
            await two.write("b1", "a")
            assert two.read("b1") == ["a"]
            assert not two.controller.is_acting
            assert two.controller.acting_process == "one"


@in_virtual_time
async def test_the_same_request_sent_twice_takes_effect_once() -> None:
    async with Books(MemoryStore()) as books:
        await asyncio.gather(*(books.write("b1", "a", request_id="r1") for _ in range(5)))
        await books.write("b1", "a", request_id="r1")
        assert books.read("b1") == ["a"]


@in_virtual_time
async def test_a_request_id_with_another_content_is_a_conflict() -> None:
    async with Books(MemoryStore()) as books:
        await books.write("b1", "a", request_id="r1")
        with pytest.raises(RequestConflict):
            await books.write("b1", "b", request_id="r1")
        assert books.read("b1") == ["a"]


@in_virtual_time
async def test_a_refused_event_changes_nothing_and_is_refused_again_when_resent() -> None:
    async with Books(MemoryStore()) as books:
        for _ in range(2):
            with pytest.raises(EventRefused, match="b1 does not take it") as refused:
                await books.write("b1", "no", request_id="r1")
            assert refused.value.code == "NOT_FOUND"
        assert books.read("b1") == []


@in_virtual_time
async def test_a_write_too_large_for_etcd_is_refused_and_later_ones_go_on() -> None:
    """Otherwise an agent that makes the record of its host too large would block the checks of all hosts."""
    store = MemoryStore()
    async with Books(store) as books:
        for _ in range(5):
            await books.write("b1", "x" * 100_000)
        with pytest.raises(EventRefused, match="book b1 has 600") as refused:
            await books.write("b1", "y" * 100_000)
        assert refused.value.code == "RESOURCE_EXHAUSTED"
        await books.write("b1", "z")
        assert books.read("b1")[-1] == "z"


class Wordy(Books):
    """Repeats the word in its refusal."""

    def handle(self, change: Change, book: str, word: Word) -> None:
        if word.value.startswith("no"):
            raise Refused(f"{book} does not take {word.value}", "NOT_FOUND")
        super().handle(change, book, word)


@in_virtual_time
async def test_long_refusals_do_not_block_later_events() -> None:
    """Otherwise a few requests with an id of 200 KB would block all orders at the CMS for ever."""
    async with Wordy(MemoryStore()) as books:
        for number in range(4):
            with pytest.raises(EventRefused, match="does not take no"):
                await books.write("b1", f"no {number} " + "x" * 200_000)
        full = [
            books.write("b1", f"no {number} " + "x" * 6_000, request_id="r" * 125 + f"{number}") for number in range(64)
        ]
        outcomes = await asyncio.gather(*full, return_exceptions=True)
        assert all(isinstance(one, EventRefused) for one in outcomes), outcomes
        await books.write("b1", "yes")
        assert books.read("b1") == ["yes"]


class Wide(Books):
    """Each event changes records of its own: many events do not fit into one transaction."""

    def handle(self, change: Change, book: str, word: Word) -> None:
        for number in range(int(word.value)):
            name = f"{word.value}-{number}"
            change.get(BOOK, name)
            change.put(BOOK, name, word)


@in_virtual_time
async def test_events_that_fit_into_no_transaction_together_are_handled_one_by_one() -> None:
    async with Wide(MemoryStore()) as books:
        wanted = [str(number) for number in range(40, 50)]
        written = (books.write("b1", word) for word in [*wanted, "200", "2"])
        outcomes = await asyncio.gather(*written, return_exceptions=True)
        assert [isinstance(one, EventRefused) for one in outcomes] == [*(False for _ in wanted), True, False]
        assert books.read("49-48") == ["49"]
        assert books.read("2-1") == ["2"]
        assert books.read("200-1") == []


class Upgraded(Books):
    """A version that knows what `?` means."""

    def handle(self, change: Change, book: str, word: Word) -> None:
        super().handle(change, book, Word(value="why" if word.value == "?" else word.value))


@in_virtual_time
async def test_an_unreadable_event_visibly_blocks_its_subject_until_a_version_that_reads_it_acts() -> None:
    store = MemoryStore()
    async with Books(store) as books:
        await books.write("b1", "a")
        with pytest.raises(NotHandledYet):
            await books.write("b1", "?", timeout_s=1.0)
        with pytest.raises(NotHandledYet):
            await books.write("b1", "b", timeout_s=1.0)
        await books.write("b2", "c")
        assert "event 2 of book b1 cannot be read" in books.controller.failures("events.book")["b1"].error
    async with Upgraded(store, "two") as books:
        await asyncio.sleep(60)
        assert books.read("b1") == ["a", "why", "b"]
        assert "b1" not in books.controller.failures("events.book")


@pytest.mark.long
@in_virtual_time
async def test_an_inbox_that_nothing_came_into_for_an_hour_is_forgotten() -> None:
    async with Books(MemoryStore()) as books:
        await books.write("b1", "a")
        await asyncio.sleep(1800)
        await books.write("b2", "c")
        assert sorted(books.words.subjects()) == ["b1", "b2"]
        await asyncio.sleep(2000)
        assert list(books.words.subjects()) == ["b2"]
        assert books.read("b1") == ["a"]


@in_virtual_time
async def test_orders_for_many_subjects_share_transactions() -> None:
    store = MemoryStore()
    async with Books(store) as books:
        await books.write("b", "a")
        _, before = await store.get(b"nothing")
        await asyncio.gather(*(books.write(f"b{n}", "a") for n in range(200)))
        _, after = await store.get(b"nothing")
        assert all(books.read(f"b{n}") == ["a"] for n in range(200))
        assert after - before < 100
