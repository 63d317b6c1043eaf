"""The clock of a simulation, and what serves in it: one thing after the other."""

from __future__ import annotations

import heapq
from collections.abc import Callable


class EventQueue:
    """Events in the order of time. `now`: seconds since the beginning."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, time_s: float, action: Callable[[], None]) -> None:
        """Do an action at a time; those for the same time are done in the order in which they were added."""
        self._count += 1
        heapq.heappush(self._events, (max(time_s, self.now), self._count, action))

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        self.at(self.now + delay_s, action)

    def run(self, until_s: float) -> None:
        """Do everything up to that moment; return earlier if nothing is left to do."""
        while self._events and self._events[0][0] <= until_s:
            self.now, _, action = heapq.heappop(self._events)
            action()


class ServingLine:
    """A core or a network link: jobs wait for those before them.

    Attributes:
        share: what its steady load leaves of it; a job takes its work divided by this.
        busy_s: what the jobs took, without waiting.
        longest_wait_s: from when a job came until it was done.
        waiting: jobs that are not done.
    """

    def __init__(self, queue: EventQueue, share: float = 1.0) -> None:
        self.share = max(share, 0.01)
        self.busy_s = self.longest_wait_s = 0.0
        self.waiting = 0
        self._queue = queue
        self._free_at = 0.0

    def add(self, work_s: float) -> float:
        """Take a job; return when it will be done."""
        now = self._queue.now
        self._free_at = max(now, self._free_at) + work_s / self.share
        self.busy_s += work_s
        self.longest_wait_s = max(self.longest_wait_s, self._free_at - now)
        self.waiting += 1
        self._queue.at(self._free_at, self._finish)
        return self._free_at

    def wait_s(self) -> float:
        """How long a job that came now would wait for others."""
        return max(0.0, self._free_at - self._queue.now)

    def _finish(self) -> None:
        self.waiting -= 1
