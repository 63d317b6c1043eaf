"""Writes on their way: those that wait for the next transaction, those in it, and what the watch has brought of it.

A put is recognized by the write id at the head of its value. A deletion carries none, so each transaction puts a word
under a key of this replica's own: if the word comes, the transaction was stored, and with it each deletion that comes
at the word's revision. The same holds for puts without a write id.

The word has a second use. etcd checks its quota against top-level puts only: as such a put, the word lets a full etcd
refuse the transaction. If the group only deletes, the word is nested, too: etcd 3.4 lets that through, so that room can
be made (3.5.1 does not: once it is full it refuses all).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass

from store.keys import encode_word, word_of
from store.port import Batch, Compare, Record, StoreError, Unavailable, UnknownOutcome, Write

MAX_WRITES = 100
MAX_BYTES = 1 << 20
LINGER_S, PAUSE_S = 0.03, 0.003
PLENTY = 32  # writes; a smaller group waits for more


class Conflict(Exception):
    """A condition of the write did not hold; nothing was stored. `modified`: the revisions of the compared keys."""

    def __init__(self, modified: dict[bytes, int]) -> None:
        super().__init__("a condition did not hold")
        self.modified = modified


class Guarded(Unavailable):
    """The epoch, the session or a guard of the caller's own was not as expected; nothing was stored."""


class TimedOut(StoreError):
    """The caller's deadline came first; nothing was stored."""


class QueueFull(StoreError):
    """Too many writes wait; nothing was stored."""


class Closed(StoreError):
    """This process is shutting down; nothing was stored."""


@dataclass(eq=False, slots=True)
class QueuedWrite:
    """A write on its way.

    Attributes:
        touched: keys that no other write of a transaction may touch; empty: only its subject counts.
        done: its version, or why there is none; done already if the caller has gone.
        sent: it is in a transaction that may take place.
        seen_at: the version at which the watch brought it; 0: it did not.
    """

    subject: str
    write: Write
    write_id: int
    guards: tuple[Compare, ...]
    done: asyncio.Future[int]
    touched: Collection[bytes] = ()
    sent: bool = False
    seen_at: int = 0

    @property
    def keys(self) -> Iterable[bytes]:
        return [key for key, _ in self.write.puts] + list(self.write.deletes)

    def answer(self, version: int) -> None:
        if not self.done.done():
            self.done.set_result(version)

    def fail(self, error: Exception) -> None:
        """Answer with an error of the caller's own: one object raised in several tasks mixes their tracebacks up."""
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # the caller may be gone by the time it would look

    def expire(self) -> None:
        """Fail the write: the caller's deadline has passed."""
        if self.sent:
            self.fail(UnknownOutcome(f"unknown so far whether the write of {self.subject} was stored"))
        else:
            self.fail(TimedOut(f"the store did not respond in time; nothing of {self.subject} was stored"))


class Queue:
    """Waiting items. Those whose callers have gone are left out of groups."""

    def __init__(self) -> None:
        self._items: dict[QueuedWrite, None] = {}
        self._arrived = asyncio.Event()
        self._plenty = asyncio.Event()
        self._among_many = False

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[QueuedWrite]:
        return iter(list(self._items))

    def add(self, item: QueuedWrite) -> None:
        self._items[item] = None
        self._arrived.set()
        if len(self._items) >= PLENTY:
            self._plenty.set()

    def drop(self, item: QueuedWrite) -> None:
        """Take a write out, if it still waits."""
        self._items.pop(item, None)

    def put_back(self, items: Iterable[QueuedWrite]) -> None:
        """Put writes in front again: they came first."""
        self._items = {item: None for item in (*items, *self._items) if not item.done.done()}
        self._arrived.set()

    def clear(self) -> list[QueuedWrite]:
        """Take out and return all that waited."""
        items, self._items = list(self._items), {}
        return items

    async def group(self) -> list[QueuedWrite]:
        """Wait for the next group and take it out; empty if all callers went away."""
        await self._arrived.wait()
        await asyncio.sleep(0)  # a caller that keeps writing must not keep the loop from callers that want to leave
        if len(self) < PLENTY:
            await self._wait_for_joiners()
        group = self._take()
        self._among_many = len(group) > 1
        if not self._items:
            self._arrived.clear()
        return group

    async def _wait_for_joiners(self) -> None:
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

    def _take(self) -> list[QueuedWrite]:
        """Take writes in order of arrival, one per subject and with equal guards, within etcd's limits."""
        group: list[QueuedWrite] = []
        taken: set[str | bytes] = set()
        size = 0
        for item in self._items:
            if group and (len(group) >= MAX_WRITES or size + item.write.size_bytes > MAX_BYTES):
                break
            alike = not group or item.guards == group[0].guards
            touched = item.touched or (item.subject,)
            if alike and taken.isdisjoint(touched) and not item.done.done():
                group.append(item)
                size += item.write.size_bytes
            taken.update(touched)  # also if left out: a later write of the same subject must not overtake it
        for item in group:
            del self._items[item]
        return group


class InFlightTxn:
    """The transaction under way.

    Attributes:
        blind: events may have been missed, so what was not seen may still have taken place.
    """

    def __init__(self, items: Sequence[QueuedWrite], word_key: bytes, word: int) -> None:
        self.items = items
        self.blind = False
        self._word_key, self._word = word_key, word
        self._by_key: dict[bytes, QueuedWrite] = {}
        self._nameless: dict[bytes, QueuedWrite] = {}
        for item in items:
            item.sent = True
            named = [key for key, _ in item.write.puts] if item.write_id else []
            self._by_key.update((key, item) for key in named)
            self._nameless.update((key, item) for key in item.keys if key not in named)

    def writes(self) -> list[Write]:
        """Writes in the order of the items, and one more for the word after them."""
        writes = [item.write for item in self.items]
        puts = any(write.puts for write in writes)
        always_true = () if puts else (Compare(self._word_key, "modified", -1, ">"),)
        return [*writes, Write(always_true, ((self._word_key, encode_word(self._word)),))]

    def stands_in(self, record: Record | None) -> bool:
        """Whether the word, just read, says that the transaction was stored."""
        return record is not None and word_of(record.value) == self._word

    def call_off(self) -> None:
        """Mark the items as not sent: the transaction certainly did not take place."""
        for item in self.items:
            item.sent = False

    def settle(self) -> list[QueuedWrite]:
        """Answer the writes that the watch showed, now that it has brought all; return those certainly not stored."""
        again = []
        for item in self.items:
            if item.seen_at:
                item.answer(item.seen_at)
            elif self.blind:
                item.fail(UnknownOutcome("the watch on the store was lost before this write was seen"))
            else:
                again.append(item)
        return again

    def observe(self, batch: Batch, *, collapsed: bool) -> None:
        """Note which writes a batch shows. A collapsed one proves those, but hides writes that were overwritten."""
        self.blind |= collapsed
        for change in batch.changes:
            item = self._by_key.get(change.key)
            if item is not None and change.value is not None and word_of(change.value) == item.write_id:
                item.seen_at = change.revision
            elif change.key == self._word_key and word_of(change.value or b"") == self._word and not collapsed:
                self._observe_nameless(batch, change.revision)

    def _observe_nameless(self, batch: Batch, revision: int) -> None:
        for change in batch.changes:
            item = self._nameless.get(change.key)
            if item is not None and change.revision == revision:
                item.seen_at = revision


def fail(items: Iterable[QueuedWrite], error: StoreError) -> None:
    """Fail all of them, each with a copy of the error."""
    for item in items:
        item.fail(copy(error))
