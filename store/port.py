"""The port between a server and its store: an ordered, versioned, watchable map of keys to bytes.

Two implementations, one suite of contract tests: `etcd.py`, and `memory.py` for unit tests and trying things out.
The port speaks of *revisions* in etcd's sense (the store's counter); everywhere above it the word is *version*.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol


class Record(NamedTuple):
    """A key with its value, and the revisions at which it was created and last changed."""

    key: bytes
    value: bytes
    created: int
    modified: int


class KeyChange(NamedTuple):
    """One event of the store. `value` is None for a deletion; `created` is 0 then."""

    key: bytes
    value: bytes | None
    created: int
    revision: int


class Batch(NamedTuple):
    """Complete revisions, oldest first: all changes after the batch before, up to and including `revision`."""

    revision: int
    changes: list[KeyChange]


class StorePage(NamedTuple):
    """Part of a listing; `more` tells whether keys follow, `revision` is the store's head when it was read."""

    records: list[Record]
    more: bool
    revision: int


@dataclass(frozen=True, slots=True)
class Compare:
    """A condition on a key, or with `range_end` on every key of a range (it holds if none contradicts).

    `field` "created" and "modified" compare revisions (0: the key does not exist), "value" compares bytes; no value
    condition holds for a key that does not exist. A range without keys is like one key that does not exist.
    """

    key: bytes
    field: Literal["created", "modified", "value"]
    operand: int | bytes
    relation: Literal["=", "<", ">"] = "="
    range_end: bytes | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """Puts and deletes that happen together if all conditions hold, else not at all.

    A store may judge a lack of space (NoSpace) only by the puts of writes *without* conditions, as etcd does.
    """

    when: Sequence[Compare]
    puts: Sequence[tuple[bytes, bytes]] = ()
    deletes: Sequence[bytes] = ()

    @property
    def size_bytes(self) -> int:
        """Roughly how many bytes the write adds to a transaction."""
        puts = sum(len(key) + len(value) + 16 for key, value in self.puts)
        return puts + sum(len(c.key) + 24 for c in self.when) + sum(len(key) + 8 for key in self.deletes)


@dataclass(frozen=True, slots=True)
class Applied:
    """The write was stored."""


@dataclass(frozen=True, slots=True)
class ConditionFailed:
    """A condition of the write did not hold. `modified` has the current revision of each key it compared (0: none)."""

    modified: dict[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Commit:
    """Outcome of one transaction.

    Attributes:
        revision: of the transaction; what was applied carries it.
        guarded: the transaction's own conditions held; if not, nothing was even tried.
        outcomes: one per write, in order; empty if not guarded.
    """

    revision: int
    guarded: bool
    outcomes: list[Applied | ConditionFailed]


class StoreClock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Seconds on a clock that never steps, that of the event loop; only differences mean anything."""
        ...


class StoreSink(Protocol):
    """Who is told what the store says. Calls come in order and are never concurrent."""

    def reset(self) -> None:
        """Forget everything; a listing follows. Called before another epoch is adopted; perhaps several times."""

    def load(self, records: list[Record]) -> None:
        """Take in part of a listing."""

    def on_listing_complete(self, revision: int) -> None:
        """Note that the listing is complete; it shows the store at this revision."""

    def apply(self, batch: Batch, *, collapsed: bool) -> None:
        """Take in complete revisions. Collapsed: the difference after a gap, each key at most once, unordered."""

    def connection(self, up: bool) -> None:
        """Note whether a watch is open."""

    def keys(self) -> Iterable[bytes]:
        """The keys of all records taken in."""

    def version_of(self, key: bytes) -> int | None:
        """The revision at which a record in memory was last changed; 0: there is none; None: such keys are not kept."""

    def mend(self, changes: list[KeyChange], revision: int) -> None:
        """Take in the store's state of keys that were wrong here. `revision`, the newest, is that of the mend's mark.

        A change has the revision of its record, which may be old.
        """


class StoreError(Exception):
    """Base of the errors of a store and what is built on it, except those to be handled (Compacted, Conflict)."""


class Compacted(Exception):
    """The history asked for is gone; `revision` is the oldest one that is left, 0 if the store does not tell."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"history before revision {revision} was compacted")
        self.revision = revision


class Unavailable(StoreError):
    """The store could not be reached, or refused: certainly not stored."""

    def __init__(self, message: str, retry_delay_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_delay_s = retry_delay_s


class Disconnected(Unavailable):
    """A watch ended or could not be opened; start it again after the last revision that was seen."""


class Rejected(StoreError):
    """The store refused the transaction as a whole (too large, malformed): certainly not stored."""


class UnknownOutcome(StoreError):
    """The store did not answer: the transaction may have taken place, or may still do so."""


class NoSpace(StoreError):
    """The store's quota is used up: certainly not stored."""


class WatchStream(Protocol):
    """An open watch. Ends with Disconnected or Compacted, never silently."""

    def __aiter__(self) -> AsyncIterator[Batch]: ...


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """One member of the store as it answers for itself.

    Attributes:
        quota_bytes: what db_size_bytes may grow to; 0: it does not tell.
        full: its space is used up, and nothing can be put.
        learner: it does not vote (yet), and does not serve requests.
        error: what else is wrong with it.
    """

    endpoint: str
    version: str = ""
    leader: bool = False
    db_size_bytes: int = 0
    db_in_use_bytes: int = 0
    quota_bytes: int = 0
    full: bool = False
    learner: bool = False
    error: str = ""


class Store(Protocol):
    """A store as servers need it.

    Every method raises Unavailable; commits raise NoSpace, UnknownOutcome and Rejected, too.
    """

    async def commit(self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
        """One transaction: if all guards hold, each write takes place for which its own conditions hold.

        All conditions see the state before the transaction. A key may be put only once, and not be deleted as well.
        All that takes place has one revision; a transaction that changes nothing has that of the head.
        """
        ...

    async def get(self, key: bytes, *, revision: int = 0) -> tuple[Record | None, int]:
        """A linearizable read of one key and the head revision; at an older revision if one is given.

        Raises:
            Compacted: that revision is gone.
            FutureRevision: the store has not got that far.
        """
        ...

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False) -> StorePage:
        """Up to `limit` records of [start, end) in order of keys, as they were at a revision (0: linearizable head).

        `limit` is at least 1. `keys_only`: with empty values. Raises Compacted, FutureRevision.
        """
        ...

    async def count(self, start: bytes, end: bytes, *, revision: int) -> int:
        """The number of keys in [start, end) at a revision. Raises Compacted, FutureRevision."""
        ...

    async def newest(self, start: bytes, end: bytes) -> tuple[int, int, int]:
        """Linearizable summary of [start, end): number of keys, their newest mod_revision, and the head revision."""
        ...

    def watch(self, start: bytes, end: bytes, *, after: int) -> AbstractAsyncContextManager[WatchStream]:
        """Follow [start, end) from the revision following `after`; entered once the store has opened the watch.

        Batches come in order, each revision once and whole. The deletion of a key that does not exist is no event.
        Opening and iterating raise Disconnected and Compacted only; Compacted also where `after` itself is gone, if
        only by one revision: what is left may lack a deletion.
        """
        ...

    async def compact(self, revision: int) -> None:
        """Give up history before a revision. Raises Compacted if it is gone already, FutureRevision."""
        ...

    async def members(self) -> list[MemberStatus]:
        """Return the status of each member."""
        ...

    async def close(self) -> None:
        """Let go of connections. Calls under way, watches and later calls fail as if the store were away."""
        ...


class FutureRevision(Exception):
    """The store has not reached the revision asked for: it is another history."""
