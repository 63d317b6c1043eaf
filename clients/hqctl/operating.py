"""status, transitions, quarantine: what an installation looks like from inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clients.hqctl.exits import Exit
from clients.hqctl.explaining import guard_words
from clients.hqctl.formats import output_option, print_json
from clients.hqctl.session import Session, connected
from clients.hqctl.sources import warn_of
from clients.hqctl.tables import print_table
from clients.hqctl.words import clock_time, seconds_of, size, span
from hqpb.v1 import admin_pb2

if TYPE_CHECKING:
    from clients.client import Client


@click.command()
@output_option("table", "json")
@connected
def status(session: Session, output: str) -> None:
    """Show the replicas, the store's members and the guard."""

    async def work(client: Client) -> Exit:
        answer = await client.admin.list_replicas()
        if output == "json":
            print_json(answer)
            return Exit.OK
        guard = (await client.admin.get_guard()).guard
        source = answer.source
        click.echo(f"Cluster {source.cluster or '-'}, version {source.version}, epoch {source.epoch}\n")
        print_table(("REPLICA", "LAST SEEN"), [_replica(replica) for replica in answer.replicas])
        if answer.members:
            click.echo()
            names = ("STORE MEMBER", "VERSION", "LEADER", "SIZE", "IN USE", "ERROR")
            print_table(names, [_member(member) for member in answer.members])
        click.echo(f"\nGuard: {guard_words(guard)}")
        warn_of([source])
        return Exit.OK

    session.run(work)


@click.command()
@click.argument("instance_id", metavar="[INSTANCE]", default="")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many.")
@output_option("table", "json")
@connected
def transitions(session: Session, instance_id: str, limit: int, output: str) -> None:
    """Show recent flips and recoveries, newest first, as one replica saw them."""

    async def work(client: Client) -> Exit:
        answer = await client.admin.list_transitions(instance_id, page_size=limit)
        if output == "json":
            print_json(answer)
        elif answer.transitions:
            names = ("TIME", "INSTANCE", "REVISION", "NODE", "READY", "REASON", "DECIDED BY")
            print_table(names, [_transition(transition) for transition in answer.transitions])
        else:
            click.echo("No flip or recovery is remembered.", err=True)
        return Exit.OK

    session.run(work)


@click.command()
@output_option("table", "json")
@connected
def quarantine(session: Session, output: str) -> None:
    """Show records that the answering replica could not decode.

    The instances concerned are shown as they were before; a good write or a delete clears the record.
    """

    async def work(client: Client) -> Exit:
        answer = await client.admin.list_quarantine()
        if output == "json":
            print_json(answer)
        elif answer.records:
            print_table(("KEY", "VERSION", "SERVED", "ERROR"), [_record(record) for record in answer.records])
        else:
            click.echo("Nothing is in quarantine.", err=True)
        return Exit.OK

    session.run(work)


def _replica(replica: admin_pb2.ReplicaInfo) -> list[str]:
    seen = "answers now" if replica.self else f"{span(seconds_of(replica.silent_for))} ago"
    return [replica.replica, seen]


def _member(member: admin_pb2.StoreMember) -> list[str]:
    return [
        member.endpoint,
        member.version or "-",
        "yes" if member.leader else "no",
        size(member.db_size_bytes),
        size(member.db_size_in_use_bytes),
        member.error or "-",
    ]


def _transition(transition: admin_pb2.Transition) -> list[str]:
    return [
        clock_time(transition.time),
        transition.instance_id,
        transition.revision_id,
        transition.node_name or "-",
        "yes" if transition.ready else "no",
        transition.condition.reason or "-",
        transition.condition.receipt.decided_by or "-",
    ]


def _record(record: admin_pb2.QuarantinedRecord) -> list[str]:
    served = "as before" if record.served_from_older else "not at all"
    return [record.key, str(record.version), served, record.error]
