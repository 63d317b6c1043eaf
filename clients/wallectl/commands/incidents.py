"""walle incidents"""

from __future__ import annotations

import click

from wallectl.asking import call
from wallepb.v1 import service_pb2 as pb


@click.command()
def incidents() -> None:
    """Show racks and switches whose hosts fail together."""
    shown = call("ListIncidents", pb.ListIncidentsRequest()).incidents
    click.echo("\n".join(shown) or "no incidents")
