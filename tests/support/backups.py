"""Stores in memory with something in them, saved and put back."""

from __future__ import annotations

import io
import random

from hq.backup.archive import BackupReader, choose_backup, verify_backups
from hq.backup.restore import Restore
from hq.backup.save import BackupPlace, save
from hq.backup.servers import HQ, BackedUpServer
from hq.keys import DEFAULT_PREFIX, HqKeys
from hqpb.storage.v1 import storage_pb2
from serving.clock import ManualClock
from store.memory import MemoryStore
from store.port import Write

KEYS = HqKeys()
PLACE = BackupPlace(HQ, KEYS)
KEPT = ("spec/", "secrets/", "status/", "ops/")
State = dict[bytes, bytes]


def nothing(_: int) -> None:
    """Progress that nobody looks at."""


async def filled(count: int = 250, epoch: str = "old") -> MemoryStore:
    store = MemoryStore()
    record = storage_pb2.EpochRecord(epoch=epoch, predecessor=["older"]).SerializeToString()
    await put(store, KEYS.epoch, record)
    for number in range(count):
        await put(store, KEYS.spec(f"i-{number:04}"), b"spec %d" % number)
        await put(store, KEYS.status(f"i-{number:04}"), b"status %d" % number)
    await put(store, KEYS.secrets("i-0000"), b"where secrets live")
    await put(store, KEYS.guard, b"an order")
    await put(store, KEYS.of("fence", "replica-1"), b"a word")
    await put(store, KEYS.compaction, b"a mark")
    return store


async def put(store: MemoryStore, key: bytes, value: bytes) -> None:
    await store.commit((), (Write((), ((key, value),)),), 1.0)


async def state(store: MemoryStore, prefix: str = DEFAULT_PREFIX) -> State:
    """All records below a prefix, without it."""
    keys = HqKeys(prefix)
    page = await store.page(keys.prefix, keys.end, revision=0, limit=100_000)
    return {record.key.removeprefix(keys.prefix): record.value for record in page.records}


def kept(of: State) -> State:
    return {key: value for key, value in of.items() if key.decode().startswith(KEPT)}


async def saved(store: MemoryStore, *places: BackupPlace) -> io.BytesIO:
    file = io.BytesIO()
    await save(store, places or (PLACE,), file, ManualClock(), nothing)
    file.seek(0)
    return file


async def restored(
    store: MemoryStore, file: io.BytesIO, server: BackedUpServer = HQ, *, replace: bool = False, seed: int = 1
) -> str:
    """Restore a server's backup below its own prefix; return the new epoch."""
    file.seek(0)
    summary = choose_backup(verify_backups(file), server)
    file.seek(summary.start)
    one = Restore(store, HqKeys(server.prefix), summary, random.Random(seed))
    return await one.run(BackupReader(file), nothing, replace=replace)
