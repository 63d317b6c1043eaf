"""delete: remove instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clients.hqctl.exits import Exit
from clients.hqctl.naming import naming_cluster
from clients.hqctl.session import Session, connected

if TYPE_CHECKING:
    from clients.client import Client


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="INSTANCE...")
@click.option("--version", type=click.IntRange(1), help="Only if it is at this version (of one instance).")
@naming_cluster
@connected
def delete(session: Session, ids: tuple[str, ...], version: int | None) -> None:
    """Remove instances with their secrets and status."""
    if version is not None and len(ids) > 1:
        raise click.UsageError("--version is for one instance: each has its own")

    async def work(client: Client) -> Exit:
        worst = Exit.OK
        for instance_id in ids:
            worst = max(worst, await _delete(session, client, instance_id, version or 0))
        return worst

    session.run(work, writing=True)


async def _delete(session: Session, client: Client, instance_id: str, version: int) -> Exit:
    from clients.client import HqApiError

    try:
        await client.delete(instance_id, version=version)
    except HqApiError as error:
        return session.tell(error, writing=True, subject=instance_id)
    click.echo(f"{instance_id} deleted")
    return Exit.OK
