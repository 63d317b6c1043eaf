"""Callers that wait for a version."""

from __future__ import annotations

import asyncio
import heapq


class Waiters:
    """Waiters by version. Those that gave up are forgotten: nobody can fill memory by asking for a far version."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = 0
        self._gone = 0

    def __len__(self) -> int:
        return len(self._heap) - self._gone

    async def wait_for(self, version: int) -> None:
        """Return when `reached` is called with this version or a later one. Raises the error that `fail` is given."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(self._heap, (version, self._arrivals, future))
        try:
            await future
        finally:
            if future.cancelled():
                self._forget_one()

    def on_version_reached(self, version: int) -> None:
        """Wake all who wait for this version or an older one."""
        while self._heap and self._heap[0][0] <= version:
            future = heapq.heappop(self._heap)[2]
            if future.done():
                self._gone -= 1
            else:
                future.set_result(None)

    def fail(self, error: Exception) -> None:
        """Give everyone the error: no version will come."""
        heap, self._heap, self._gone = self._heap, [], 0
        for _, _, future in heap:
            if not future.done():
                future.set_exception(error)

    def _forget_one(self) -> None:
        self._gone += 1
        if self._gone > len(self._heap) // 2:
            self._heap = [waiting for waiting in self._heap if not waiting[2].done()]
            heapq.heapify(self._heap)
            self._gone = 0
