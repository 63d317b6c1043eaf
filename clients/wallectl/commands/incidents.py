"""walle incidents"""

from __future__ import annotations

import click

from hqcli.formats import TEXTS, output_option
from hqcli.terminal import say
from hqcli.watching import watched
from wallectl.asking import call_pages
from wallectl.output import print_if_data
from wallepb.v1 import service_pb2 as pb


@click.command()
@watched
@output_option(*TEXTS)
def incidents(output: str) -> None:
    """Show racks and switches whose hosts fail together."""
    shown = call_pages("ListIncidents", pb.ListIncidentsRequest())
    if not print_if_data(shown, output):
        say("\n".join(shown.incidents) or "no incidents")
