"""All instances of an installation in memory, by version, with indexes.

Only what came out of the store's ordered stream changes the cache (`load`, `apply`); nothing here does I/O.
The version moves when all changes of that version are in: a reader between two calls sees whole versions.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, NamedTuple, overload

from hq.entry import NO_STATUS, Entry, Spec, Status, Traits, Undecodable, build, decode_spec, decode_status
from hq.errors import NotLoaded
from hq.index import Bucket, Index
from hq.quarantine import Quarantine, Quarantined
from hq.query import Query
from hq.store import keys as k
from hq.store.port import Batch, Change, Record

_INTERNED_AT_MOST = 500_000


class Event(NamedTuple):
    """One change of one instance at one version. `before` and `after` are None where it did not exist."""

    version: int
    before: Entry | None
    after: Entry | None

    @property
    def traits(self) -> Traits:
        """Of the newer state."""
        entry = self.after or self.before
        assert entry is not None
        return entry.traits


class Cache:
    """Instances by id and uid, and by service, node, revision, label and readiness.

    Attributes:
        version: all changes up to here are in.
        quarantine: records that could not be decoded.
    """

    def __init__(self, keys: k.Keys) -> None:
        self._keys = keys
        self.version = 0
        self.quarantine = Quarantine()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._tickets = 0
        self._clear()

    def _clear(self) -> None:
        self._all = Bucket()
        self._by_uid: dict[int, Entry] = {}
        self._services, self._nodes, self._revisions, self._labels = Index(), Index(), Index(), Index()
        self._not_ready = Bucket()
        self._secrets: dict[str, Record] = {}
        # Parts that are not in an entry: a status whose spec is missing or in quarantine.
        self._orphans: dict[str, Status] = {}
        self._intern: dict[object, object] = {}

    # --- reading ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._all)

    def get(self, instance_id: str) -> Entry | None:
        return self._all.get(instance_id)

    def by_uid(self, uid: int) -> Entry | None:
        return self._by_uid.get(uid)

    def secrets(self, instance_id: str) -> Record | None:
        """The secrets record of an instance, undecoded."""
        return self._secrets.get(instance_id)

    def stored_versions(self, instance_id: str) -> tuple[int, int]:
        """Where the spec and status records stand in the store (0: there is none), also when in quarantine."""
        entry = self._all.get(instance_id)
        spec, status = self.quarantine.get(k.SPEC, instance_id), self.quarantine.get(k.STATUS, instance_id)
        return (
            spec.version if spec else entry.version if entry else 0,
            status.version if status else entry.status_version if entry else 0,
        )

    def keys(self) -> Iterator[bytes]:
        """The keys of all records that are in."""
        for entry in self._all.unordered():
            yield self._keys.spec(entry.traits.id)
            if entry.status_version:
                yield self._keys.status(entry.traits.id)
        yield from (self._keys.secrets(instance_id) for instance_id in self._secrets)
        yield from (self._keys.status(instance_id) for instance_id in self._orphans)
        yield from (self._keys.of(record.kind, record.rest) for record in self.quarantine.all())

    def nodes(self) -> int:
        """How many nodes hold instances."""
        return len(self._nodes)

    def entries(self) -> Iterable[Entry]:
        """All, in no order."""
        return self._all.unordered()

    def candidates(self, query: Query, after: str = "") -> list[Entry]:
        """In order of ids, behind `after`: every instance that passes the query, and perhaps others. A copy."""
        buckets, field = self._narrowest(query)
        if field is query.ids:
            found = (self._all.get(i) for i in sorted(query.ids) if i > after)
            return [entry for entry in found if entry is not None]
        if len(buckets) == 1:
            return list(buckets[0].entries(after))
        merged = heapq.merge(*(b.entries(after) for b in buckets), key=lambda entry: entry.traits.id)
        return [next(same) for _, same in groupby(merged, key=lambda entry: entry.traits.id)]

    def _narrowest(self, query: Query) -> tuple[list[Bucket], object]:
        """The fewest buckets' worth of instances that hold all matches, and the query's field they are from."""
        if query.ids:
            return [], query.ids
        choices: list[tuple[list[Bucket], object]] = [([self._all], None)]
        by_field = (
            (query.services, self._services),
            (query.nodes, self._nodes),
            (query.revisions, self._revisions),
        )
        for words, index in by_field:
            if words:
                found = (index.bucket(word) for word in words)
                choices.append(([b for b in found if b is not None], words))
        for key, value in query.labels:
            bucket = self._labels.bucket(f"{key}={value}")
            choices.append(([bucket] if bucket else [], query.labels))
        if query.ready is False:
            choices.append(([self._not_ready], query.ready))
        return min(choices, key=lambda choice: sum(map(len, choice[0])))

    async def wait_for(self, version: int) -> None:
        """Return when the cache is at this version or a later one; the caller bounds the time."""
        if self.version >= version:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tickets += 1
        heapq.heappush(self._waiting, (version, self._tickets, future))
        await future

    # --- following --------------------------------------------------------------------------------------------------

    def apply(self, batch: Batch, *, collapsed: bool = False) -> list[Event]:
        """Take in complete versions; return what changed, oldest first.

        Collapsed: the batch is a difference over many versions, told as events of its last one.
        """
        events: list[Event] = []
        if collapsed:
            events += self._apply_version(batch.revision, batch.changes)
        else:
            for version, group in groupby(batch.changes, key=lambda change: change.revision):
                events += self._apply_version(version, group)
        self.advance(batch.revision)
        return events

    def advance(self, version: int) -> None:
        """Nothing else changed up to this version."""
        self.version = max(self.version, version)
        while self._waiting and self._waiting[0][0] <= self.version:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)

    def reset(self) -> None:
        """Forget everything: the store's history is another one."""
        self._clear()
        self.quarantine.clear()
        self.version = 0
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(NotLoaded("the store was replaced: this replica reads it again"))

    def load(self, records: Iterable[Record]) -> None:
        """Take in part of a listing, without events; `advance` to the listing's version when all is in."""
        for record in records:
            kind, rest = self._keys.name(record.key)
            if kind == k.SPEC or kind == k.STATUS or kind == k.SECRETS:
                change = Change(record.key, record.value, record.created, record.modified)
                self._apply_instance(rest, {kind: change}, record.modified)

    def _apply_version(self, version: int, changes: Iterable[Change]) -> Iterator[Event]:
        touched: dict[str, dict[str, Change]] = {}
        for change in changes:
            kind, rest = self._keys.name(change.key)
            if kind == k.SPEC or kind == k.STATUS or kind == k.SECRETS:
                touched.setdefault(rest, {})[kind] = change
        for instance_id, by_kind in touched.items():
            before = self._all.get(instance_id)
            after = self._apply_instance(instance_id, by_kind, version)
            if before is not after:
                yield Event(version, before, after)

    def _apply_instance(self, instance_id: str, changes: dict[str, Change], version: int) -> Entry | None:
        """The instance as it is after these changes of one version; the very same entry if nothing shows."""
        before = self._all.get(instance_id)
        if (secrets := changes.get(k.SECRETS)) is not None:
            self._take_secrets(instance_id, secrets)
        if k.SPEC not in changes and k.STATUS not in changes:
            return before
        spec, status = self._current(instance_id, before)
        if (change := changes.get(k.SPEC)) is not None:
            spec = self._decoded("spec", instance_id, change, spec)
        if (change := changes.get(k.STATUS)) is not None:
            status = self._decoded("status", instance_id, change, status) or NO_STATUS
        try:
            after = build(instance_id, spec, status, before, self._intern) if spec else None
        except Undecodable as error:
            self._set_aside(k.SPEC, instance_id, version, error)
            return before
        self._keep_orphan(instance_id, after, status)
        self._file(before, after, instance_id)
        return after

    @overload
    def _decoded(self, kind: Literal["spec"], instance_id: str, change: Change, last: Spec | None) -> Spec | None: ...
    @overload
    def _decoded(self, kind: Literal["status"], instance_id: str, change: Change, last: Status) -> Status | None: ...
    def _decoded(self, kind: str, instance_id: str, change: Change, last: Spec | Status | None) -> Spec | Status | None:
        """The record as it is now; the last good one if it cannot be decoded; None if it was deleted."""
        self.quarantine.release(kind, instance_id)
        if change.value is None:
            return None
        try:
            if kind == k.SPEC:
                return decode_spec(change.value, change.created, change.revision)
            return decode_status(change.value, change.revision)
        except Undecodable as error:
            self._set_aside(kind, instance_id, change.revision, error)
            return last

    def _set_aside(self, kind: str, instance_id: str, version: int, error: Undecodable) -> None:
        shown = self._all.get(instance_id) is not None
        self.quarantine.put(Quarantined(kind, instance_id, version, str(error), shown))

    def _current(self, instance_id: str, entry: Entry | None) -> tuple[Spec | None, Status]:
        if entry is None:
            return None, self._orphans.get(instance_id, NO_STATUS)
        return entry.stored()

    def _take_secrets(self, instance_id: str, change: Change) -> None:
        if change.value is None:
            self._secrets.pop(instance_id, None)
        else:
            self._secrets[instance_id] = Record(change.key, change.value, change.created, change.revision)

    def _keep_orphan(self, instance_id: str, entry: Entry | None, status: Status) -> None:
        if entry is None and status.modified:
            self._orphans[instance_id] = status
        elif self._orphans:
            self._orphans.pop(instance_id, None)

    def _file(self, before: Entry | None, after: Entry | None, instance_id: str) -> None:
        """Put the instance into every index in place of what it was."""
        if len(self._intern) > _INTERNED_AT_MOST:
            self._intern.clear()
        old, new = before.traits if before else None, after.traits if after else None
        if old is not None and (new is None or new.uid != old.uid):
            del self._by_uid[old.uid]
        if after is not None and new is not None:
            self._by_uid[new.uid] = after
            self._all.put(after)
        else:
            self._all.drop(instance_id)
        if after is not None and not after.traits.ready:
            self._not_ready.put(after)
        else:
            self._not_ready.drop(instance_id)
        for index, words in (
            (self._services, lambda t: (t.service,)),
            (self._nodes, lambda t: (t.node,) if t.node else ()),
            (self._revisions, lambda t: t.revisions),
            (self._labels, lambda t: [f"{key}={value}" for key, value in t.labels]),
        ):
            index.move(words(old) if old else (), words(new) if new else (), instance_id, after)
