"""Reports of many supervisors in one call to HQ: each is sent once, and answered when HQ has answered."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Any, Final, NamedTuple

from instancectl.hostagent.upstream import UpstreamError
from serving.clock import Clock
from serving.errors import OutcomeUnknown, ServiceError

MOST_ITEMS: Final = 1_000  # of one call
_MOST_BYTES: Final = 3 * 1024 * 1024  # of one call, which takes 4 MiB
_LONGEST_LINGER: Final = 10  # times `linger_s`, while more come
_FIELD_1: Final = b"\x0a"  # the tag of `repeated ... = 1`, with a length
Key = tuple[str, str]  # instance and revision
Send = Callable[[bytes, float], Awaitable[bytes]]  # raises UpstreamError
Read = Callable[[bytes], Sequence[Any]]


class _Item:
    """One message that waits, or is on its way."""

    __slots__ = ("answer", "deadline", "is_sent", "key", "message")

    def __init__(self, key: Key, message: bytes, deadline: float, answer: asyncio.Future[Any]) -> None:
        self.key, self.message, self.deadline, self.answer = key, message, deadline, answer
        self.is_sent = False


class Placed(NamedTuple):
    """An item's result, and its place in the call that it went with."""

    result: Any
    place: int


class Gathering:
    """Batches messages that arrive within `linger_s` of one another; each revision has at most one message in flight.

    On a busy machine, messages that were sent at one moment arrive one after the other: so a batch waits while more
    come, for ten times `linger_s` at most.
    """

    def __init__(self, send: Send, read: Read, clock: Clock, linger_s: float) -> None:
        """`send` sends an encoded request whose field 1 lists the messages; `read` gives the results in that order."""
        self._send, self._read, self._clock, self._linger_s = send, read, clock, linger_s
        self._waiting: deque[_Item] = deque()
        self._held: dict[Key, asyncio.Future[None]] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def add(self, key: Key, message: bytes, deadline: float) -> Placed:
        """Send a message in a batch; return HQ's answer to it. Raises ServiceError."""
        loop = asyncio.get_running_loop()
        while (earlier := self._held.get(key)) is not None:
            await asyncio.wait([earlier])
        self._held[key] = loop.create_future()
        item = _Item(key, message, deadline, loop.create_future())
        self._waiting.append(item)
        if self._timer is None:
            self._wait_for_more(loop.time() + _LONGEST_LINGER * self._linger_s)
        try:
            placed: Placed = await item.answer
            return placed
        finally:
            if not item.is_sent:
                self._release(item)

    async def drain(self) -> None:
        """Return when everything that was added is answered."""
        if self._timer is not None:
            self._flush()
        while self._calls:
            await asyncio.wait(self._calls)

    def _wait_for_more(self, latest: float) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._linger_s, self._flush_unless_more_come, len(self._waiting), latest)

    def _flush_unless_more_come(self, seen: int, latest: float) -> None:
        if len(self._waiting) > seen and asyncio.get_running_loop().time() < latest:
            self._wait_for_more(latest)
        else:
            self._flush()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            items = self._next()
            if items:
                # A context of its own: otherwise it would carry the request id and trace of the first caller.
                task = asyncio.create_task(self._call(items), name="a call for many", context=Context())
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)

    def _next(self) -> list[_Item]:
        """The next batch: as many requests as fit in one call, without those whose callers are gone."""
        items: list[_Item] = []
        size = 0
        while self._waiting and len(items) < MOST_ITEMS:
            item = self._waiting[0]
            if items and size + len(item.message) > _MOST_BYTES:
                break
            self._waiting.popleft()
            if not item.answer.done():
                item.is_sent = True
                items.append(item)
                size += len(item.message)
        return items

    async def _call(self, items: list[_Item]) -> None:
        request = b"".join([encode_batch_item(item.message) for item in items])
        try:
            results = self._read(await self._send(request, max(item.deadline for item in items)))
            for index, (item, result) in enumerate(zip(items, results, strict=True)):
                if not item.answer.done():
                    item.answer.set_result(Placed(result, index))
        except UpstreamError as failed:
            _fail(items, failed.service_error)
        except Exception as error:
            text = f"HQ's response is invalid: {error}; it may or may not be stored"
            _fail(items, lambda: OutcomeUnknown(text))
        finally:
            _fail(items, lambda: OutcomeUnknown("the host agent is stopping; it may or may not be stored"))
            for item in items:
                self._release(item)

    def _release(self, item: _Item) -> None:
        held = self._held.pop(item.key)
        held.set_result(None)


def encode_batch_item(message: bytes) -> bytes:
    """A message encoded as an item of a batch."""
    return _FIELD_1 + _varint(len(message)) + message


def _fail(items: list[_Item], error: Callable[[], ServiceError]) -> None:
    for item in items:
        if not item.answer.done():
            item.answer.set_exception(error())


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


class ReportRhythm:
    """When the supervisors of a node report next: all at the same moment, so that their heartbeats share one call.

    A supervisor may be told an earlier time than HQ said, never a later one. Those asked to report at intervals that
    differ by more than a factor of two have moments of their own, so that long intervals stay long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_at: dict[int, float] = {}  # by the binary logarithm of the interval

    def next_s(self, hint_s: float) -> float:
        """Seconds until a supervisor that is answered now shall report again; `hint_s`: HQ's own hint."""
        now, scale = self._clock.now(), math.frexp(hint_s)[1]
        next_at = self._next_at.get(scale, 0.0)
        if next_at <= now or next_at > now + hint_s:
            next_at = self._next_at[scale] = now + hint_s
        return next_at - now
