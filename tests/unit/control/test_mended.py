"""A controller compares its memory with its store: lost changes are found and mended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from google.protobuf import wrappers_pb2

from control import ControlConfig, Controller, Kind
from control.records import Records
from store.memory import MemoryStore
from store.port import Write
from tests.support.controllers import Books, running
from tests.support.faulty_store import FaultyStore
from tests.support.virtual_time import VirtualClock, run_virtually

# A pass over a small store takes a minute, and so does the time between two counts.
SOON_S = 150.0
NOTE = Kind("note", wrappers_pb2.StringValue)
Lose = Callable[[Controller, Records[wrappers_pb2.StringValue]], None]


class Process:
    """A controller that keeps notes, and does nothing else."""

    def __init__(self) -> None:
        self.store = FaultyStore(MemoryStore(), random.Random(1))
        self.controller = Controller(ControlConfig("/notes/v1/", "one"), self.store, VirtualClock(), random.Random(2))
        self.notes = self.controller.records(NOTE)
        self.told: list[str] = []
        self.notes.listen(self.told.append)

    async def write(self, name: str) -> None:
        change = self.controller.change()
        change.get(NOTE, name)
        change.put(NOTE, name, wrappers_pb2.StringValue(value=name))
        await change.commit(1.0)


def lose_deletion(controller: Controller, notes: Records[wrappers_pb2.StringValue]) -> None:
    """A record in memory that the store does not have."""
    notes.take("ghost", wrappers_pb2.StringValue(value="ghost").SerializeToString(), 3)
    controller._following._follower.key_count += 1


def lose_put(controller: Controller, notes: Records[wrappers_pb2.StringValue]) -> None:
    """A record of the store that is missing in memory."""
    notes.take("a", None, 3)
    controller._following._follower.key_count -= 1


def swap(controller: Controller, notes: Records[wrappers_pb2.StringValue]) -> None:
    """A lost deletion and a lost creation: the number of keys is right."""
    lose_put(controller, notes)
    lose_deletion(controller, notes)


@pytest.mark.parametrize("lose", [lose_deletion, lose_put, swap])
def test_lost_changes_are_found_mended_and_passed_on(lose: Lose) -> None:
    async def story() -> None:
        process = Process()
        async with running(process.controller):
            await asyncio.sleep(5)
            for name in ("a", "b"):
                await process.write(name)
            await asyncio.sleep(5)
            lose(process.controller, process.notes)
            assert set(process.notes) != {"a", "b"}
            process.told.clear()
            await asyncio.sleep(SOON_S)
            assert set(process.notes) == {"a", "b"}
            lost = {"lose_deletion": {"ghost"}, "lose_put": {"a"}, "swap": {"a", "ghost"}}
            assert set(process.told) == lost[lose.__name__]

    run_virtually(story)


def test_an_unreadable_record_is_no_difference_until_a_change_of_it_is_lost() -> None:
    async def story() -> None:
        process = Process()
        key, broken = b"/notes/v1/note/broken", b"\xff"
        async with running(process.controller):
            await asyncio.sleep(5)
            at = (await process.store.commit((), (Write((), ((key, broken),)),), 1.0)).revision
            await asyncio.sleep(SOON_S)
            proof = process.controller._following.proof
            assert (set(process.notes.unreadable), proof.mended) == ({"broken"}, 0)
            await process.store.commit((), (Write((), deletes=(key,)),), 1.0)
            await asyncio.sleep(5)
            process.notes.take("broken", broken, at)  # as if that had not been told
            process.controller._following._follower.key_count += 1
            await asyncio.sleep(SOON_S)
            assert (set(process.notes.unreadable), proof.mended) == (set(), 1)

    run_virtually(story)


def test_each_process_counts_the_others_so_that_all_together_do_not_load_the_store() -> None:
    async def story() -> None:
        store = MemoryStore()

        def counted(books: Books) -> int:
            return books.controller._following.proof._processes()

        async with Books(store, "one") as one:
            assert counted(one) == 1
            async with Books(store, "two") as two, Books(store, "three"):
                await asyncio.sleep(10)
                assert counted(one) == counted(two) == 3
            await asyncio.sleep(70)
            assert counted(one) == 1

    run_virtually(story)
