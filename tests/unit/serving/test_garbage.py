"""Long-lived objects are not scanned by the garbage collector again and again; later garbage is collected."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from serving import process


class Node:
    """Refers to itself: only the garbage collector frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_objects_that_exist_at_start_are_frozen_out_of_garbage_collection() -> None:
    stays = Node()
    process.freeze_gc()
    assert not any(one is stays for one in gc.get_objects())
    assert gc.get_freeze_count() > 10_000


def test_existing_garbage_is_not_kept_by_the_freeze() -> None:
    gone = weakref.ref(Node())
    process.freeze_gc()
    assert gone() is None


def test_garbage_made_after_the_freeze_is_collected() -> None:
    process.freeze_gc()
    gone = weakref.ref(Node())
    gc.collect()
    assert gone() is None


def test_long_lived_objects_are_not_scanned_while_they_are_made_or_later() -> None:
    process.relax_gc()
    looks = list[str]()
    gc.callbacks.append(lambda phase, _: looks.append(phase))
    with process.long_lived():
        stay = [Node() for _ in range(5_000)]
        assert looks == []
    gc.callbacks.pop()
    assert gc.isenabled()
    assert not {id(one) for one in stay} & {id(one) for one in gc.get_objects()}


def test_cycles_left_by_calls_are_collected_within_2500_new_objects() -> None:
    process.relax_gc()
    gone = weakref.ref(Node())
    kept = [[number] for number in range(2_600)]
    assert gone() is None
    assert len(kept) == 2_600


@pytest.mark.long
async def test_objects_that_replace_old_ones_are_collected_before_there_are_many() -> None:
    """Python counts allocations minus releases: here both are equal, so no collection starts by itself."""
    process.relax_gc()
    places = [[number] for number in range(20_000)]
    gc.collect()
    collecting = asyncio.create_task(process.collect_young())
    most = 0
    for turn in range(20):
        for at in range(turn * 1_000, (turn + 1) * 1_000):
            places[at] = [at]
        await asyncio.sleep(process._YOUNG_S)
        most = max(most, len(gc.get_objects(0)) + len(gc.get_objects(1)))
    collecting.cancel()
    assert most < 10_000


async def test_what_a_replica_has_loaded_is_frozen() -> None:
    loaded = asyncio.Event()
    freezing = asyncio.create_task(process.freeze_gc_each_time(loaded))
    await asyncio.sleep(0)
    before = gc.get_freeze_count()
    entries = [Node() for _ in range(1_000)]
    loaded.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert gc.get_freeze_count() >= before + len(entries)
    freezing.cancel()
