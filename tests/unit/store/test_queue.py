"""Which writes wait for others before a transaction, and which do not."""

from __future__ import annotations

import asyncio

from store.flight import PAUSE_S, PLENTY, Queue, QueuedWrite
from store.port import Write
from tests.support.virtual_time import in_virtual_time


def add(queue: Queue, *numbers: int) -> None:
    for number in numbers:
        key = f"{number}".encode()
        done = asyncio.get_running_loop().create_future()
        queue.add(QueuedWrite(f"{number}", Write((), ((key, b""),)), number, (), done))


async def grouped(queue: Queue) -> tuple[int, float]:
    """Wait for the next group; return its size and the seconds waited."""
    began = asyncio.get_running_loop().time()
    return len(await queue.group()), asyncio.get_running_loop().time() - began


@in_virtual_time
async def test_a_single_write_does_not_wait() -> None:
    queue = Queue()
    add(queue, 1)
    assert await grouped(queue) == (1, 0)


@in_virtual_time
async def test_writes_that_come_a_moment_later_join_the_group() -> None:
    queue = Queue()
    add(queue, 1, 2)
    asyncio.get_running_loop().call_later(PAUSE_S / 2, add, queue, 3, 4)
    assert (await grouped(queue))[0] == 4


@in_virtual_time
async def test_a_large_group_does_not_wait_for_more() -> None:
    queue = Queue()
    for _ in range(2):
        add(queue, *range(PLENTY))
        assert await grouped(queue) == (PLENTY, 0)


@in_virtual_time
async def test_a_group_goes_as_soon_as_it_is_large() -> None:
    queue = Queue()
    add(queue, *range(PLENTY - 1))
    asyncio.get_running_loop().call_later(PAUSE_S / 3, add, queue, 100)
    size, waited_s = await grouped(queue)
    assert size == PLENTY
    assert waited_s < PAUSE_S / 2


@in_virtual_time
async def test_after_a_large_group_a_few_writes_still_wait_for_more() -> None:
    queue = Queue()
    add(queue, *range(64))
    await queue.group()
    add(queue, 1)
    asyncio.get_running_loop().call_later(PAUSE_S / 2, add, queue, 2)
    assert (await grouped(queue))[0] == 2


@in_virtual_time
async def test_after_a_group_of_one_a_single_write_does_not_wait() -> None:
    queue = Queue()
    add(queue, *range(64))
    await queue.group()
    add(queue, 1)
    await queue.group()
    add(queue, 2)
    assert await grouped(queue) == (1, 0)


@in_virtual_time
async def test_sixty_four_writes_that_come_one_by_one_make_only_a_few_groups() -> None:
    queue = Queue()
    add(queue, *range(64))
    await queue.group()
    for number in range(64):
        asyncio.get_running_loop().call_later(number * PAUSE_S / 2, add, queue, number)
    sizes: list[int] = []
    while sum(sizes) < 64:
        sizes.append((await grouped(queue))[0])
    assert len(sizes) <= 8
