"""count: how many, and how many of them are ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clients.hqctl.asking.exits import Exit
from clients.hqctl.asking.selecting import selecting, strong_option
from clients.hqctl.asking.session import Session, complain, connected
from clients.hqctl.output.formats import LISTS, is_data, output_option, print_items
from clients.hqctl.output.sources import not_of, warn_of
from clients.hqctl.output.tables import print_table
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from clients.client import Client

GROUPS = {
    "service": pb.COUNT_GROUP_SERVICE,
    "node": pb.COUNT_GROUP_NODE,
    "revision": pb.COUNT_GROUP_REVISION,
}


@click.command()
@selecting
@click.option("--by", type=click.Choice(list(GROUPS)), help="One line for each.")
@strong_option
@click.option("--no-headers", is_flag=True, help="Leave out the first line of the table.")
@output_option(*LISTS)
@connected
def count(
    session: Session, where: pb.InstanceFilter, by: str | None, strong: bool, no_headers: bool, output: str
) -> None:
    """Count the instances that match all of the options.

    By revision, an instance counts once for each of its revisions, ready if that revision is.
    """

    async def work(client: Client) -> Exit:
        from clients.client import STRONG

        group = GROUPS[by] if by else pb.COUNT_GROUP_UNSPECIFIED
        answer = await client.count(where, by=group, read=STRONG if strong else None)
        if wrong := not_of([*where.cluster, session.cluster], answer.sources):
            complain(wrong)
            return Exit.REFUSED
        if is_data(output):
            print_items(answer.groups, answer.sources, output)
        else:
            _print(answer, by or "all", headers=not no_headers)
        warn_of(answer.sources)
        return Exit.OK

    session.run(work)


def _print(answer: pb.CountInstancesResponse, by: str, *, headers: bool) -> None:
    rows = [_row(group.key or "-", group.total, group.ready) for group in answer.groups]
    if by == "all":
        print_table(("TOTAL", "READY", "NOT-READY"), [row[1:] for row in rows] or [["0", "0", "0"]], headers=headers)
    else:
        print_table((by.upper(), "TOTAL", "READY", "NOT-READY"), rows, headers=headers)


def _row(key: str, total: int, ready: int) -> list[str]:
    return [key, str(total), str(ready), str(total - ready)]
