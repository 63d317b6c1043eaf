"""The queue of one watch stream, and the cut-off that keeps a slow reader from harming anyone but itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

# Besides the encoded events: of a delivery, of each event in it, and of its place in one watcher's queue.
_DELIVERY_BYTES, _EVENT_BYTES, _PLACE_BYTES = 300, 60, 16

_EARLY: Final = 0.01  # of an interval: timers may fire a little early, which must not make one moment ring twice


class Delivery:
    """The encoded events of one version, for one filter; shared by all its watchers.

    Attributes:
        size_bytes: of the events as they are sent.
        held_bytes: the memory it takes while somebody still has to read it.
        holders: how many still have to.
    """

    __slots__ = ("collapsed", "events", "held_bytes", "holders", "size_bytes", "version")

    def __init__(self, version: int, events: Sequence[bytes], collapsed: bool) -> None:
        self.version, self.events, self.collapsed = version, events, collapsed
        self.size_bytes = sum(map(len, events))
        self.held_bytes = self.size_bytes + len(events) * _EVENT_BYTES + _DELIVERY_BYTES
        self.holders = 0


class Backlog:
    """Bytes that all watchers together still have to read. `size_bytes`: a delivery that many hold counts once."""

    __slots__ = ("size_bytes",)

    def __init__(self) -> None:
        self.size_bytes = 0

    def hold(self, delivery: Delivery) -> None:
        """Count one more watcher that has the delivery in its queue."""
        self.size_bytes += _PLACE_BYTES if delivery.holders else _PLACE_BYTES + delivery.held_bytes
        delivery.holders += 1

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Count one watcher less that has these in its queue."""
        for delivery in deliveries:
            delivery.holders -= 1
            self.size_bytes -= _PLACE_BYTES if delivery.holders else _PLACE_BYTES + delivery.held_bytes


Tell = Callable[[list["Watcher"]], list["Watcher"]]


class Alarm:
    """Rings for all who wait, at regular moments, so that nobody waits longer than one interval.

    What the watchers of one connection send then goes out in one piece.
    """

    def __init__(self, every_s: float, phase: float = 0.0, tell: Tell = lambda asleep: asleep) -> None:
        """`phase`: from 0 to 1: by which part of the interval its moments are shifted against those of other alarms.

        `tell` sends the readers of sleeping watchers their message, and returns those to wake, where it could not.
        """
        self._every_s, self._phase_s, self._tell = every_s, phase * every_s, tell
        self._waiting: dict[Watcher, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start_ringing(self, watcher: Watcher, loop: asyncio.AbstractEventLoop) -> None:
        """Ring for a watcher at the next moment, and at every later one while it stays asleep."""
        self._waiting[watcher] = None
        if self._timer is None:
            left_s = self._every_s and self._every_s - (loop.time() - self._phase_s) % self._every_s
            if left_s < _EARLY * self._every_s:
                left_s += self._every_s
            self._timer = loop.call_later(left_s, self._ring, loop)

    def unset(self, watcher: Watcher) -> None:
        """Do not ring for a watcher any more."""
        self._waiting.pop(watcher, None)
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, waiting = None, [*self._waiting]
        self.start_ringing(waiting[0], loop)
        for watcher in self._tell([one for one in waiting if one.is_asleep]):
            watcher.wake()


class Watcher:
    """The queue of one watch stream.

    Attributes:
        reader: what the alarm's `tell` has to know of the reader.
        is_resumed: it went on from a token, and had no snapshot here.
        lost: why continuity is lost; empty: it is not. A lost watcher holds nothing and gets nothing.
        snapshot: encoded instances that are still to be sent before anything that is queued.
        unread_bytes: of what is queued.
    """

    __slots__ = (
        "_backlog",
        "_max_bytes",
        "_pending",
        "_waiting",
        "is_resumed",
        "lost",
        "reader",
        "snapshot",
        "unread_bytes",
    )

    def __init__(self, backlog: Backlog, max_bytes: int, snapshot: Iterator[list[bytes]]) -> None:
        self.reader: Any = None
        self.is_resumed = False
        self.lost = ""
        self.snapshot = snapshot
        self.unread_bytes = 0
        self._backlog, self._max_bytes = backlog, max_bytes
        self._pending: list[Delivery] = []  # no deque: an empty one takes 600 bytes, and most are empty
        self._waiting: asyncio.Future[None] | None = None

    def push(self, delivery: Delivery) -> None:
        """Queue events, or give up on this watcher if it has too much to read already."""
        if self.lost:
            return
        # A single delivery is let through, however large: a watch that starts over would get it all the same.
        if self._pending and self.unread_bytes + delivery.held_bytes > self._max_bytes:
            self.lose(f"this watch is behind by more than {self._max_bytes} bytes")
            return
        self._pending.append(delivery)
        self.unread_bytes += delivery.held_bytes
        self._backlog.hold(delivery)
        self.wake()

    def is_behind(self, version: int) -> bool:
        """Whether it has yet to read something older than this version."""
        return bool(self._pending) and self._pending[0].version < version

    def lose(self, reason: str) -> None:
        """Continuity is broken: drop what is queued and say so to the reader."""
        self.lost = reason
        self.drop()
        self.wake()

    def drop(self) -> None:
        """Hold nothing any more."""
        self._backlog.release(self._pending)
        self._pending = []
        self.unread_bytes = 0
        self.snapshot = iter(())

    def wake(self) -> None:
        """Let the reader check for changes, e.g. because the replica shuts down."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    @property
    def is_asleep(self) -> bool:
        """Whether the reader waits, and nothing has happened that it will wake for."""
        return self._waiting is not None and not self._waiting.done()

    async def wait(self, alarm: Alarm) -> None:
        """Return when there is something to send, or something to look at, or when the alarm wakes it."""
        if self._pending or self.lost:
            return
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        alarm.start_ringing(self, loop)
        try:
            await self._waiting
        finally:
            alarm.unset(self)
            self._waiting = None

    def take(self, size_bytes: int) -> list[Delivery]:
        """The oldest that are queued, until they have about this size; all collapsed, or none."""
        count = 0
        for delivery in self._pending:
            if size_bytes <= 0 or delivery.collapsed != self._pending[0].collapsed:
                break
            size_bytes -= delivery.size_bytes
            count += 1
        if not count:
            return []
        taken = self._pending[:count]
        del self._pending[:count]
        self.unread_bytes -= sum(delivery.held_bytes for delivery in taken)
        self._backlog.release(taken)
        return taken
