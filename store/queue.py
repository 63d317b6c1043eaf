"""Writes that wait for the next transaction, in order of arrival."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress

from store.flight import Item

MAX_WRITES = 100
MAX_BYTES = 1 << 20
LINGER_S, PAUSE_S = 0.03, 0.003
PLENTY = 32  # writes; fewer wait for company


class Queue:
    """What waits. Items whose callers have gone are left out of groups."""

    def __init__(self) -> None:
        self._items: dict[Item, None] = {}
        self._arrived = asyncio.Event()
        self._plenty = asyncio.Event()
        self._among_many = False

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(list(self._items))

    def add(self, item: Item) -> None:
        self._items[item] = None
        self._arrived.set()
        if len(self._items) >= PLENTY:
            self._plenty.set()

    def drop(self, item: Item) -> None:
        """It waits no more, if it did."""
        self._items.pop(item, None)

    def put_back(self, items: Iterable[Item]) -> None:
        """They go first, for they came first."""
        self._items = {item: None for item in (*items, *self._items) if not item.done.done()}
        self._arrived.set()

    def clear(self) -> list[Item]:
        """Return what waited."""
        items, self._items = list(self._items), {}
        return items

    async def group(self) -> list[Item]:
        """Wait for the next group and take it out; empty if all callers went away."""
        await self._arrived.wait()
        await asyncio.sleep(0)  # whoever asks again and again must not keep the loop from callers who want to leave
        if len(self) < PLENTY:
            await self._joined()
        group = self._take()
        self._among_many = len(group) > 1
        if not self._items:
            self._arrived.clear()
        return group

    async def _joined(self) -> None:
        """Let calls that arrive together join the same transaction; a writer who is alone does not wait for others.

        Among many, wait while more keep coming: their calls need some turns of the loop each to get here. But no longer
        than until plenty are here: the others are received and answered while the store is busy with these.
        """
        loop = asyncio.get_running_loop()
        self._plenty.clear()
        until = loop.time() + LINGER_S
        before = 0
        while (self._among_many or len(self) > 1) and before < len(self) < PLENTY and loop.time() < until:
            before = len(self)
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_S):
                    await self._plenty.wait()

    def _take(self) -> list[Item]:
        """In order of arrival, one per subject, equal guards, within etcd's limits."""
        group: list[Item] = []
        subjects: set[str] = set()
        size = 0
        for item in self._items:
            if group and (len(group) >= MAX_WRITES or size + item.write.size_bytes > MAX_BYTES):
                break
            alike = not group or item.guards == group[0].guards
            if alike and item.subject not in subjects and not item.done.done():
                group.append(item)
                size += item.write.size_bytes
            subjects.add(item.subject)  # also when left: a later write of the same subject must not overtake
        for item in group:
            del self._items[item]
        return group
