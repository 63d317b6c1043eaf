"""The identity of the store's history, and the format of what lies in it.

etcd restored from a snapshot may show the same cluster id and a lower or higher revision: nothing in etcd tells. So HQ
keeps a word of its own. Whoever notices another history replaces the word, and every version and token is void.
"""

from __future__ import annotations

import logging
import random

from google.protobuf.message import DecodeError

from hq.store.keys import Keys
from hq.store.port import Applied, Compare, Record, Store, Unavailable, UnknownOutcome, Write
from hq.store.words import new_word
from hqpb.storage.v1 import storage_pb2

log = logging.getLogger(__name__)

FORMAT = 1  # of what this version writes
_TIMEOUT_S = 5.0
_PREDECESSORS_KEPT = 100


class FormatTooNew(Exception):
    """A newer version of HQ wrote this store, in a format that this version does not understand. Upgrade this replica."""


class Epoch:
    """The epoch that this replica believes in."""

    def __init__(self, store: Store, keys: Keys, rng: random.Random) -> None:
        self._store, self._keys, self._rng = store, keys, rng
        self._record = b""
        self._read_at = 0
        self.current = ""

    def guard(self) -> Compare:
        """The condition that the store still has this history."""
        return Compare(self._keys.epoch, "value", self._record)

    def contradicts(self, value: bytes | None, revision: int) -> bool:
        """Whether a change of the epoch record, seen in a watch, tells of another epoch (and is no old news)."""
        return revision > self._read_at and value != self._record

    async def settle(self) -> None:
        """Read the epoch, or make the first one. Raises FormatTooNew, Unavailable, NoSpace."""
        await self._settle_format()
        while True:
            record, head = await self._store.get(self._keys.epoch)
            if record is not None:
                self._believe(record.value, head)
                return
            await self._write(None, storage_pb2.EpochRecord(epoch=self._new_epoch()))

    async def moved(self) -> None:
        """The store's history is another one: adopt its epoch if that is a successor of ours, else make a successor."""
        while True:
            record, head = await self._store.get(self._keys.epoch)
            theirs = _decoded(record)
            if record is not None and theirs.epoch != self.current and self.current in theirs.predecessor:
                self._believe(record.value, head)
                return
            known = [*theirs.predecessor, theirs.epoch, self.current]
            past = [word for i, word in enumerate(known) if word and word not in known[:i]]
            new = storage_pb2.EpochRecord(epoch=self._new_epoch(), predecessor=past[-_PREDECESSORS_KEPT:])
            log.warning("the store's history is another one: epoch %s is over, proposing %s", self.current, new.epoch)
            await self._write(record, new)

    async def _settle_format(self) -> None:
        record, _ = await self._store.get(self._keys.format)
        stored = storage_pb2.FormatRecord.FromString(record.value) if record else storage_pb2.FormatRecord()
        if stored.oldest_reader > FORMAT:
            raise FormatTooNew(
                f"the store is in format {stored.format}, which needs a reader of format {stored.oldest_reader} or newer; "
                f"this version of HQ reads format {FORMAT}: upgrade this replica"
            )
        if stored.format < FORMAT:
            mine = storage_pb2.FormatRecord(format=FORMAT, oldest_reader=FORMAT).SerializeToString()
            at = Compare(self._keys.format, "modified", record.modified if record else 0)
            await self._try(Write((at,), ((self._keys.format, mine),)))

    async def _write(self, old: Record | None, new: storage_pb2.EpochRecord) -> None:
        """Try to write; whatever becomes of it, the caller reads again."""
        at = Compare(self._keys.epoch, "modified", old.modified if old else 0)
        await self._try(Write((at,), ((self._keys.epoch, new.SerializeToString()),)))

    async def _try(self, write: Write) -> bool:
        try:
            commit = await self._store.commit((), (write,), _TIMEOUT_S)
        except UnknownOutcome as error:
            raise Unavailable(str(error)) from error
        return isinstance(commit.outcomes[0], Applied)

    def _believe(self, value: bytes, head: int) -> None:
        self._record, self._read_at = value, head
        self.current = storage_pb2.EpochRecord.FromString(value).epoch

    def _new_epoch(self) -> str:
        return f"{new_word(self._rng):016x}"


def _decoded(record: Record | None) -> storage_pb2.EpochRecord:
    try:
        return storage_pb2.EpochRecord.FromString(record.value) if record else storage_pb2.EpochRecord()
    except DecodeError:
        return storage_pb2.EpochRecord()
