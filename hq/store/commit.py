"""Group commit: writes that wait at the same moment share one transaction.

Each write is a nested transaction with its own conditions, so a conflict fails one writer only. What etcd demands, and
what was tried (the design's storage page has the figures):

- Nested conditions see the state before the whole transaction, and two writes to one key reject all of it: at most one
  write per instance goes into a transaction.
- A transaction without an answer may have taken place, and may still do so through another member minutes later. A
  fence does not settle that. A changed session word does: every transaction compares it, so once the change has come
  back through the watch, what has not come never will, and the write ids tell what did.
- A deletion carries no write id. So each transaction puts a word under a key of this replica's own; where that word
  came, the transaction took place, and so did each of its deletions that came with it.
- etcd checks its quota against top-level puts only. The same word, put at the top level, lets a full etcd refuse; it is
  nested, and so let through, where a group only deletes: that is how an operator makes room.

One transaction is under way at a time: while it is, the next one gathers.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from hq.clock import Clock
from hq.errors import DeadlineExceeded, HqError, OutcomeUnknown, Overloaded, StoreUnavailable, TooLarge
from hq.store.epoch import Epoch
from hq.store.keys import COMMITS, Keys
from hq.store.port import (
    Applied,
    Batch,
    Compare,
    NoSpace,
    Refused,
    Rejected,
    Store,
    Unavailable,
    UnknownOutcome,
    Write,
)
from hq.store.session import Session
from hq.store.words import encode_word, new_word, word_of

log = logging.getLogger(__name__)

MAX_WRITES = 100
MAX_BYTES = 1 << 20
LINGER_S, PAUSE_S = 0.01, 0.001


class Conflict(Exception):
    """A condition of the write did not hold; nothing was stored. `modified`: where the compared keys stand."""

    def __init__(self, modified: dict[bytes, int]) -> None:
        super().__init__("a condition did not hold")
        self.modified = modified


@dataclass(eq=False, slots=True)
class _Item:
    """A write on its way."""

    subject: str
    write: Write
    write_id: int
    deadline: float
    done: asyncio.Future[int]
    guards: tuple[Compare, ...] = ()
    sent: bool = False
    seen_at: int = 0


@dataclass(eq=False, slots=True)
class _Flight:
    """The transaction under way, and what the watch has brought of it already."""

    items: list[_Item]
    word: int = 0
    by_key: dict[bytes, _Item] = field(default_factory=dict)
    deletions: dict[bytes, _Item] = field(default_factory=dict)


class Committer:
    """Takes writes, answers each after its commit, and never guesses.

    Attributes:
        groups, writes: how many transactions and writes were committed; for metrics.
        unknown: how many transactions had an unknown outcome that was settled.
    """

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: str,
        epoch: Epoch,
        session: Session,
        clock: Clock,
        rng: random.Random,
        *,
        timeout_s: float = 5.0,
        queue_limit: int = 20_000,
    ) -> None:
        self._store, self._epoch, self._session, self._clock, self._rng = store, epoch, session, clock, rng
        self._mark_key = keys.of(COMMITS, replica)
        self._timeout_s, self._queue_limit = timeout_s, queue_limit
        self._queue: list[_Item] = []
        self._arrived = asyncio.Event()
        self._flight: _Flight | None = None
        self._busy = False
        self.groups = self.writes = self.unknown = 0

    async def commit(
        self,
        subject: str,
        write: Write,
        write_id: int,
        deadline: float,
        guards: tuple[Compare, ...] = (),
    ) -> int:
        """Store a write; return its version.

        Args:
            subject: the instance; writes of one subject never share a transaction.
            write_id: stands at the head of every value that the write puts; 0 if it puts none.
            deadline: on the injected clock.
            guards: conditions on the whole transaction; such a write goes only with others of equal guards.

        Raises:
            Conflict: a condition did not hold.
            DeadlineExceeded, StoreUnavailable, StoreFull, Overloaded, TooLarge: nothing was stored.
            OutcomeUnknown: the deadline came before the outcome was settled.
        """
        if len(self._queue) >= self._queue_limit:
            raise Overloaded("too many writes are waiting for the store")
        item = _Item(subject, write, write_id, deadline, asyncio.get_running_loop().create_future(), guards)
        self._queue.append(item)
        self._arrived.set()
        try:
            async with asyncio.timeout(max(0.0, deadline - self._clock.now())):
                return await asyncio.shield(item.done)
        except TimeoutError:
            if item.sent:
                raise OutcomeUnknown(f"the store has not said yet whether the write of {subject} took place") from None
            raise DeadlineExceeded(f"the store was not reached in time; nothing of {subject} was stored") from None
        finally:
            if not item.sent and item in self._queue:
                self._queue.remove(item)

    def observe(self, batch: Batch) -> None:
        """Events came through the watch: note what they tell of the transaction under way."""
        flight = self._flight
        if flight is None:
            return
        for change in batch.changes:
            if change.value is not None:
                item = flight.by_key.get(change.key)
                if item is not None and item.write_id and item.write_id == word_of(change.value):
                    item.seen_at = change.revision
                elif change.key == self._mark_key and word_of(change.value) == flight.word:
                    self._observe_deletions(flight, batch, change.revision)

    @staticmethod
    def _observe_deletions(flight: _Flight, batch: Batch, revision: int) -> None:
        for change in batch.changes:
            if change.revision == revision and change.value is None and change.key in flight.deletions:
                flight.deletions[change.key].seen_at = revision

    def forget(self) -> None:
        """The history is another one: versions that waiting writes compare mean nothing in it."""
        self._session.doubt()
        waiting, self._queue = self._queue, []
        _fail(waiting, StoreUnavailable("the store was replaced; nothing was stored"))

    async def run(self) -> None:
        """Commit for ever."""
        while True:
            await self._arrived.wait()
            await self._joined()
            items = self._take()
            self._busy = len(items) > 1
            if not self._queue:
                self._arrived.clear()
            if items:
                await self._commit_group(items)

    async def _joined(self) -> None:
        """Let calls that arrive together join the same transaction; a writer who is alone does not wait for others.

        Among many, wait while more keep coming: their calls need some turns of the loop each to get here.
        """
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        until = loop.time() + LINGER_S
        waiting = 0
        while (self._busy or len(self._queue) > 1) and waiting < len(self._queue) < MAX_WRITES and loop.time() < until:
            waiting = len(self._queue)
            await asyncio.sleep(PAUSE_S)

    def _take(self) -> list[_Item]:
        """The next group: in order of arrival, one per subject, equal guards, within etcd's limits."""
        group: list[_Item] = []
        left: list[_Item] = []
        subjects: set[str] = set()
        size = 0
        for item in self._queue:
            full = len(group) >= MAX_WRITES or (group and size + item.write.size_bytes > MAX_BYTES)
            if full or item.subject in subjects or (group and item.guards != group[0].guards):
                left.append(item)
                subjects.add(item.subject)  # a later write of the same subject must not overtake
                continue
            if item.done.done():
                continue
            group.append(item)
            subjects.add(item.subject)
            size += item.write.size_bytes
        self._queue = left
        return group

    async def _commit_group(self, items: list[_Item]) -> None:
        flight = _Flight(items)
        for item in items:
            item.sent = True
            flight.by_key.update((key, item) for key, _ in item.write.puts)
            flight.deletions.update((key, item) for key in item.write.deletes)
        self._flight = flight
        try:
            await self._try_group(flight)
        except UnknownOutcome as error:
            await self._settle(flight, error)
        except Rejected as error:
            await self._one_by_one(items, error)
        except HqError as error:
            _fail(items, error)
        finally:
            self._flight = None

    async def _try_group(self, flight: _Flight) -> None:
        items = flight.items
        await self._session.ready(self._timeout_s)
        writes = [item.write for item in items]
        flight.word = new_word(self._rng)
        always = () if flight.by_key else (Compare(self._mark_key, "modified", -1, ">"),)
        writes.append(Write(always, ((self._mark_key, encode_word(flight.word)),)))
        guards = (self._epoch.guard(), self._session.guard(), *items[0].guards)
        commit = await self._store.commit(guards, writes, self._timeout_s)
        if not commit.guarded:
            # Which guard it was matters to nobody: nothing took place.
            self._session.doubt()
            _fail(items, Guarded())
            return
        self.groups += 1
        for item, outcome in zip(items, commit.outcomes, strict=False):
            self._answer(item, outcome, commit.revision)

    def _answer(self, item: _Item, outcome: Applied | Refused, revision: int) -> None:
        if item.done.done():
            return
        if isinstance(outcome, Applied):
            self.writes += 1
            item.done.set_result(revision)
        else:
            item.done.set_exception(Conflict(outcome.modified))

    async def _one_by_one(self, items: Sequence[_Item], error: Rejected) -> None:
        """The group was rejected as a whole: one bad write must cost itself only."""
        if len(items) == 1:
            _fail(items, TooLarge(f"the store refused the write: {error}"))
            return
        for item in items:
            await self._commit_group([item])

    async def _settle(self, flight: _Flight, error: UnknownOutcome) -> None:
        """Find out what became of a transaction without an answer: change the session, wait until that came back."""
        log.warning("outcome of %d writes unknown (%s): changing the session", len(flight.items), error)
        self.unknown += 1
        epoch = self._epoch.current
        await self._session.change()
        if self._epoch.current != epoch:
            self.forget()
            _fail(
                [item for item in flight.items if not item.seen_at],
                OutcomeUnknown("the store was replaced meanwhile"),
            )
        again: list[_Item] = []
        for item in flight.items:
            if item.done.done():
                continue
            if item.seen_at:
                self.writes += 1
                item.done.set_result(item.seen_at)
            else:
                item.sent = False
                again.append(item)
        self._queue = again + self._queue
        self._arrived.set()


class Guarded(StoreUnavailable):
    """The epoch, the session or a guard of the caller's own was not as expected; nothing was stored."""

    reason = "GUARDED"

    def __init__(self) -> None:
        super().__init__("the store moved on under this write; nothing was stored", retry_delay_s=0.1)


def _fail(items: Sequence[_Item], error: HqError) -> None:
    for item in items:
        if not item.done.done():
            item.done.set_exception(type(error)() if isinstance(error, Guarded) else _copy(error))
            item.done.exception()  # the caller may be gone


def _copy(error: HqError) -> HqError:
    """An exception of its own for each caller: raising one object in many tasks mixes their tracebacks up."""
    if isinstance(error, NoSpace | Unavailable | StoreUnavailable | TooLarge):
        return type(error)(str(error))
    return error
