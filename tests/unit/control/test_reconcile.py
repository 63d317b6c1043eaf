"""Reconcile: per key at most one run, triggers coalesce, errors back off and are shown."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

from control.errors import RecordChanged
from control.reconcile import BACKOFF_S, Due, Reconciler, Run
from store.memory import MemoryStore
from tests.support.controllers import Books
from tests.support.virtual_time import VirtualClock, in_virtual_time


class Shown:
    """Failures as they are shown."""

    def __init__(self) -> None:
        self.errors: dict[str, str] = {}

    async def show(self, key: str, error: str) -> None:
        self.errors[key] = error

    async def clear(self, key: str) -> None:
        self.errors.pop(key, None)


@asynccontextmanager
async def serving(run: Run, keys: Callable[[], list[str]] = list, workers: int = 8) -> AsyncIterator[Reconciler]:
    made = Reconciler("test", run, keys, Shown(), VirtualClock(), random.Random(1), workers)
    task = asyncio.create_task(made.serve())
    await asyncio.sleep(0.1)
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_key_is_due_at_its_earliest_time() -> None:
    due = Due()
    due.add("a", 5.0)
    due.add("a", 3.0)
    due.add("a", 4.0)
    assert (due.take(2.9), due.next_at()) == (None, 3.0)
    assert due.take(3.0) == "a"
    assert due.next_at() == float("inf")


def test_a_key_that_runs_is_not_due_until_it_is_done() -> None:
    due = Due()
    due.add("a", 1.0)
    assert due.take(1.0) == "a"
    due.add("a", 1.0)
    assert due.take(2.0) is None
    due.finish("a")
    assert due.take(2.0) == "a"


def test_no_trigger_shortens_a_backoff() -> None:
    due = Due()
    due.hold("a", 10.0)
    due.add("a", 1.0)
    assert due.next_at() == 10.0


@in_virtual_time
async def test_triggers_during_a_run_make_one_more_run() -> None:
    runs: Counter[str] = Counter()

    async def run(key: str) -> None:
        runs[key] += 1
        await asyncio.sleep(1.0)

    async with serving(run) as reconciler:
        for _ in range(10):
            reconciler.trigger("a")
            await asyncio.sleep(0.05)
        await asyncio.sleep(10.0)
        assert runs == {"a": 2}


@in_virtual_time
async def test_more_keys_than_workers_are_all_run() -> None:
    runs: Counter[str] = Counter()

    async def run(key: str) -> None:
        runs[key] += 1

    async with serving(run, lambda: [f"{n}" for n in range(100)], workers=3):
        assert runs == dict.fromkeys((f"{n}" for n in range(100)), 1)


@in_virtual_time
async def test_a_key_runs_again_when_its_last_run_asked_for() -> None:
    at: list[float] = []

    async def run(key: str) -> float:
        at.append(asyncio.get_running_loop().time())
        return 5.0

    async with serving(run, lambda: ["a"]):
        await asyncio.sleep(11.0)
    assert [round(now - at[0]) for now in at] == [0, 5, 10]


@in_virtual_time
async def test_an_error_is_shown_and_retried_with_back_off_until_a_run_succeeds() -> None:
    at: list[float] = []

    async def run(key: str) -> None:
        at.append(asyncio.get_running_loop().time())
        if len(at) < 9:
            raise ValueError("broken")

    async with serving(run, lambda: ["a"]) as reconciler:
        shown = reconciler._failures
        assert isinstance(shown, Shown)
        await asyncio.sleep(10.0)
        assert shown.errors == {"a": "ValueError: broken"}
        await asyncio.sleep(200.0)
        assert shown.errors == {}
    gaps = [after - before for before, after in pairwise(at)]
    assert all(gap <= BACKOFF_S[1] + 0.1 for gap in gaps)
    assert gaps[-1] > 10 * gaps[0]


@in_virtual_time
async def test_a_run_whose_records_have_changed_is_repeated_at_once() -> None:
    runs = 0

    async def run(key: str) -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise RecordChanged("a changed meanwhile")

    async with serving(run, lambda: ["a"]) as reconciler:
        assert isinstance(reconciler._failures, Shown)
        assert (runs, reconciler._failures.errors) == (3, {})


@in_virtual_time
async def test_a_process_that_no_longer_acts_cancels_its_runs() -> None:
    running = 0
    books = Books(MemoryStore())

    async def run(key: str) -> float:
        nonlocal running
        running += 1
        try:
            await asyncio.sleep(100.0)
        finally:
            running -= 1
        return 0.0

    books.controller.reconcile("slow", run, lambda: ["a"])
    async with books:
        await books.acting()
        await asyncio.sleep(1.0)
        assert running == 1
        await books.controller.leave()
        await asyncio.sleep(1.0)
        assert running == 0


@in_virtual_time
async def test_a_failure_is_a_record_that_every_process_reads() -> None:
    store = MemoryStore()
    one, two = Books(store), Books(store, "two", seed=2)
    broken = True

    async def run(key: str) -> None:
        if broken:
            raise ValueError("broken")

    for books in (one, two):
        books.controller.reconcile("work", run, lambda: ["a"])
    async with one:
        await one.acting()
        await two.__aenter__()
        await asyncio.sleep(1.0)
        assert two.controller.failures("work")["a"].error == "ValueError: broken"
        broken = False
        await asyncio.sleep(60.0)
        assert "a" not in two.controller.failures("work")
        await two.kill()


@in_virtual_time
async def test_a_key_that_fails_for_days_is_still_repeated() -> None:
    runs: Counter[str] = Counter()

    async def run(key: str) -> None:
        runs[key] += 1
        raise RuntimeError("HQ is away")

    async with serving(run, lambda: ["a"]):
        await asyncio.sleep(1_200 * BACKOFF_S[1])  # 2 to the power of the attempts is beyond what a float holds
    assert runs["a"] > 1_100
