"""quarantine: records that could not be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hqctl.asking.exits import Exit
from hqctl.asking.session import Session, connected
from hqctl.output.formats import LISTS, is_data, output_option, print_items
from hqctl.output.sources import check_cluster
from hqctl.output.tables import print_table
from hqpb.v1 import admin_pb2

if TYPE_CHECKING:
    from hqclient.client import Client


@click.command()
@output_option(*LISTS)
@connected
def quarantine(session: Session, output: str) -> None:
    """Show records that the answering replica could not decode.

    The affected instances are shown as last decoded; a valid write or a delete replaces the record.
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
