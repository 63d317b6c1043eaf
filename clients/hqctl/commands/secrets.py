"""secrets audit: descriptors of secrets that are not their service's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit
from hqcli.formats import LISTS, is_data, output_option, print_data
from hqcli.readable import plural
from hqcli.terminal import print_table
from hqctl.asking.session import HqctlSession, with_session
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client

_COLUMNS = ("service", "instance", "revision", "name", "secret")


@click.group()
def secrets() -> None:
    """Show which secrets services name that are not their own."""


@secrets.command(short_help="List secrets that a grant has to allow.")
@click.argument("services", nargs=-1, metavar="[SERVICE]...")
@output_option(*LISTS)
@with_session
def audit(session: HqctlSession, services: tuple[str, ...], output: str) -> None:
    """List descriptors that HQ would refuse today unless the writer's grant lists them in `secrets`.

    A service's own are those whose id is the service, or begins with it and a slash. What was stored before HQ checked
    that stays, until it is written anew. Needs the role of an uploader of these services (of all, if none is named).
    """

    async def work(client: Client) -> Exit:
        rows = await _foreign(client, services)
        if is_data(output):
            print_data({"items": [dict(zip(_COLUMNS, row, strict=True)) for row in rows]}, output)
        elif rows:
            print_table([column.upper() for column in _COLUMNS], rows)
            click.echo(f"{plural(len(rows), 'secret')}: list them in `secrets` of the services' grants.", err=True)
        else:
            click.echo("All services name their own secrets only.", err=True)
        return Exit.OK

    session.run(work)


async def _foreign(client: Client, services: tuple[str, ...]) -> list[list[str]]:
    where, rows = pb.InstanceFilter(service_id=services), list[list[str]]()
    async for page in client.find(where):
        for one in page.instances:
            if not any(revision.secret_count for revision in one.spec.revision):
                continue
            service = one.meta.service_id
            for revision in (await client.get_revision(one.meta.id)).revision:
                rows += [
                    [service, one.meta.id, revision.id, secret.name, f"{secret.provider}:{_path(secret)}"]
                    for secret in revision.secret
                    if not _is_own(service, _path(secret))
                ]
    return rows


def _path(secret: instance_pb2.SecretDescriptor) -> str:
    return f"{secret.id}/{secret.key}" if secret.key else secret.id


def _is_own(service: str, path: str) -> bool:
    """Whether a secret belongs to the service, by HQ's own rule."""
    parts = path.split("/")
    return parts[0] == service and not {"", ".", ".."}.intersection(parts)
