"""epoch and quarantine: whether the store's contents are trusted, and which of them cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit
from hqcli.formats import LISTS, TEXTS, is_data, output_option, print_data, print_items
from hqcli.readable import clock_time, plural
from hqcli.terminal import print_table, say
from hqctl.asking.options import ordering
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.output.sources import check_cluster
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client

_IF_DOUBTED = (
    "If this is the wrong etcd, correct --etcd of the replicas; if data was lost, run `hq restore`; "
    "if this is all there is, `hqctl epoch confirm --reason …`."
)


@click.group()
def epoch() -> None:
    """Show whether HQ trusts the store's contents, or confirm them.

    An epoch is one history of the store; restoring or replacing etcd begins a new one. HQ doubts a new epoch that holds
    far less than the last, and clients then keep the addresses they knew, until `hq restore` or `confirm`, or until
    half is back.
    """


@epoch.command(short_help="Show whether HQ trusts the store's contents, and why.")
@output_option(*TEXTS)
@with_session
def status(session: HqctlSession, output: str) -> None:
    """Show whether HQ trusts the store's contents, as seen by the answering replica."""

    async def work(client: Client) -> Exit:
        answer = await client.admin.get_epoch()
        check_cluster(session, answer.source)
        if is_data(output):
            print_data(answer.state, output)
        else:
            print_epoch(answer.state)
        return Exit.OK

    session.run(work)


@epoch.command(short_help="Confirm that the store's contents are complete.")
@click.argument("epoch", required=False)
@ordering
@with_session
def confirm(session: HqctlSession, epoch: str | None, by: str, reason: str) -> None:
    """Confirm that the store's contents are complete.

    Clients then trust them, and drop the addresses they had kept that are not in the store.

    EPOCH, as shown by `hqctl epoch status`, ensures that you confirm the epoch you have checked. Without it the epoch
    is the current one.
    """

    async def work(client: Client) -> Exit:
        checked = epoch or (await client.admin.get_epoch()).state.epoch
        print_epoch((await client.admin.confirm_epoch(checked, by=by, reason=reason)).state)
        return Exit.OK

    session.run(work, writing=True, look="hqctl epoch status")


def print_epoch(state: admin_pb2.EpochState) -> None:
    """Print what is known of an epoch as a few lines."""
    click.echo(f"Epoch {state.epoch} holds {plural(state.instances, 'instance')}, {state.ready} of them ready.")
    if state.instances_before:
        click.echo(f"The one before held {state.instances_before}, {state.ready_before} of them ready.")
    if state.trust == pb.EPOCH_TRUST_DOUBTED:
        complain(f"doubted: {state.doubt}. {_IF_DOUBTED}")
    elif state.by:
        say(f"Confirmed by {state.by} at {clock_time(state.time)}: {state.reason}.")
    elif state.trust == pb.EPOCH_TRUST_CONFIRMED:
        click.echo("Confirmed: a backup was restored.")
    else:
        click.echo("Trusted: nothing is in doubt.")


@click.command()
@output_option(*LISTS)
@with_session
def quarantine(session: HqctlSession, output: str) -> None:
    """Show records that the answering replica could not decode.

    The affected instances are shown as last decoded, or not at all (SERVED). A valid write or a delete replaces the
    record of an instance or a status. If the record holds secrets, delete the instance and create it again with them.
    """

    async def work(client: Client) -> Exit:
        answer = await client.admin.list_quarantine()
        check_cluster(session, answer.source)
        if is_data(output):
            print_items(answer.records, [answer.source], output)
        elif answer.records:
            print_table(("KEY", "VERSION", "SERVED", "ERROR"), [_record(record) for record in answer.records])
        else:
            click.echo("Nothing is in quarantine.", err=True)
        return Exit.OK

    session.run(work)


def _record(record: admin_pb2.QuarantinedRecord) -> list[str]:
    served = "as before" if record.served_from_older else "not at all"
    return [record.key, str(record.version), served, record.error]
