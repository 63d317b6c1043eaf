"""The identity of the store's history, and the format of its contents.

etcd restored from a snapshot may show the same cluster id and a lower or higher revision: nothing in etcd tells. So the
store holds a word of ours. A process that notices another history replaces it, and all versions and tokens are void.
"""

from __future__ import annotations

import logging
import random
from contextlib import suppress

from google.protobuf.message import DecodeError

from store.keys import Keys, new_word
from store.port import Compare, Record, Store, Unavailable, UnknownOutcome, Write
from storepb.v1 import store_pb2

log = logging.getLogger(__name__)

FORMAT = 1  # of what this version writes
_TIMEOUT_S = 5.0
_PREDECESSORS_KEPT = 100


class FormatTooNew(Exception):
    """A newer version wrote this store, in a format that this one does not understand: upgrade this process."""


class Epoch:
    """The epoch that this process believes in.

    Attributes:
        current: its word; empty before the first `settle`.
        is_first: no other epoch came before it.
    """

    def __init__(self, store: Store, keys: Keys, rng: random.Random) -> None:
        self._store, self._keys, self._rng = store, keys, rng
        self._record = b""
        self._read_at = self._format_read_at = 0
        self._note = b""
        self.current = ""
        self.is_first = True

    def guard(self) -> Compare:
        """The condition that the store still has this history."""
        return Compare(self._keys.epoch, "value", self._record)

    def remember(self, note: bytes) -> None:
        """Set the owner's own encoded fields, to be appended to the record of a successor that this process makes."""
        self._note = note

    def stands_in(self, record: Record | None) -> bool:
        """Whether the record of the epoch, just read, is the one believed in."""
        return record is not None and record.value == self._record

    def contradicts(self, value: bytes | None, revision: int) -> bool:
        """Whether the epoch's value at a revision (None: there was none) shows another epoch, and is not old news."""
        return revision > self._read_at and value != self._record

    def check_format(self, value: bytes | None, revision: int) -> None:
        """Check the record of the format at a revision, unless that is old news. Raises FormatTooNew.

        A newer version may raise the format while this one runs. A record that is gone or broken is ignored: the next
        start refuses it.
        """
        if value is not None and revision > self._format_read_at:
            with suppress(DecodeError):
                _refuse_newer(store_pb2.FormatRecord.FromString(value))

    async def settle(self) -> None:
        """Read the epoch, or make the first one. Raises FormatTooNew, Unavailable, NoSpace."""
        await self._settle_format()
        while True:
            record, head = await self._store.get(self._keys.epoch)
            theirs = _decode_record(record)
            if record is not None and theirs.epoch:
                self._believe(record, theirs, head)
                return
            await self._replace(record, theirs)

    async def on_history_changed(self) -> None:
        """The history is another one: adopt its epoch if that is a successor of ours, else make a successor.

        Raises Unavailable, NoSpace.
        """
        while True:
            record, head = await self._store.get(self._keys.epoch)
            theirs = _decode_record(record)
            if record is not None and theirs.epoch != self.current and self.current in theirs.predecessor:
                self._believe(record, theirs, head)
                return
            log.warning("the store has a new history: epoch %s is over", self.current)
            await self._replace(record, theirs)

    async def _settle_format(self) -> None:
        record, self._format_read_at = await self._store.get(self._keys.format)
        try:
            stored = store_pb2.FormatRecord.FromString(record.value) if record else store_pb2.FormatRecord()
        except DecodeError as error:
            where = self._keys.format.decode()
            raise Unavailable(f"the storage format record at {where} is invalid: repair or delete it") from error
        _refuse_newer(stored)
        if stored.format < FORMAT:
            mine = store_pb2.FormatRecord(format=FORMAT, oldest_reader=FORMAT)
            await self._try_to_put(self._keys.format, record, mine.SerializeToString())
            await self._settle_format()

    async def _replace(self, record: Record | None, theirs: store_pb2.EpochRecord) -> None:
        """Try to make a successor of their epoch and ours; whatever becomes of it, the caller reads again."""
        known = [*theirs.predecessor, theirs.epoch, self.current]
        past = [word for i, word in enumerate(known) if word and word not in known[:i]]
        new = store_pb2.EpochRecord(
            epoch=f"{new_word(self._rng):016x}",
            predecessor=past[-_PREDECESSORS_KEPT:],
        )
        level = logging.WARNING if past else logging.INFO  # the first one of a new store surprises nobody
        log.log(level, "proposing epoch %s", new.epoch)
        await self._try_to_put(self._keys.epoch, record, new.SerializeToString() + self._note)

    async def _try_to_put(self, key: bytes, old: Record | None, value: bytes) -> None:
        """Put if the record is still the old one."""
        at = Compare(key, "modified", old.modified if old else 0)
        try:
            await self._store.commit((), (Write((at,), ((key, value),)),), _TIMEOUT_S)
        except UnknownOutcome as error:
            raise Unavailable(str(error)) from error

    def _believe(self, record: Record, theirs: store_pb2.EpochRecord, head: int) -> None:
        self._record, self._read_at = record.value, head
        self.current, self.is_first = theirs.epoch, not theirs.predecessor


def _refuse_newer(stored: store_pb2.FormatRecord) -> None:
    if stored.oldest_reader > FORMAT:
        raise FormatTooNew(
            f"the store is in format {stored.format}, which needs a reader of format {stored.oldest_reader} or "
            f"newer; this version reads format {FORMAT}: upgrade this process"
        )


def _decode_record(record: Record | None) -> store_pb2.EpochRecord:
    """The epoch in a record; empty if there is no record, or it cannot be read."""
    try:
        return store_pb2.EpochRecord.FromString(record.value) if record else store_pb2.EpochRecord()
    except DecodeError:
        return store_pb2.EpochRecord()
