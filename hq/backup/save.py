"""Taking a backup: everything that cannot be rebuilt, as it was at one version of the store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from hq import keys as k
from hq.backup.archive import FORMAT, Writer
from hqpb.storage.v1 import backup_pb2
from serving.clock import Clock
from store.listing import listing
from store.port import Compacted, Store

# Everything else belongs to running replicas, or to the revisions of the store that was saved.
KEPT: Final = (k.SPEC, k.SECRETS, k.STATUS, k.OPS)
_TRIES: Final = 3

Progress = Callable[[int], None]
"""Told how many more records were written or read."""


class NothingToSave(Exception):
    """There is nothing of HQ below the prefix, or nothing complete."""


class NotHq(Exception):
    """What is below the prefix belongs to another program."""


async def check_is_hq(store: Store, keys: k.Keys) -> None:
    """Raises NotHq if anything below the prefix is of a kind that HQ does not store. Reads one key of each kind."""
    start = keys.prefix
    while (page := await store.page(start, keys.end, revision=0, limit=1)).records:
        kind = keys.name(page.records[0].key).kind
        if kind not in k.ALL:
            where = keys.prefix.decode()
            raise NotHq(f"{where} holds records of kind {kind!r}, which is not HQ's: give the prefix of HQ's records")
        start = k.prefix_end(keys.of(kind)) if page.records[0].key == keys.of(kind) else k.prefix_end(keys.of(kind, ""))


async def save(store: Store, keys: k.Keys, file: BinaryIO, clock: Clock, progress: Progress) -> Writer:
    """Write a backup of what is in the store.

    Raises:
        NothingToSave: HQ never served below this prefix, or a restore is unfinished there.
        NotHq: the records below the prefix are another program's.
        Compacted: the store gave up that version before everything was read; begin again.
        Unavailable: the store does not answer.
    """
    epoch, revision = await store.get(keys.epoch)
    if epoch is None:
        raise NothingToSave(f"no data of HQ below {keys.prefix.decode()}: check --etcd and --prefix")
    await check_is_hq(store, keys)
    if (await store.get(keys.restore, revision=revision))[0] is not None:
        raise NothingToSave(
            "a restore is in progress there, or was interrupted: wait for it, or run `hq restore` again with its file"
        )
    writer = Writer(file)
    header = backup_pb2.BackupHeader(format=FORMAT, revision=revision, epoch=epoch.value)
    header.prefix, header.unix_ms = keys.prefix.decode(), clock.wall_ms()
    writer.header(header)
    async with aclosing(listing(store, keys.prefix, keys.end, revision)) as parts:
        async for part in parts:
            kept = [record for record in part.records if keys.name(record.key).kind in KEPT]
            for record in kept:
                writer.record(record.key[len(keys.prefix) :], record.value)
            progress(len(kept))
    writer.footer()
    return writer


async def save_to(
    path: Path, store: Store, keys: k.Keys, clock: Clock, progress: Progress, *, force: bool = False
) -> Writer:
    """Write a backup to a file, which appears under its name when it is complete. Readable by its owner only.

    `force`: replace a file that is there. Raises NothingToSave, Compacted (after some tries),
    Unavailable, OSError; FileExistsError: there is one.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            with _whole(path, force=force) as file:
                return await save(store, keys, file, clock, progress)
        except Compacted:
            if not tries_left:
                raise
    raise AssertionError("unreachable")


@contextmanager
def _whole(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """A file beside the path that takes its place if all goes well, and is removed if not."""
    _check_free(path, force=force)
    # Not by process id, which is always the same in a container: what a killed one left must not stop the next.
    descriptor, name = tempfile.mkstemp(".part", f".{path.name}.", path.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _check_free(path, force=force)  # it took long
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _check_free(path: Path, *, force: bool) -> None:
    if not force and path.exists():
        raise FileExistsError(f"{path} exists: choose another name, or give --force to replace it")
