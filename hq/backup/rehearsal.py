"""Rehearsing a restore: into a throw-away etcd, from which each server's records are then read as at its start.

HQ's are read by a whole replica, but without sockets; the controllers' are only decoded. So nothing here can have an
effect outside of that etcd.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from google.protobuf.message import DecodeError, Message

from hq import keys as k
from hq.backup.archive import BackupReader, Summary
from hq.backup.restore import Restore
from hq.backup.save import Progress
from hq.backup.servers import HQ, BackedUpServer
from hq.config import ReplicaConfig
from hq.replica import Replica
from serving.clock import Clock
from store.keys import Keys
from store.listing import listing
from store.port import Store

_QUOTA_BYTES: Final = 8 << 30  # the most that etcd recommends: what fits into the original fits here
_NAMED_AT_MOST: Final = 10


class Unrehearsed(Exception):
    """A server cannot read all its restored records, or etcd ended meanwhile."""


class RestoredRecords(NamedTuple):
    """The records that a server read after its restore.

    Attributes:
        counts: readable records by kind.
        unreadable: the other records as "kind/id: why", in order.
    """

    counts: dict[str, int]
    unreadable: list[str]


class Rehearsal(NamedTuple):
    """How it went with one server. `faults`: what an operator must know; none: it came up."""

    server: BackedUpServer
    records: int
    restored_s: float
    read_s: float
    faults: list[str]


async def rehearse(
    file: BinaryIO, backups: Sequence[Summary], clock: Clock, progress: Progress, tell: Callable[[Rehearsal], None]
) -> None:
    """Restore verified backups into a new etcd one after the other, let their servers read them, and end that etcd.

    `tell` is called with each result. Raises EtcdNotFound, EtcdFailed, OSError: this machine cannot rehearse; and what
    `Restore.run` raises.
    """
    async with _throw_away_store() as (store, died):
        for summary in backups:
            tell(await _rehearse_one(file, summary, store, died, clock, progress))


async def _rehearse_one(
    file: BinaryIO, summary: Summary, store: Store, died: asyncio.Task[Exception], clock: Clock, progress: Progress
) -> Rehearsal:
    server, rng = summary.server, random.SystemRandom()
    begun = clock.now()
    file.seek(summary.start)
    await Restore(store, Keys(server.prefix), summary, rng).run(BackupReader(file), progress, replace=False)
    restored = clock.now()
    found = await (_read_by_hq(store, died, clock) if server is HQ else _read_records(server, store))
    faults = [f"cannot read {record}" for record in found.unreadable[:_NAMED_AT_MOST]]
    if more := len(found.unreadable) - len(faults):
        faults.append(f"cannot read {more} more records")
    for kind, count in sorted(found.counts.items()):
        lost = summary.records[kind] - count - sum(one.startswith(f"{kind}/") for one in found.unreadable)
        if lost:
            faults.append(f"shows {count} of the {summary.records[kind]} records of kind {kind}")
    return Rehearsal(server, sum(summary.records.values()), restored - begun, clock.now() - restored, faults)


@asynccontextmanager
async def _throw_away_store() -> AsyncIterator[tuple[Store, asyncio.Task[Exception]]]:
    """A store on an etcd of its own, and a task that ends if that etcd does."""
    from store.embedded import EmbeddedEtcd
    from store.etcd import EtcdConfig, EtcdStore

    with tempfile.TemporaryDirectory(prefix="hq-rehearsal-") as directory:  # readable by its owner only
        etcd = EmbeddedEtcd(Path(directory), quota_bytes=_QUOTA_BYTES)
        await etcd.start()
        died: asyncio.Task[Exception] = asyncio.create_task(etcd.process.wait_for_exit())
        store = EtcdStore(EtcdConfig((etcd.endpoint,)))
        try:
            yield store, died
        finally:
            died.cancel()
            await store.close()
            await etcd.stop()


async def _read_by_hq(store: Store, died: asyncio.Task[Exception], clock: Clock) -> RestoredRecords:
    replica = Replica(ReplicaConfig(replica="rehearsal"), store, clock, random.SystemRandom())
    await _until_loaded(replica.run(), replica.loading.loaded, died)
    unreadable = [f"{record.kind}/{record.rest}: {record.error}" for record in replica.cache.quarantine.all()]
    return RestoredRecords({k.SPEC: len(replica.cache)}, unreadable)


async def _read_records(server: BackedUpServer, store: Store) -> RestoredRecords:
    """Read records as a controller would (control/, which HQ does not import)."""
    keys, decode = Keys(server.prefix), messages(server)
    counts, unreadable = dict.fromkeys(decode, 0), []
    _, revision = await store.get(keys.epoch)
    async with aclosing(listing(store, keys.prefix, keys.end, revision)) as parts:
        async for part in parts:
            for record in part.records:
                kind, key = keys.name(record.key)
                if kind not in decode:
                    continue
                try:
                    decode[kind].FromString(record.value)
                    counts[kind] += 1
                except DecodeError as error:
                    unreadable.append(f"{kind}/{key}: {error}")
    return RestoredRecords(counts, unreadable)


def messages(server: BackedUpServer) -> dict[str, type[Message]]:
    """The classes of the records that are kept of a controller, by kind."""
    found = {}
    for kind, name in server.messages.items():
        module, _, of = name.rpartition(".")
        found[kind] = getattr(import_module(module), of)
    return found


async def _until_loaded(run: Coroutine[Any, Any, None], loaded: asyncio.Event, died: asyncio.Task[Exception]) -> None:
    """Run a server until it has read everything, then end it. Raises what ended it before that, or why etcd ended."""
    running, loading = asyncio.create_task(run), asyncio.create_task(loaded.wait())
    try:
        await asyncio.wait((running, loading, died), return_when=asyncio.FIRST_COMPLETED)
        if died.done():
            raise Unrehearsed(str(died.result()))
        if running.done():
            running.result()
    finally:
        loading.cancel()
        running.cancel()
        await asyncio.wait((running, loading))
