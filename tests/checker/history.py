"""A history: what clients of HQ did and were told, and what etcd says happened, as lines of JSON.

Pure data (history_file.py reads and writes it). One line is one of six kinds of event:

- `Op`: one call of one client and its outcome, or one message of a watch;
- `Raw`: one revision of etcd, in etcd's order, as an observer of etcd itself saw it;
- `Range`: everything that lay in etcd at a revision;
- `Cut`: etcd was restored from a snapshot: what follows (`Raw`s too) belongs to another epoch;
- `Fault`: something was done to the installation, from when to when;
- `Final`: what one replica held in memory when all was over.

Times are nanoseconds of one monotonic clock for the whole history. Versions are etcd's revisions; 0 means none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
CACHED, STRONG = "CACHED", "STRONG"
WRITES = frozenset(("create", "update", "put_revision", "delete_revision", "delete", "apply"))
REPORTS = frozenset(("report", "heartbeat"))
READS = frozenset(("get", "find", "count"))


class Item(NamedTuple):
    """One instance as it was shown: versions of its two records and the marks in them (tests/checker/marks.py)."""

    version: int
    status_version: int
    spec_mark: str
    status_mark: str


class Seen(NamedTuple):
    """One event of a watch: kind is put, delete or left; the last four are those of an Item, for a put."""

    kind: str
    id: str
    version: int
    status_version: int = 0
    spec_mark: str = ""
    status_mark: str = ""
    spec_version: int = 0

    @property
    def item(self) -> Item:
        return Item(self.spec_version, self.status_version, self.spec_mark, self.status_mark)


class Stored(NamedTuple):
    """One key of etcd that was put or deleted. `marks` are those of tests/checker/marks.py, by the kind of key."""

    kind: str
    key: str
    modified: int
    created: int
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """What a writing call asked and was told.

    Attributes:
        marker: the random word that the write put into the record; "" for deletions.
        precondition_version: that the caller named; 0: none.
        version: that the answer named (of the spec; reports are told none: 0).
        current: that a refusal named as the current one; None: it named none.
        revision_id: of reports, heartbeats and the two calls on single revisions.
    """

    marker: str = ""
    precondition_version: int = 0
    version: int = 0
    current: int | None = None
    revision_id: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """What a reading call demanded and was told.

    Attributes:
        items: by instance id; of a count: none, see `totals`.
        wanted: the filter, by equality: instance_id, service_id, node_name, ready ("T" or "F"); {} wants all.
        after: of a page: only ids behind this one. upto: and not behind this one; "": to the end.
        totals: of a count over `wanted`: all of them and those that are ready.
        staleness_s: for how long at most the source may have missed changes, as it said; None: it did not say.
    """

    min_version: int = 0
    consistency: str = CACHED
    version: int = 0
    epoch: str = ""
    stale: bool = False
    replica: str = ""
    items: dict[str, Item] = field(default_factory=dict)
    wanted: dict[str, str] = field(default_factory=dict)
    after: str = ""
    upto: str = ""
    totals: tuple[int, int] | None = None
    staleness_s: float | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """One message of a watch, in the order in which its client got them.

    Attributes:
        id: of the client's watch through all its streams. stream: counts the streams of this watch, from 1.
        kind: SNAPSHOT, SYNCED, EVENTS, BOOKMARK, RESYNC; or OPENED, once at the start of every stream.
        version: that the message's source named.
        token: whether the message had a resume token (then it is one of `version`).
        resumed_from: version of the token that this stream was opened with; None: without one.
        wanted: the filter, as of Read.
    """

    id: str
    kind: str
    version: int = 0
    epoch: str = ""
    stream: int = 1
    token: bool = False
    events: tuple[Seen, ...] = ()
    resumed_from: int | None = None
    replica: str = ""
    collapsed: bool = False
    reason: str = ""
    wanted: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Op:
    """One call. `outcome` unknown: the client was told nothing certain; such a call may have happened, once.

    Attributes:
        key: instance id, if it is about one.
        error: the stable reason of a refusal, e.g. VERSION_CONFLICT.
    """

    i: int
    process: str
    op: str
    call_ns: int
    return_ns: int | None
    outcome: str
    key: str = ""
    error: str = ""
    write: Write | None = None
    read: Read | None = None
    watch: Watched | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """One revision of etcd. `seen_ns`: when the observer got it; 0: unknown."""

    revision: int
    events: tuple[Stored, ...]
    seen_ns: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """Everything below the prefix at a revision: `kind` of each is "put".

    Attributes:
        gapless: the observer of etcd saw all of its keys, so that every revision must be there.
    """

    revision: int
    records: tuple[Stored, ...]
    gapless: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """etcd was restored as of `revision`; calls that began after `at_ns` are of the new history.

    The `Raw`s that follow count on from `revision` (or higher, if etcd was told to bump it). What was acknowledged
    before and is newer than `revision` is legitimately gone.
    """

    revision: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault by its name, from when it was struck until it was healed."""

    name: str
    began_ns: int
    ended_ns: int


@dataclass(frozen=True, slots=True)
class Final:
    """What a replica held in memory at the end, at its version."""

    replica: str
    version: int
    epoch: str
    items: dict[str, Item]


Event = Op | Raw | Range | Cut | Fault | Final
