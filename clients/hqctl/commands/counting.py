"""count: how many instances there are, by service, node, revision or reason, and how many of them are ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit
from hqcli.formats import LISTS, is_data, output_option, print_items
from hqcli.terminal import print_table
from hqctl.asking.options import selecting, strong_option
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.output.sources import not_of, tell_unknown_services, warn_of
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client


GROUPS = {
    "service": pb.COUNT_GROUP_SERVICE,
    "node": pb.COUNT_GROUP_NODE,
    "revision": pb.COUNT_GROUP_REVISION,
    "reason": pb.COUNT_GROUP_REASON,
}


@click.command()
@selecting
@click.option("--by", type=click.Choice(list(GROUPS)), help="Group by; one line for each.")
@strong_option
@click.option("--no-headers", is_flag=True, help="Omit the header line of the table.")
@output_option(*LISTS)
@with_session
def count(
    session: HqctlSession, where: pb.InstanceFilter, by: str | None, strong: bool, no_headers: bool, output: str
) -> None:
    """Count the instances that match all of the options.

    By revision, an instance counts once for each of its revisions, ready if that revision is. By reason, those that are
    not ready count, by why that is. UNKNOWN: no agent has reported yet; --not-ready chooses those, too.
    """

    async def work(client: Client) -> Exit:
        from hqclient.client import STRONG

        group = GROUPS[by] if by else pb.COUNT_GROUP_UNSPECIFIED
        answer = await client.count(where, by=group, read=STRONG if strong else None)
        if wrong := not_of([*where.cluster, session.cluster], answer.sources):
            complain(wrong)
            return Exit.REFUSED
        if is_data(output):
            print_items(answer.groups, answer.sources, output)
        else:
            _print(answer, by or "all", headers=not no_headers)
        if not any(group.total for group in answer.groups):
            await tell_unknown_services(client, where, answer.sources)
        warn_of(answer.sources)
        return Exit.OK

    session.run(work)


def _print(answer: pb.CountInstancesResponse, by: str, *, headers: bool) -> None:
    names = (by.upper(), "TOTAL", "READY", "NOT-READY", "UNKNOWN")
    rows = [_row(group) for group in answer.groups]
    skipped = 1 if by == "all" else 0
    print_table(names[skipped:], [row[skipped:] for row in rows], headers=headers)


def _row(group: pb.InstanceCount) -> list[str]:
    not_ready = group.total - group.ready - group.unknown
    return [group.key or "-", *map(str, (group.total, group.ready, not_ready, group.unknown))]
