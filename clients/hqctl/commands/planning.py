"""suspend, resume, suspensions: planned work on nodes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from hqctl.asking.exits import Exit
from hqctl.asking.session import Session, connected, warn
from hqctl.asking.spans import Span
from hqctl.commands.guarding import who
from hqctl.output.formats import LISTS, is_data, output_option, print_items
from hqctl.output.sources import check_cluster
from hqctl.output.tables import print_table
from hqctl.words import clock_time, span, stamp
from hqpb.v1 import admin_pb2

if TYPE_CHECKING:
    from hqclient.client import Client


@click.command()
@click.argument("node")
@click.option("--for", "span_s", type=Span(), required=True, help="Duration, at most 7d, e.g. 2h.")
@click.option("--reason", required=True, help="Reason, kept with the record.")
@click.option("--by", default=who, help="Who does this; default: you.")
@connected
def suspend(session: Session, node: str, span_s: float, reason: str, by: str) -> None:
    """Suspend expiry on NODE for a while, during planned work."""

    async def work(client: Client) -> Exit:
        answer = await client.admin.suspend_node(node, duration_s=span_s, by=by, reason=reason)
        until = clock_time(answer.suspension.until)
        click.echo(f"{node} is suspended until {until}. To end it early: `hqctl resume {node}`.")
        await _warn_of_a_node_nobody_is_on(client, node)
        return Exit.OK

    session.run(work, writing=True, look="hqctl suspensions")


@click.command()
@click.argument("node")
@connected
def resume(session: Session, node: str) -> None:
    """End planned work on NODE early."""

    async def work(client: Client) -> Exit:
        await client.admin.resume_node(node)
        click.echo(f"{node} is no longer suspended.")
        return Exit.OK

    session.run(work, writing=True, look="hqctl suspensions")


@click.command()
@output_option(*LISTS)
@connected
def suspensions(session: Session, output: str) -> None:
    """List suspended nodes."""

    async def work(client: Client) -> Exit:
        answer = await client.admin.list_suspensions()
        check_cluster(session, answer.source)
        if is_data(output):
            print_items(answer.suspensions, [answer.source], output)
        elif answer.suspensions:
            print_table(("NODE", "UNTIL", "LEFT", "BY", "REASON"), [_row(one) for one in answer.suspensions])
        else:
            click.echo("No node is under planned work.", err=True)
        return Exit.OK

    session.run(work)


async def _warn_of_a_node_nobody_is_on(client: Client, node: str) -> None:
    """A slip of the pen would protect nothing; that it cannot be found out is no fault."""
    from hqclient.client import HqApiError
    from hqpb.v1 import service_pb2

    try:
        counted = await client.count(service_pb2.InstanceFilter(node_name=[node]))
    except HqApiError:
        return
    if not any(group.total for group in counted.groups):
        warn(f"no instance is on {node}: check the name with `hqctl count --by node`.")


def _row(suspension: admin_pb2.Suspension) -> list[str]:
    left = span(suspension.until.seconds - time.time())
    return [suspension.node_name, stamp(suspension.until), left, suspension.by or "-", suspension.reason or "-"]
