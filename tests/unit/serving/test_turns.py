"""Which waiter works next, and how much is done in one turn of the loop."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from serving.limiting import turns as turns_module
from serving.limiting.turns import Turns
from tests.support.loop_turns import counted_turns

MOST = turns_module._MOST


async def test_waiters_run_in_order_and_at_most_one_turns_worth_at_a_time() -> None:
    turns, done = Turns(), list[int]()

    def act(number: int) -> None:
        turns.left -= MOST // 2
        done.append(number)

    turns.left = 0
    for number in range(5):
        turns.wait(partial(act, number))
    for expected in ([0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4]):
        assert turns.left == 0
        await asyncio.sleep(0)
        assert done == expected
    assert turns.left > 0


async def test_long_work_is_a_turn_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, done = Turns(), list[int]()
    monkeypatch.setattr(turns_module, "_MOST_S", 0.0)

    def act(number: int) -> None:
        _spend()
        done.append(number)

    for number in range(3):
        turns.wait(partial(act, number))
    for expected in ([0], [0, 1], [0, 1, 2]):
        await asyncio.sleep(0)
        assert done == expected


def _spend() -> None:
    began = asyncio.get_running_loop().time()
    while asyncio.get_running_loop().time() <= began:
        pass


async def test_a_waiter_that_waits_again_comes_after_the_others() -> None:
    turns, done = Turns(), list[str]()

    def greedy() -> None:
        done.append("greedy")
        turns.left = 0
        if done.count("greedy") < 3:
            turns.wait(greedy)

    turns.wait(greedy)
    turns.wait(lambda: done.append("other"))
    async with asyncio.timeout(10):
        while len(done) < 4:
            await asyncio.sleep(0)
    assert done == ["greedy", "other", "greedy", "greedy"]


async def test_an_error_of_one_does_not_keep_the_others_waiting() -> None:
    turns, done, told = Turns(), list[str](), list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context.get("exception")))

    def broken() -> None:
        raise ValueError("broken")

    turns.wait(broken)
    turns.wait(lambda: done.append("other"))
    async with asyncio.timeout(10):
        while not done:
            await asyncio.sleep(0)
    assert [type(error) for error in told] == [ValueError]


async def test_long_work_of_several_callers_takes_one_slice_per_turn_of_the_loop() -> None:
    turns, done = Turns(), list[str]()

    async def work(name: str) -> None:
        for _ in range(3):
            await turns.next()
            done.append(name)

    tasks = [asyncio.create_task(work(name)) for name in "abc"]
    async with counted_turns() as loop:
        await asyncio.gather(*tasks)
    assert done == [*"abcabcabc"]
    assert loop.count >= 9


async def test_a_cancelled_waiter_is_passed_over() -> None:
    turns, done = Turns(), list[str]()

    async def work(name: str) -> None:
        await turns.next()
        done.append(name)

    first, second = (asyncio.create_task(work(name)) for name in ("first", "second"))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert done == ["second"]


async def test_work_in_slices_handles_every_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "_SLICE_S", -1.0)
    assert await Turns().in_slices(lambda number: number * 2, range(10)) == list(range(0, 20, 2))


async def test_work_that_fits_into_the_turn_starts_at_once_unless_others_wait() -> None:
    turns = Turns()
    assert [turns.enter(MOST // 2) for _ in range(3)] == [True, True, False]
    await asyncio.sleep(0)
    assert turns.enter(MOST), "the next turn has room for as much"
    turns.wait(lambda: None)
    await asyncio.sleep(0)
    turns.wait(lambda: None)
    assert not turns.enter(1)
