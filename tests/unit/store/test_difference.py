"""The difference over a compacted gap is found without a second copy of everything, and without a long turn."""

from __future__ import annotations

import asyncio
from typing import Any

from store.listing import Difference
from store.port import KeyChange, Record, StorePage
from tests.support.faulty_store import FaultyStore, faulty
from tests.support.mirrored_store import caught_up, put
from tests.support.store_parts import Parts
from tests.support.virtual_time import in_virtual_time


class Held(Record):
    """A listed record; counts how many of these are alive, and the most that ever were."""

    alive = most = 0

    def __init__(self, *_: object) -> None:
        Held.alive += 1
        Held.most = max(Held.most, Held.alive)

    def __del__(self) -> None:
        Held.alive -= 1


async def test_the_difference_is_newer_keys_and_missing_ones() -> None:
    difference = Difference(10)
    await difference.know([b"a", b"b", b"c"])
    difference.see([Record(b"a", b"", 1, 10), Record(b"b", b"1", 1, 11)])
    difference.see([Record(b"d", b"2", 12, 12)])
    assert difference.changes == [KeyChange(b"b", b"1", 1, 11), KeyChange(b"d", b"2", 12, 12)]
    assert list(difference.deletions(20)) == [KeyChange(b"c", None, 0, 20)]
    assert difference.key_count == 3


async def test_the_loop_is_not_blocked_while_the_known_keys_are_gathered() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(others())
    await Difference(1).know(b"%d" % n for n in range(50_000))
    other.cancel()
    assert turns >= 20


@in_virtual_time
async def test_a_gap_is_closed_without_holding_a_second_copy_of_everything() -> None:
    store = faulty()
    async with Parts(store) as parts:
        for n in range(2_000):
            await put(store, f"{n:04}", b"x" * 5_000)
        await caught_up(parts)
        store.go_away()
        heads = [await put(store, name) for name in ("new", "newer")]
        await store.store.compact(heads[-1])
        count_listed(store)
        store.away = False
        await caught_up(parts)
        assert len(parts.records) > 2_000
        assert 100 < Held.most < 1_500


def count_listed(store: FaultyStore) -> None:
    """Let every page from now on consist of `Held` records."""
    read = store.page

    async def page(*args: Any, **kwargs: Any) -> StorePage:
        found = await read(*args, **kwargs)
        return found._replace(records=[Held(*record) for record in found.records])

    store.page = page  # type: ignore[method-assign]
