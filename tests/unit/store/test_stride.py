"""Where pages of a listing end: whatever the keys are like, all of them are read, at a cost that grows with them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hq.keys import HqKeys
from store.listing import Stride, listing
from store.memory import MemoryStore
from store.port import StorePage, Write

KEYS = HqKeys("/p")
LIMIT = 20


def walked(keys: Sequence[bytes], limit: int = LIMIT) -> tuple[list[bytes], int, int]:
    """Read page by page; return the keys found, the number of pages, and how many keys the store counted."""
    stride = Stride(KEYS.prefix, KEYS.end)
    start, stop = KEYS.prefix, KEYS.end
    found: list[bytes] = []
    pages = counted = 0
    while True:
        inside = [key for key in keys if start <= key < stop]
        page, pages, counted = inside[:limit], pages + 1, counted + len(inside)
        found += page
        if len(inside) <= limit and stop == KEYS.end:
            return found, pages, counted
        reached = page[-1] + b"\0" if len(inside) > limit else stop
        stride.saw(page, reached, limit)
        start, stop = reached, stride.reach(reached)
        assert start < stop <= KEYS.end


@given(st.sets(st.binary(max_size=60), max_size=200), st.integers(1, 30))
def test_every_key_is_read_once_and_in_order(names: set[bytes], limit: int) -> None:
    keys = sorted(KEYS.prefix + name for name in names)
    assert walked(keys, limit)[0] == keys


def test_reading_an_installation_takes_pages_in_proportion_to_its_keys() -> None:
    keys = sorted(
        make(f"service-{n // 100:03}.web.{n % 100:05}") for n in range(2_000) for make in (KEYS.spec, KEYS.status)
    )
    _, pages, counted = walked(keys)
    assert pages < 4 * len(keys) / LIMIT
    assert counted < 20 * len(keys)  # to the end each time it would be some hundred times as many


def test_services_larger_than_a_page_cost_no_long_search_for_the_next_one() -> None:
    keys = sorted(KEYS.spec(f"{name}.{n:05}") for name in ("a", "billing", "cart", "z") for n in range(500))
    _, pages, _ = walked(keys)
    assert pages < 2 * len(keys) / LIMIT


def test_wide_gaps_between_keys_cost_few_pages() -> None:
    keys = [KEYS.prefix + name + bytes((i,)) for name in (b"a" * 30, b"b" * 30, b"z" * 40) for i in range(100)]
    _, pages, counted = walked(keys)
    assert pages < 3 * 48
    assert counted < 10 * len(keys)


class RemoteStore(MemoryStore):
    """A store whose requests need some turns of the loop before they are sent, as gRPC's do; `sent` counts them."""

    sent = 0

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False) -> StorePage:
        for _ in range(5):
            await asyncio.sleep(0)
        self.sent += 1
        return await super().page(start, end, revision=revision, limit=limit, keys_only=keys_only)


async def test_the_next_page_is_requested_before_the_current_one_is_processed() -> None:
    """Processing a page holds the loop: a request not sent before then waits until it is done."""
    store = RemoteStore()
    for first in range(0, 1_500, 100):
        puts = tuple((KEYS.spec(f"i{number:04}"), b"") for number in range(first, first + 100))
        await store.commit((), [Write((), puts)], 5.0)

    sent, found = [], 0
    async for records, _ in listing(store, KEYS.prefix, KEYS.end):
        sent.append(store.sent)
        found += len(records)

    assert found == 1_500
    assert sent[0] == 2
    assert sent[-1] == store.sent
