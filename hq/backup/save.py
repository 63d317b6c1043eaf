"""Taking a backup: everything that cannot be rebuilt, as it was at one version of the store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from hq.backup.archive import BackupWriter, header_of
from hq.backup.servers import BackedUpServer
from serving.clock import Clock
from store.keys import Keys, prefix_end
from store.listing import listing
from store.port import Compacted, Store

_TRIES: Final = 3

Progress = Callable[[int], None]
"""Told how many more records were written or read."""


class BackupPlace(NamedTuple):
    """Where the records of a server are."""

    server: BackedUpServer
    keys: Keys


class NothingToSave(Exception):
    """There is nothing of the server below the prefix, or nothing complete."""


class ForeignRecords(Exception):
    """The keys below the prefix belong to another program."""


async def check_is_ours(store: Store, server: BackedUpServer, keys: Keys) -> None:
    """Raises ForeignRecords if any kind below the prefix is not the server's. Reads one key of each kind."""
    start = keys.prefix
    while (page := await store.page(start, keys.end, revision=0, limit=1)).records:
        kind = keys.name(page.records[0].key).kind
        if kind not in server.kept and kind not in server.temporary:
            where, whose = keys.prefix.decode(), f"{server.title}'s"
            raise ForeignRecords(
                f"{where} holds records of kind {kind!r}, which is not {whose}: give the prefix of {whose} records"
            )
        start = prefix_end(keys.of(kind)) if page.records[0].key == keys.of(kind) else prefix_end(keys.of(kind, ""))


async def save(
    store: Store, places: Sequence[BackupPlace], file: BinaryIO, clock: Clock, progress: Progress
) -> dict[str, BackupWriter]:
    """Write a backup of each place that has records, all at one revision of the store; return the writers by server.

    Raises:
        NothingToSave: no server ever served at any of these places, or a restore is unfinished at one.
        ForeignRecords: the records below a prefix are another program's.
        Compacted: the store gave up that version before everything was read; begin again.
        Unavailable: the store does not answer.
    """
    _, revision = await store.get(places[0].keys.epoch)
    epochs = [(place, (await store.get(place.keys.epoch, revision=revision))[0]) for place in places]
    found = [(place, epoch) for place, epoch in epochs if epoch is not None]
    if not found:
        nothing = ", nor ".join(f"of {server.title} below {keys.prefix.decode()}" for server, keys in places)
        raise NothingToSave(f"no data {nothing}: check --etcd and --prefix")
    for place, _ in found:
        await _check_is_whole(store, place, revision)
    written = {}
    for following, (place, epoch) in zip(reversed(range(len(found))), found, strict=True):
        writer = BackupWriter(file)
        writer.header(header_of(place.server.name, place.keys, revision, epoch.value, clock.wall_ms(), following))
        await _write(store, place, revision, writer, progress)
        written[place.server.name] = writer
    return written


async def _check_is_whole(store: Store, place: BackupPlace, revision: int) -> None:
    server, keys = place
    await check_is_ours(store, server, keys)
    if (await store.get(keys.restore, revision=revision))[0] is not None:
        raise NothingToSave(
            f"a restore is in progress at {keys.prefix.decode()}, or was interrupted: wait for it, or run `hq restore` "
            "again with its file"
        )


async def _write(store: Store, place: BackupPlace, revision: int, writer: BackupWriter, progress: Progress) -> None:
    server, keys = place
    async with aclosing(listing(store, keys.prefix, keys.end, revision)) as parts:
        async for part in parts:
            kept = [record for record in part.records if keys.name(record.key).kind in server.kept]
            for record in kept:
                writer.record(record.key[len(keys.prefix) :], record.value)
            progress(len(kept))
    writer.footer()


async def save_to(
    path: Path, store: Store, places: Sequence[BackupPlace], clock: Clock, progress: Progress, *, force: bool = False
) -> dict[str, BackupWriter]:
    """Write a backup to a file, which appears under its name when it is complete. Readable by its owner only.

    `force`: replace a file that is there. Raises NothingToSave, ForeignRecords, Compacted (after some tries),
    Unavailable, OSError; FileExistsError: there is one.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            with _whole(path, force=force) as file:
                return await save(store, places, file, clock, progress)
        except Compacted:
            if not tries_left:
                raise
    raise AssertionError("unreachable")


@contextmanager
def _whole(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """A file beside the path that takes its place if all goes well, and is removed if not."""
    _check_free(path, force=force)
    # Not named by process id, which is always the same in a container: a killed process's file must not stop the next.
    descriptor, name = tempfile.mkstemp(".part", f".{path.name}.", path.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _check_free(path, force=force)  # again: writing took long
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
