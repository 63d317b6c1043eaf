"""delete: remove instances."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit
from hqcli.readable import plural
from hqctl.asking.options import is_everything, is_meant, selecting_by_options
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.manifests.filenames import documents_or_exit, filenames
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client

ASK_FROM = 2
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Doomed:
    """An instance to be removed; `version` 0: whatever it is now."""

    id: str
    version: int = 0


@click.command()
@click.argument("ids", nargs=-1, metavar="[INSTANCE]...")
@filenames(required=False)
@selecting_by_options
@click.option("--all", "everything", is_flag=True, help="All instances.")
@click.option("--version", type=click.IntRange(1), help="Only if the instance is at this version.")
@click.option("--ignore-not-found", is_flag=True, help="Treat missing instances as deleted.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted without deleting.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@with_session
def delete(
    session: HqctlSession,
    ids: tuple[str, ...],
    names: tuple[str, ...],
    recursive: bool,
    where: pb.InstanceFilter,
    everything: bool,
    version: int | None,
    ignore_not_found: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete instances with their secrets and status: by id, by file, or all that match the options.

    An instance chosen by options is kept if somebody changes it meanwhile. On a terminal you are
    asked before two or more, or any chosen by options, are deleted; in a script, options need --yes.
    """
    session = session.for_cluster(where) if ids or names else session
    chosen = everything or not is_everything(where)
    _check_one_way(ids, names, chosen)
    if names:
        ids = tuple(d.instance.meta.id for d in documents_or_exit(names, recursive=recursive))
    if version is not None and len(ids) != 1:
        raise click.UsageError("--version takes exactly one instance")

    async def work(client: Client) -> Exit:
        doomed = await _matching(client, where) if chosen else [Doomed(one, version or 0) for one in ids]
        if not doomed:
            click.echo("No instance matches.", err=True)
        elif not dry_run and not yes and not _confirm_deletion(doomed, chosen=chosen):
            return Exit.REFUSED
        do, worst = _would_delete if dry_run else _delete, Exit.OK
        for one in doomed:
            worst = max(worst, await do(session, client, one, ignore_not_found or chosen))
        return worst

    session.run(work, writing=not dry_run)


def _check_one_way(ids: tuple[str, ...], names: tuple[str, ...], chosen: bool) -> None:
    ways = sum(map(bool, (ids, names, chosen)))
    if ways > 1:
        raise click.UsageError("give ids, -f FILE or selection options, not several of them")
    if not ways:
        raise click.UsageError("choose instances: ids, or -f FILE, or selection options (--all: every instance)")


async def _matching(client: Client, where: pb.InstanceFilter) -> list[Doomed]:
    fields = ("meta.id", "meta.version", "meta.labels", *(("status",) if where.agent else ()))
    found = [i async for page in client.find(where, fields=fields) for i in page.instances]
    return [Doomed(i.meta.id, i.meta.version) for i in found if is_meant(i, where)]


def _confirm_deletion(doomed: Sequence[Doomed], *, chosen: bool) -> bool:
    """Ask for confirmation; a script that named each id needs none."""
    if not sys.stdin.isatty():
        if chosen:
            complain(
                f"{plural(len(doomed), 'instance')} would be deleted, and there is no terminal to confirm: give --yes."
            )
        return not chosen
    if len(doomed) < ASK_FROM and not chosen:
        return True
    shown = ", ".join(one.id for one in doomed[:SHOWN]) + (", …" if len(doomed) > SHOWN else "")
    click.echo(f"{plural(len(doomed), 'instance')}: {shown}", err=True)
    return click.confirm("Delete?", err=True)


async def _delete(session: HqctlSession, client: Client, one: Doomed, ignore_not_found: bool) -> Exit:
    from hqclient.client import HqApiError

    try:
        await client.delete(one.id, version=one.version)
    except HqApiError as error:
        if ignore_not_found and error.code.name == "NOT_FOUND":
            return Exit.OK
        return session.tell(error, writing=True, subject=one.id)
    click.echo(f"{one.id} deleted")
    return Exit.OK


async def _would_delete(session: HqctlSession, client: Client, one: Doomed, ignore_not_found: bool) -> Exit:
    from hqclient.client import HqApiError

    try:
        version = (await client.get(one.id, fields=("meta.version",))).instance.meta.version
    except HqApiError as error:
        if ignore_not_found and error.code.name == "NOT_FOUND":
            return Exit.OK
        return session.tell(error, writing=False, subject=one.id)
    if one.version not in (0, version):
        complain(f"{one.id}: its version is {version}, not {one.version}: it would not be deleted")
        return Exit.CONFLICT
    click.echo(f"{one.id} would be deleted")
    return Exit.OK
