"""The commands `hq backup`, `hq backup verify` and `hq restore`."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import click

from hq.backup.archive import BackupReader, BadBackup, Summary, choose_backup, verify_backups
from hq.backup.rehearsal import Rehearsal, Unrehearsed, rehearse
from hq.backup.restore import Disturbed, NotEmpty, Restore
from hq.backup.save import BackupPlace, ForeignRecords, NothingToSave, save, save_to
from hq.backup.save import Progress as Tell
from hq.backup.servers import HQ, SERVERS, BackedUpServer
from hq.process import options
from serving.clock import SystemClock
from serving.errors import ServiceError
from serving.flags import InputFile
from store.embedded import EtcdFailed, EtcdNotFound
from store.keys import Keys
from store.port import Compacted, Disconnected, Store, StoreError, Unavailable

_OF_BACKUPS = (BadBackup, NothingToSave, ForeignRecords, NotEmpty, Disturbed, Unrehearsed)
_TOLD = (*_OF_BACKUPS, Compacted, StoreError, ServiceError, EtcdFailed, EtcdNotFound, OSError)
_AWAY = 5  # the exit code of all commands if the store is away
_of = click.option("--of", type=click.Choice(list(SERVERS)), help=f"Whose records.  [default: {HQ.name}]")
_prefix = click.option(
    "--prefix",
    default="",
    help="Prefix of the server's keys in the store.  [default: that of the server: HQ_PREFIX, CMS_PREFIX, ...]",
)


class _SaveUnlessNamed(click.Group):
    """`hq backup FILE` is short for `hq backup save FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args.insert(0, "save")
        return super().parse_args(ctx, args)


@click.group(
    "backup",
    cls=_SaveUnlessNamed,
    subcommand_metavar="[save] [OPTIONS] FILE | hq backup verify FILE",
    short_help="Save everything that HQ, or another server, has in etcd to a file.",
)
def backup() -> None:
    """Write everything that HQ, or another server, has in etcd to a file: `hq backup --etcd ... FILE`.

    Everything at one version, while the server keeps serving. `hq backup verify FILE` checks such a file.
    Options: see `hq backup save --help`.
    """


@backup.command("save")
@options.etcd
@_of
@click.option("--all", "every", is_flag=True, help="The records of HQ, CMS, Nanny and Wall-E, all at one version.")
@_prefix
@click.option("--force", is_flag=True, help="Replace FILE if it exists, once the new backup is complete.")
@click.argument("file", type=click.Path(allow_dash=True))
def backup_save(file: str, of: str | None, every: bool, prefix: str, force: bool, **given: Any) -> None:
    """Write a backup to FILE, or to standard output (-).

    The file appears under its name when it is complete, readable by its owner only: it says where secrets are stored.
    """
    if file == "-" and sys.stdout.isatty():
        raise click.UsageError("a backup is binary: redirect it to a file or pipe it to a program")
    if file != "-" and not Path(file).absolute().parent.is_dir():
        raise click.BadParameter(f"{file}: its folder is not there: create it, or choose another file")
    if every and (of or prefix):
        raise click.UsageError("--all: not together with --of or --prefix (set HQ_PREFIX, CMS_PREFIX, ... instead)")
    servers = SERVERS.values() if every else [SERVERS[of or HQ.name]]
    _run(_save(file, [_place(server, prefix) for server in servers], given, force=force))


@backup.command("verify")
@click.argument("file", type=InputFile(allow_dash=True))
def backup_verify(file: str) -> None:
    """Verify that FILE is complete, and show what it contains."""
    with _report_errors(), _open_backup(file) as opened:
        for summary in verify_backups(opened):
            _describe(summary)


class _EtcdUnlessNew(click.Command):
    """--into-new stands for --etcd."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--into-new" in args:
            ctx.default_map = {**(ctx.default_map or {}), "etcd": "127.0.0.1:2379"}
        return super().parse_args(ctx, args)


@click.command(cls=_EtcdUnlessNew)
@options.etcd
@_of
@_prefix
@click.option(
    "--replace",
    is_flag=True,
    help="Delete everything below the prefix first; without it, only parts of FILE may be there.",
)
@click.option(
    "--into-new",
    is_flag=True,
    help="A rehearsal: into a new etcd, started for it and ended with it. Of all servers in FILE, or --of one.",
)
@click.argument("file", type=InputFile(allow_dash=True))
def restore(file: str, of: str | None, prefix: str, replace: bool, into_new: bool, **given: Any) -> None:
    """Restore a server's backup into etcd, as a new epoch. Records of other servers stay as they are.

    FILE (- is standard input) is read completely and checked before anything is written. The server's processes may
    run: meanwhile they answer UNAVAILABLE, afterwards they serve the restored data, and watches start over. If it is
    interrupted, run it again.
    """
    if into_new and (replace or prefix):
        raise click.UsageError("--into-new: not together with --replace or --prefix (the new etcd is empty)")
    if into_new:
        _run(_rehearse(file, SERVERS[of] if of else None))
        return
    _run(_restore(file, _place(SERVERS[of or HQ.name], prefix), replace, given))


def _place(server: BackedUpServer, prefix: str) -> BackupPlace:
    return BackupPlace(server, Keys(prefix or os.environ.get(f"{server.name.upper()}_PREFIX") or server.prefix))


async def _save(file: str, places: Sequence[BackupPlace], given: dict[str, Any], *, force: bool) -> None:
    clock = SystemClock()
    async with _store(given) as store:
        count = sum([(await store.newest(keys.prefix, keys.end))[0] for _, keys in places])
        with _progress("saving", count) as tell:
            if file == "-":
                writers = await save(store, places, sys.stdout.buffer, clock, tell)
                sys.stdout.buffer.flush()
            else:
                writers = await save_to(Path(file), store, places, clock, tell, force=force)
    for server, keys in places:
        if (writer := writers.get(server.name)) is not None:
            size = f"{writer.records} records, {writer.size_bytes} bytes"
            click.echo(f"saved {size} of {server.title}", err=True)
        else:
            click.echo(f"nothing of {server.title} below {keys.prefix.decode()}", err=True)


async def _restore(file: str, place: BackupPlace, replace: bool, given: dict[str, Any]) -> None:
    with _open_backup(file) as opened:
        summary = choose_backup(verify_backups(opened), place.server)
        _describe(summary)
        click.echo(f"after the restore of {place.server.title}: {place.server.afterwards}", err=True)
        opened.seek(summary.start)
        async with _store(given) as store:
            with _progress("restoring", summary.records.total()) as tell:
                one = Restore(store, place.keys, summary, random.SystemRandom())
                epoch = await one.run(BackupReader(opened), tell, replace=replace)
    click.echo(f"restored {summary.records.total()} records; the epoch is now {epoch}", err=True)


async def _rehearse(file: str, only: BackedUpServer | None) -> None:
    # SIGTERM ends it as Ctrl-C does: with all that it started.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
    failed: list[str] = []

    def tell(one: Rehearsal) -> None:
        for fault in one.faults:
            click.echo(f"{one.server.title} {fault}", err=True)
        if one.faults:
            failed.append(one.server.title)
            return
        times = f"restored in {one.restored_s:.1f} s, read in {one.read_s:.1f} s"
        click.echo(f"{one.server.title} came up with its {one.records} records: {times}", err=True)

    with _open_backup(file) as opened:
        backups = verify_backups(opened)
        if only is not None:
            backups = [choose_backup(backups, only)]
        for summary in backups:
            _describe(summary)
        with _progress("restoring", sum(summary.records.total() for summary in backups)) as progress:
            await rehearse(opened, backups, SystemClock(), progress, tell)
    if failed:
        raise Unrehearsed(f"{', '.join(failed)} did not come up whole: mend the records named above, then save again")


def _describe(summary: Summary) -> None:
    made = datetime.fromtimestamp(summary.header.unix_ms / 1000, UTC).isoformat(timespec="seconds")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(summary.records.items())) or "nothing"
    where = f"{summary.server.title}, {summary.header.prefix} at version {summary.header.revision}, {made}"
    click.echo(f"complete backup of {where}: {kinds}; sha256 {summary.sha256.hex()}", err=True)


@contextmanager
def _open_backup(file: str) -> Iterator[BinaryIO]:
    """The file; standard input is copied to a temporary file, since it is read twice."""
    if file != "-":
        with Path(file).open("rb") as opened:
            yield opened
        return
    with tempfile.TemporaryFile() as copy:  # nobody else can open it, and it has no name
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.seek(0)
        yield copy


@asynccontextmanager
async def _store(given: dict[str, Any]) -> AsyncIterator[Store]:
    from serving.storage.flags import etcd_config
    from store.etcd import EtcdStore

    store = EtcdStore(etcd_config(given))
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def _progress(what: str, total: int) -> Iterator[Tell]:
    """A progress bar, on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda more: progress.advance(task, more)


@contextmanager
def _report_errors() -> Iterator[None]:
    """Reports in one line what an operator can fix."""
    try:
        yield
    except _TOLD as error:
        words = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        is_away = isinstance(error, Unavailable | Disconnected)
        step = ": check --etcd, and whether etcd runs" if is_away else ""
        click.echo(f"hq: {words}{step}", err=True)
        sys.exit(_AWAY if is_away else 1)


def _run(main: Coroutine[Any, Any, None]) -> None:
    try:
        with _report_errors():
            asyncio.run(main)
    except KeyboardInterrupt:
        click.echo("hq: interrupted", err=True)
        sys.exit(130)
