"""All instances of an installation in memory, by version, with indexes.

Only what came out of the store's ordered stream changes the cache (`load`, `apply`); nothing here does I/O.
The version moves when all changes of that version are in: a reader between two calls sees whole versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, groupby
from typing import Any

from google.protobuf.message import DecodeError

from hq import keys as k
from hq.memory.decoder import SAME, NewSpec, NewStatus, Quarantine, RecordDecoder
from hq.memory.entry import NO_STATUS, RECORD_BYTES, Entry, Event, Status, build
from hq.memory.index import Indexes
from hq.memory.joined_lists import CacheSlot, JoinedList
from hq.memory.query import Query
from hq.memory.record import LivenessPair, Undecodable, decode_spec, decode_status
from hq.memory.removed import Removed
from hq.memory.waiters import Waiters
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import service_pb2
from serving.errors import NotLoaded
from store.port import Batch, KeyChange, Record


class Cache:
    """Instances by id and uid, and in order of ids for any filter.

    Attributes:
        version: all changes up to here are in.
        epoch: the one that these versions belong to, as the store itself says in its ordered stream.
        epoch_at: the version at which it began. A record that is older may come from another history.
        epoch_record: everything the store says about it.
        quarantine: records that could not be decoded.
        removed: what was deleted not long ago.
        liveness_pairs: the liveness settings in specs, and how many instances have each.
        stored_bytes: about how much of the store the records of all instances use.
        listing: every instance that passes a query, as one list that is ready to be sent; None: call `matching`.
    """

    def __init__(self, keys: k.HqKeys, listing_bytes: int = 64 << 20) -> None:
        """`listing_bytes`: of lists that are kept joined, because they are asked for often."""
        self._keys, self._listing_bytes = keys, listing_bytes
        self.quarantine = Quarantine()
        self._waiters = Waiters()
        self._clear()

    def _clear(self) -> None:
        self.version, self.epoch, self.epoch_at, self.stored_bytes = 0, "", 0, 0
        self.epoch_record = storage_pb2.EpochRecord()
        self.liveness_pairs = Counter[LivenessPair]()
        self._by_id: dict[str, Entry] = {}
        self._by_uid: dict[int, Entry] = {}
        self._indexes = Indexes(self._listing_bytes)
        self.listing = self._indexes.listing
        self._secrets: dict[str, Record] = {}
        self._orphans: dict[str, Status] = {}  # statuses whose spec is missing or in quarantine
        # Of a listing: specs whose status is still to come, so that most instances are made once, not twice.
        self._halves: dict[str, Record] = {}
        self.removed = Removed()
        self._unfiled: list[Entry] = []  # new entries, indexed when this part of the listing is complete
        self._decoder = RecordDecoder(self.quarantine)

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, instance_id: str) -> Entry | None:
        return self._by_id.get(instance_id)

    def by_uid(self, uid: int) -> Entry | None:
        return self._by_uid.get(uid)

    def matching(self, query: Query, after: str = "") -> Iterator[Sequence[Entry]]:
        """Every instance that passes, in order of ids, after `after`, as all of them stand at this call.

        In portions, which may be empty: the caller can yield to the loop after every few thousand instances checked.
        """
        if not query.ids:
            return self._indexes.matching(query, after)
        ids = [instance_id for instance_id in sorted(query.ids) if instance_id > after and instance_id in self._by_id]
        return iter((query.passing([self._by_id[instance_id] for instance_id in ids], query.fields - {"ids"}),))

    def sizes(self, query: Query, key: str) -> dict[str, int] | None:
        """How many instances pass, by `key` ("services", "nodes", or "": all of them); None: only a scan can tell."""
        return self._indexes.sizes(query, key)

    def on_node(self, node: str) -> Iterator[Entry]:
        """The instances on a node."""
        return chain.from_iterable(self.matching(Query(service_pb2.InstanceFilter(node_name=[node]))))

    def page(self, query: Query, page: Hashable) -> JoinedList | None:
        """A page of what passes, if it is kept; `page` is whatever tells the pages of this query apart."""
        return self._indexes.page(query, (page, self.epoch))

    def place(self, query: Query, page: Hashable) -> CacheSlot | None:
        """Where this page, which is about to be made, may be kept; None: nowhere."""
        return self._indexes.place(query, (page, self.epoch))

    def entries(self) -> Iterable[Entry]:
        """Return all entries, in no order."""
        return self._by_id.values()

    def nodes(self) -> int:
        """How many nodes hold instances."""
        return self._indexes.nodes()

    def ready(self) -> int:
        """How many instances are ready."""
        return len(self) - self._indexes.unready()

    def secrets(self, instance_id: str) -> Record | None:
        """The secrets record of an instance, undecoded."""
        return self._secrets.get(instance_id)

    def stored_versions(self, instance_id: str) -> tuple[int, int]:
        """The versions of the spec and status records in the store (0: there is none), also of those in quarantine."""
        entry, orphan = self._by_id.get(instance_id), self._orphans.get(instance_id)
        spec, status = self.quarantine.get(k.SPEC, instance_id), self.quarantine.get(k.STATUS, instance_id)
        status_at = entry.status_version if entry else orphan.modified if orphan else 0
        return spec.version if spec else entry.version if entry else 0, status.version if status else status_at

    def stored_version(self, kind: str, instance_id: str) -> int | None:
        """The version of one record in the store; 0: there is none; None: such a record belongs to no instance."""
        if kind == k.SECRETS:
            secrets = self._secrets.get(instance_id)
            return secrets.modified if secrets else 0
        if kind not in (k.SPEC, k.STATUS):
            return None
        return self.stored_versions(instance_id)[kind == k.STATUS]

    def is_whole(self) -> bool:
        """Whether instances show all spec and status records: none is in quarantine, and no status lacks its spec."""
        return not (len(self.quarantine) or self._orphans or self._halves)

    def is_unreadable(self, instance_id: str) -> bool:
        """Whether its spec record is in quarantine: an older state is shown, or none."""
        return self.quarantine.get(k.SPEC, instance_id) is not None

    def keys(self) -> Iterator[bytes]:
        """The keys of all records taken in."""
        for instance_id, entry in self._by_id.items():
            yield self._keys.spec(instance_id)
            if entry.status_version:
                yield self._keys.status(instance_id)
        yield from (self._keys.secrets(instance_id) for instance_id in self._secrets)
        yield from (self._keys.status(instance_id) for instance_id in self._orphans)
        yield from (self._keys.of(record.kind, record.rest) for record in self.quarantine.all())

    async def wait_for(self, version: int) -> None:
        """Return when the cache is at this version or a later one; the caller bounds the time. Raises NotLoaded."""
        if self.version < version:
            await self._waiters.wait_for(version)

    def load(self, records: Iterable[Record]) -> list[tuple[k.Name, Record]]:
        """Take in part of a listing, without events; `advance` to the listing's version when all is in.

        Returns the records that do not belong to an instance.
        """
        others = []
        spec, status = self._keys.spec(""), self._keys.status("")
        for record in records:
            key = record.key
            if key.startswith(spec):
                self._halves[key[len(spec) :].decode("utf-8", "replace")] = record
            elif key.startswith(status):
                self._take_status(key[len(status) :].decode("utf-8", "replace"), record)
            else:
                name = self._keys.name(key)
                if name.kind == k.SECRETS:
                    self._take(name.rest, {k.SECRETS: KeyChange(*record)})
                    continue
                others.append((name, record))
                if name.kind == k.EPOCH:
                    self._take_epoch(record.value, record.modified)
        self._indexes.file_new(self._unfiled)
        self._unfiled = []
        return others

    def _take_status(self, instance_id: str, record: Record) -> None:
        """Take a status from a listing, after its spec. Nearly everything comes this way, so new instances take a short
        cut.
        """
        half = self._halves.pop(instance_id, None)
        if half is not None and instance_id not in self._by_id and not len(self.quarantine):
            try:
                pool = self._decoder.trimmed_pool()
                spec = decode_spec(half.value, half.created, half.modified)
                entry = build(instance_id, spec, decode_status(record.value, record.modified), None, pool)
            except Undecodable:  # decoded again below, in full: it goes into quarantine
                pass
            else:
                self.stored_bytes += entry.stored_bytes()
                self._by_uid[entry.traits.uid] = self._by_id[instance_id] = entry
                self._unfiled.append(entry)
                self._count_pair(entry)
                return
        changes = {k.SPEC: KeyChange(*half)} if half is not None else {}
        self._take(instance_id, {**changes, k.STATUS: KeyChange(*record)})

    def recall(self, kept: Iterable[tuple[Any, ...]]) -> None:
        """Take in the instances that another process saved, in order of ids; without events."""
        pool = self._decoder.trimmed_pool()
        entries = [Entry.__new__(Entry).recall(one, pool) for one in kept]
        self._by_id.update([(entry.traits.id, entry) for entry in entries])
        self._by_uid.update([(entry.traits.uid, entry) for entry in entries])
        for entry in entries:
            if entry.traits.liveness is not None:
                self._count_pair(entry)
        self._indexes.file_new(entries)

    def advance(self, version: int) -> None:
        """Note that nothing else changed up to this version."""
        self._complete_halves()
        self.version = max(self.version, version)
        self._waiters.on_version_reached(self.version)

    def apply(self, batch: Batch, *, collapsed: bool = False) -> list[Event]:
        """Take in complete versions; return what changed, oldest first. Collapsed: as events of the last version."""
        self._complete_halves()
        versions: Iterable[tuple[int, Iterable[KeyChange]]] = [(batch.revision, batch.changes)]
        if not collapsed:
            versions = groupby(batch.changes, key=lambda change: change.revision)
        events = [event for version, changes in versions for event in self._apply_version(version, changes)]
        self.advance(batch.revision)
        return events

    def reset(self) -> None:
        """Forget everything: the store has a new history."""
        self.quarantine.clear()
        self._clear()
        self._waiters.fail(NotLoaded("the store was replaced: this replica is reloading"))

    def _complete_halves(self) -> None:
        halves, self._halves = self._halves, {}
        for instance_id, spec in halves.items():
            self._take(instance_id, {k.SPEC: KeyChange(*spec)})

    def _apply_version(self, version: int, changes: Iterable[KeyChange]) -> Iterator[Event]:
        touched: dict[str, dict[str, KeyChange]] = {}
        for change in changes:
            kind, rest = self._keys.name(change.key)
            if kind == k.SPEC or kind == k.STATUS or kind == k.SECRETS:
                touched.setdefault(rest, {})[kind] = change
            elif kind == k.EPOCH and change.value is not None:
                self._take_epoch(change.value, change.revision)
        for instance_id, by_kind in touched.items():
            before = self._by_id.get(instance_id)
            after = self._take(instance_id, by_kind)
            if before is not after:
                yield Event(version, before, after)

    def _take_epoch(self, value: bytes, version: int) -> None:
        # The follower has decided already whether this is another history.
        with suppress(DecodeError):
            self.epoch_record = storage_pb2.EpochRecord.FromString(value)
            self.epoch, self.epoch_at = self.epoch_record.epoch, version

    def _take(self, instance_id: str, changes: dict[str, KeyChange]) -> Entry | None:
        """The instance after these changes of its records; the very same entry if no change is visible."""
        before = self._by_id.get(instance_id)
        if (secrets := changes.get(k.SECRETS)) is not None:
            self._take_secrets(instance_id, secrets)
        shown = before.spec_created if before is not None else 0
        spec = self._decoder.spec(instance_id, changes.get(k.SPEC), shown=shown)
        is_another = before is not None and spec is not SAME and (spec is None or spec.created != shown)
        status = self._decoder.status(instance_id, changes.get(k.STATUS), shown=before is not None and not is_another)
        if status is SAME and k.STATUS in changes and is_another:
            status = NO_STATUS  # the status of the previous uid says nothing about this one
        if spec is SAME and status is SAME:
            return before
        after, orphan = self._combine_records(instance_id, before, spec, status)
        self._orphans.pop(instance_id, None)
        if orphan is not None:
            self._orphans[instance_id] = orphan
        if before is not None or after is not None:
            self._file(instance_id, before, after)
        return after

    def _combine_records(
        self, instance_id: str, before: Entry | None, spec: NewSpec, status: NewStatus
    ) -> tuple[Entry | None, Status | None]:
        """The instance made from its records, and the status if it has no instance."""
        if before is not None and spec is SAME and status is not SAME:
            return before.with_status(status, self._decoder.pool), None
        if status is SAME:
            status = before.stored_records()[1] if before is not None else self._orphans.get(instance_id, NO_STATUS)
        if spec is None or spec is SAME:
            return None, status if status.modified else None
        return build(instance_id, spec, status, before, self._decoder.pool), None

    def _take_secrets(self, instance_id: str, change: KeyChange) -> None:
        self._decoder.check_secrets(instance_id, change)
        if (before := self._secrets.pop(instance_id, None)) is not None:
            self.stored_bytes -= RECORD_BYTES + len(before.value)
        if change.value is not None:
            self._secrets[instance_id] = Record(change.key, change.value, change.created, change.revision)
            self.stored_bytes += RECORD_BYTES + len(change.value)

    def _count_pair(self, entry: Entry, by: int = 1) -> None:
        if (pair := entry.traits.liveness) is not None:
            self.liveness_pairs[pair] += by
            if not self.liveness_pairs[pair]:
                del self.liveness_pairs[pair]

    def _file(self, instance_id: str, before: Entry | None, after: Entry | None) -> None:
        # Records that HQ did not write may share a uid: the last one wins.
        if before is not None:
            self._count_pair(before, -1)
            if self._by_uid.get(before.traits.uid) is before:
                del self._by_uid[before.traits.uid]
            self.stored_bytes -= before.stored_bytes()
            self.removed.record_removal(before, after)
        if after is not None:
            self._count_pair(after)
            self.stored_bytes += after.stored_bytes()
            self._by_uid[after.traits.uid] = self._by_id[instance_id] = after
        else:
            del self._by_id[instance_id]
        self._indexes.file(instance_id, before, after)
        if len(self.quarantine):
            self.quarantine.note_shown(instance_id, (k.SPEC, k.STATUS), shown=after is not None)
