"""Restoring a backup: a new epoch at its beginning and at its end, and replicas that serve nothing in between.

A mark is in the store while a restore is under way. Every transaction compares the revision at which the mark was last
put, and the mark is put again before the first record, so that no earlier transaction can arrive late: none of an
interrupted restore, and no deletion once there are records. Replicas that see the mark answer UNAVAILABLE instead of
telling agents that their instances are unknown. A restore of the same backup may be run again from its beginning,
however far it got.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from google.protobuf.message import DecodeError

from hq.backup.archive import BackupReader, Summary
from hq.backup.save import Progress, check_is_ours
from hqpb.storage.v1 import backup_pb2, storage_pb2
from store.epoch import FORMAT
from store.keys import Keys, new_word, prefix_end
from store.port import Commit, Compare, Rejected, Store, UnknownOutcome, Write
from storepb.v1 import store_pb2

_TIMEOUT_S: Final = 10.0
_TRIES: Final = 5
_MOST_OPERATIONS: Final = 100  # in one transaction
_MOST_BYTES: Final = 1 << 20
_PREDECESSORS_KEPT: Final = 100


class NotEmpty(Exception):
    """There are records below the prefix already."""


class Disturbed(Exception):
    """Somebody else restores at the same time, or the store was replaced meanwhile."""


class Restore:
    """One restore of one server's records; what others have in the store stays as it is."""

    def __init__(self, store: Store, keys: Keys, backup: Summary, rng: random.Random) -> None:
        """`backup`: verified."""
        self._store, self._keys, self._backup, self._rng = store, keys, backup, rng
        self._mark = backup_pb2.RestoreRecord(sha256=backup.sha256).SerializeToString()
        self._mark_at = 0  # the revision at which it was last put
        self._epoch = b""  # that of the restore, until its end

    async def run(self, reader: BackupReader, progress: Progress, *, replace: bool) -> str:
        """Restore everything; return the new epoch. `replace`: delete what is there, otherwise refuse.

        Raises:
            ForeignRecords, NotEmpty, Disturbed, Unavailable, NoSpace.
            UnknownOutcome: the store did not answer, several times; run it again.
        """
        await check_is_ours(self._store, self._backup.server, self._keys)
        await self._begin(replace=replace)
        for kind in self._backup.server.kept:
            await self._clear(self._keys.of(kind, ""))
        await self._put_mark()
        for records in _batches(reader):
            puts = [(self._keys.prefix + record.key, record.value) for record in records]
            await self._commit(Write((), puts))
            progress(len(records))
        return await self._end()

    async def _begin(self, *, replace: bool) -> None:
        mark, _ = await self._store.get(self._keys.restore)
        same = mark is not None and mark.value == self._mark
        guards: list[Compare] = []
        if not same and not replace:
            if mark is not None:
                raise NotEmpty(
                    "a restore of another file was interrupted here: run `hq restore` again with that file, or give "
                    "--replace to replace everything with this one"
                )
            await self._check_empty()
            guards += map(self._none_of, self._backup.server.kept)
        _, self._epoch, epoch_at = await self._next_epoch()
        self._mark_at = mark.modified if mark else 0
        # If this transaction arrives only when all is over, it finds another epoch.
        guards.append(Compare(self._keys.epoch, "modified", epoch_at))
        await self._put_mark(guards, ((self._keys.epoch, self._epoch),))

    async def _put_mark(self, guards: Sequence[Compare] = (), beside: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """Put the mark, even if it is there already: that shuts out whatever was sent before."""
        commit = await self._try((self._guard(), *guards), Write((), ((self._keys.restore, self._mark), *beside)))
        self._mark_at = commit.revision if commit.guarded else await self._put_unheard()

    async def _put_unheard(self) -> int:
        """The revision at which an unanswered attempt put the mark. Raises Disturbed if none was stored."""
        mark, _ = await self._store.get(self._keys.restore)
        epoch, _ = await self._store.get(self._keys.epoch)
        if mark is None or epoch is None or (mark.value, epoch.value) != (self._mark, self._epoch):
            raise Disturbed("another restore or writer changed the store: stop it and run this restore again")
        return mark.modified

    def _none_of(self, kind: str) -> Compare:
        start = self._keys.of(kind, "")
        return Compare(start, "created", 0, range_end=prefix_end(start))

    async def _check_empty(self) -> None:
        found = 0
        for kind in self._backup.server.kept:
            start = self._keys.of(kind, "")
            found += (await self._store.newest(start, prefix_end(start)))[0]
        if found:
            where = self._keys.prefix.decode()
            next_step = "choose an empty --prefix, or delete them with --replace"
            raise NotEmpty(f"{where} holds {found} records already: {next_step}")

    async def _clear(self, start: bytes) -> None:
        while True:
            page = await self._store.page(start, prefix_end(start), revision=0, limit=_MOST_OPERATIONS)
            if page.records:
                await self._commit(Write((), (), [record.key for record in page.records]))
            if not page.more:
                return

    async def _end(self) -> str:
        word, epoch, _ = await self._next_epoch()
        written = store_pb2.FormatRecord(format=FORMAT, oldest_reader=FORMAT).SerializeToString()
        puts = ((self._keys.epoch, epoch), (self._keys.format, written))
        commit = await self._try((self._guard(),), Write((), puts, (self._keys.restore,)))
        if not commit.guarded:
            # An earlier try that got no answer may have ended the restore.
            stored, _ = await self._store.get(self._keys.epoch)
            if stored is None or stored.value != epoch:
                raise _disturbed_error()
        return word

    async def _next_epoch(self) -> tuple[str, bytes, int]:
        """A new epoch, its record (it succeeds the store's and the backup's), and the revision of the store's."""
        stored, _ = await self._store.get(self._keys.epoch)
        known: list[str] = []
        for value in (self._backup.header.epoch, stored.value if stored else b""):
            record = _epoch(value)
            known += [*record.predecessor, record.epoch]
        past = list(dict.fromkeys(word for word in known if word))[-_PREDECESSORS_KEPT:]
        new = storage_pb2.EpochRecord(epoch=f"{new_word(self._rng):016x}", predecessor=past, restored=True)
        return new.epoch, new.SerializeToString(), stored.modified if stored else 0

    async def _commit(self, write: Write) -> None:
        if not (await self._try((self._guard(),), write)).guarded:
            raise _disturbed_error()

    async def _try(self, guards: Sequence[Compare], write: Write) -> Commit:
        """Commit, and again if there was no answer: writing it twice does no harm."""
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._store.commit(guards, (write,), _TIMEOUT_S)
            except UnknownOutcome:
                if not tries_left:
                    raise
            except Rejected as error:
                raise Disturbed(f"the store refused a transaction: {error}") from error
        raise AssertionError("unreachable")

    def _guard(self) -> Compare:
        return Compare(self._keys.restore, "modified", self._mark_at)


def _disturbed_error() -> Disturbed:
    return Disturbed(
        "this restore's marker is gone: another restore is running, or the store was replaced; run it again"
    )


def _epoch(value: bytes) -> storage_pb2.EpochRecord:
    try:
        return storage_pb2.EpochRecord.FromString(value)
    except DecodeError:
        return storage_pb2.EpochRecord()


def _batches(records: Iterable[backup_pb2.BackupRecord]) -> Iterator[list[backup_pb2.BackupRecord]]:
    """Split into portions that fit into a transaction."""
    batch: list[backup_pb2.BackupRecord] = []
    size_bytes = 0
    for record in records:
        added = len(record.key) + len(record.value) + 64
        if batch and (len(batch) >= _MOST_OPERATIONS or size_bytes + added > _MOST_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(record)
        size_bytes += added
    if batch:
        yield batch
