"""Group commit: writes that wait at the same moment share one transaction.

Each write is a nested transaction with its own conditions, so a conflict fails one writer only. What etcd demands, and
what was tried (the design's storage page has the figures):

- Nested conditions see the state before the whole transaction, and two writes to one key reject all of it: at most one
  write per instance goes into a transaction.
- A transaction without an answer may have taken place, and may still do so through another member minutes later. A
  fence does not settle that. A changed session word does: every transaction compares it, so once the change has come
  back through the watch, a transaction that has not come back never will. flight.py tells which writes have.

One transaction is under way at a time: while it is, the next one gathers.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Sequence

from store.epoch import Epoch
from store.flight import (
    MAX_WRITES,
    Closed,
    Conflict,
    Guarded,
    InFlightTxn,
    Queue,
    QueuedWrite,
    QueueFull,
    TimedOut,
    fail,
)
from store.keys import COMMITS, Keys, new_word
from store.port import (
    Applied,
    Batch,
    Commit,
    Compare,
    NoSpace,
    Rejected,
    Store,
    StoreClock,
    StoreError,
    Unavailable,
    UnknownOutcome,
    Write,
)
from store.session import WriterSession

__all__ = ["MAX_WRITES", "Closed", "Committer", "Conflict", "Guarded", "QueueFull", "TimedOut"]

log = logging.getLogger(__name__)

_CLOSING = "this replica is shutting down"


class Committer:
    """Takes writes, answers each after its commit, and never guesses.

    Attributes:
        grouped: called with how many writes each transaction had; for metrics.
        writes: how many were stored.
        unknown: how many transactions had an unknown outcome that was settled.
    """

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: str,
        epoch: Epoch,
        session: WriterSession,
        clock: StoreClock,
        rng: random.Random,
        *,
        timeout_s: float = 2.5,
        queue_limit: int = 20_000,
        errors: Callable[[StoreError], Exception] = lambda error: error,
    ) -> None:
        """`errors`: makes what callers of `commit` see instead of a StoreError."""
        self._store, self._epoch, self._session, self._clock, self._rng = store, epoch, session, clock, rng
        self._word_key = keys.of(COMMITS, replica)
        self._timeout_s, self._queue_limit, self._errors = timeout_s, queue_limit, errors
        self._queue = Queue()
        self._group: list[QueuedWrite] = []  # taken out of the queue, not all answered yet
        self._flight: InFlightTxn | None = None
        self._closed = False
        self.grouped: Callable[[int], None] = lambda _: None
        self.writes = self.unknown = 0

    async def commit(
        self,
        subject: str,
        write: Write,
        write_id: int,
        deadline: float,
        guards: tuple[Compare, ...] = (),
        touched: Collection[bytes] = (),
    ) -> int:
        """Store a write; return its version.

        Args:
            subject: the instance; writes of one subject never share a transaction.
            write_id: the word at the head of every value that the write puts; 0 if there is none.
            deadline: on the injected clock.
            touched: keys that the write compares or changes, where one subject is not enough to tell which writes may
                share a transaction: conditions see the state before all of it.
            guards: conditions on the whole transaction; such a write goes only with others of equal guards.

        Raises:
            Conflict: a condition did not hold.
            TimedOut, Unavailable, NoSpace, QueueFull, Rejected, Closed: nothing was stored, and nothing will be. They
                come as `errors` makes them.
            UnknownOutcome: it was sent, and the deadline came before its outcome was settled.
        """
        if self._closed:
            raise self._errors(Closed(f"{_CLOSING}; nothing was stored"))
        if len(self._queue) >= self._queue_limit:
            raise self._errors(QueueFull("too many writes are waiting for the store"))
        loop = asyncio.get_running_loop()
        item = QueuedWrite(subject, write, write_id, guards, loop.create_future(), touched)
        self._queue.add(item)
        expiry = loop.call_later(max(0.0, deadline - self._clock.now()), item.expire)
        try:
            return await item.done
        except StoreError as error:
            raise self._errors(error) from None
        finally:
            expiry.cancel()
            self._queue.drop(item)

    def observe(self, batch: Batch, *, collapsed: bool = False) -> None:
        """Note what a batch from the watch tells of the transaction under way."""
        if self._flight is not None:
            self._flight.observe(batch, collapsed=collapsed)

    def forget(self) -> None:
        """Fail the waiting writes: all is read again, perhaps from another history, where their versions are void."""
        self._session.doubt()
        if self._flight is not None:
            self._flight.blind = True
        waiting = [*(item for item in self._group if not item.sent), *self._queue.clear()]
        fail(waiting, Unavailable("the store was replaced; nothing was stored"))

    async def run(self) -> None:
        """Commit for ever."""
        try:
            while True:
                self._group = await self._queue.group()
                await self._commit_group()
        finally:
            self._close()

    def _close(self) -> None:
        self._closed = True
        waiting = [item for item in (*self._group, *self._queue) if not item.sent]
        fail(waiting, Closed(f"{_CLOSING}; nothing was stored"))
        fail(self._group, UnknownOutcome(f"{_CLOSING} before the store has responded"))

    async def _commit_group(self) -> None:
        group = self._group
        refused = await self._fly(group)
        if refused and len(group) > 1:
            # The group was refused as a whole: one bad write must fail alone.
            for item in group:
                await self._fly([item])

    async def _fly(self, items: Sequence[QueuedWrite]) -> bool:
        """One transaction, up to the answers of its writers; return whether it was refused as a whole."""
        try:
            await self._session.ready(self._timeout_s)
        except StoreError as error:
            fail(items, error)
            return False
        # Callers that have left meanwhile were told that nothing was stored.
        waiting = [item for item in items if not item.done.done()]
        if not waiting:
            return False
        self._flight = InFlightTxn(waiting, self._word_key, new_word(self._rng))
        try:
            return await self._send(self._flight)
        finally:
            self._flight = None

    async def _send(self, flight: InFlightTxn) -> bool:
        ours = (self._epoch.guard(), self._session.guard())
        try:
            commit = await self._store.commit((*ours, *flight.items[0].guards), flight.writes(), self._timeout_s)
            if commit.guarded:
                self._land(flight, commit)
            else:
                self._turn_back(flight, ours)
        except UnknownOutcome as error:
            await self._settle(flight, error)
        except Rejected as error:
            flight.call_off()
            if len(flight.items) == 1:
                fail(flight.items, Rejected(f"the store refused the write: {error}"))
            return True
        except NoSpace as error:
            return await self._without_space(flight, error)
        except StoreError as error:
            fail(flight.items, error)
        return False

    def _turn_back(self, flight: InFlightTxn, ours: tuple[Compare, Compare]) -> None:
        """After a guard that did not hold, queue the writes again or fail them: nothing was stored."""
        epoch, session = ours
        changed = self._session.guard() != session or self._session.is_changing
        if self._epoch.guard() == epoch and changed and not flight.blind:
            # Heartbeats use the session too, and changed it meanwhile.
            flight.call_off()
            self._queue.put_back(flight.items)
        else:
            self._session.doubt()
            fail(flight.items, Guarded("the store has changed since this write began; nothing was stored", 0.1))

    def _land(self, flight: InFlightTxn, commit: Commit) -> None:
        self.grouped(len(flight.items))
        for item, outcome in zip(flight.items, commit.outcomes, strict=False):
            if isinstance(outcome, Applied):
                self.writes += 1
                item.answer(commit.revision)
            else:
                item.fail(Conflict(outcome.modified))

    async def _without_space(self, flight: InFlightTxn, error: NoSpace) -> bool:
        """Return whether the transaction was refused as a whole.

        etcd gives the same error for a transaction that it refused and for the one that used up the last space, which
        took place. Either way it is over, so the word in the store tells which.
        """
        try:
            record, _ = await self._store.get(self._word_key)
            if flight.stands_in(record):
                assert record is not None
                await self._session.watched(record.modified)
                self._sort_out(flight)
                return False
        except StoreError as failure:
            await self._settle(flight, UnknownOutcome(f"{error}; {failure}"))
            return False
        # Writes that only delete make room, and may be let through if nothing is put beside them.
        flight.call_off()
        fail([item for item in flight.items if item.write.puts] or flight.items, error)
        return True

    async def _settle(self, flight: InFlightTxn, error: UnknownOutcome) -> None:
        """Find out what became of a transaction without an answer: change the session, wait until that came back."""
        log.warning("outcome of %d writes unknown (%s): opening a new session", len(flight.items), error)
        self.unknown += 1
        await self._session.change()
        self._sort_out(flight)

    def _sort_out(self, flight: InFlightTxn) -> None:
        again = flight.settle()
        if lost := [item.subject for item in flight.items if not item.seen_at and item not in again]:
            log.error("the outcome of %d writes will remain unknown: %s", len(lost), ", ".join(lost[:10]))
        self.writes += sum(bool(item.seen_at) for item in flight.items)
        flight.call_off()
        self._queue.put_back(again)
