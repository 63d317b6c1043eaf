"""What one stream has still to send, and the cut that keeps a slow reader from costing anything but itself."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from hq.entry import Entry

_TOGETHER_S: Final = 0.05


class Delivery(NamedTuple):
    """The encoded events of one version, for one filter; shared by all its watchers."""

    version: int
    events: Sequence[bytes]
    size_bytes: int
    collapsed: bool


class Alarm:
    """Wakes each watcher before it has waited longer than this: one timer for thousands of them.

    Those whose time is near wake up together: what they send on one connection goes out in one piece.
    """

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._due: dict[Watcher, float] = {}  # in order, since all wait equally long
        self._timer: asyncio.TimerHandle | None = None

    def set(self, watcher: Watcher) -> None:
        """Wake it when its time has passed."""
        loop = asyncio.get_running_loop()
        self._due[watcher] = due = loop.time() + self._after_s
        if self._timer is None:
            self._timer = loop.call_at(due, self._ring, loop)

    def unset(self, watcher: Watcher) -> None:
        """It waits no longer."""
        self._due.pop(watcher, None)
        if not self._due and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        soon = loop.time() + _TOGETHER_S
        while self._due:
            watcher, due = next(iter(self._due.items()))
            if due > soon:
                self._timer = loop.call_at(due, self._ring, loop)
                return
            del self._due[watcher]
            watcher.wake()
        self._timer = None


class Watcher:
    """What one stream has still to send.

    Attributes:
        lost: why continuity is lost; empty: it is not. A lost watcher holds nothing and gets nothing.
        snapshot: instances that are still to be sent before anything that is queued.
    """

    __slots__ = ("_max_bytes", "_pending", "_pending_bytes", "_waiting", "lost", "snapshot")

    def __init__(self, max_bytes: int) -> None:
        self.lost = ""
        self.snapshot: Iterator[Sequence[Entry]] = iter(())
        self._pending: deque[Delivery] = deque()
        self._pending_bytes = 0
        self._max_bytes = max_bytes
        self._waiting: asyncio.Future[None] | None = None

    def push(self, delivery: Delivery) -> None:
        """Queue events, or give up on this watcher if it has too much to read already."""
        if self.lost:
            return
        self._pending_bytes += delivery.size_bytes
        # What comes in one piece is let through, however large: another life would get it all the same.
        if self._pending_bytes > self._max_bytes and self._pending:
            self.lose(f"this reader fell behind by more than {self._max_bytes} bytes")
            return
        self._pending.append(delivery)
        self.wake()

    def lose(self, reason: str) -> None:
        """Continuity is broken: drop what is queued and say so to the reader."""
        self.lost = reason
        self.snapshot = iter(())
        self._pending.clear()
        self._pending_bytes = 0
        self.wake()

    def wake(self) -> None:
        """Let the reader look around, e.g. because the replica shuts down."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def wait(self, alarm: Alarm) -> None:
        """Return when there is something to send, or something to look at, or when the alarm goes off."""
        if self._pending or self.lost:
            return
        self._waiting = asyncio.get_running_loop().create_future()
        alarm.set(self)
        try:
            await self._waiting
        finally:
            alarm.unset(self)
            self._waiting = None

    def take(self, size_bytes: int) -> list[Delivery]:
        """The oldest that are queued, until they have about this size; all collapsed, or none."""
        taken: list[Delivery] = []
        while self._pending and size_bytes > 0 and self._pending[0].collapsed == (taken or self._pending)[0].collapsed:
            delivery = self._pending.popleft()
            size_bytes -= delivery.size_bytes
            self._pending_bytes -= delivery.size_bytes
            taken.append(delivery)
        return taken
