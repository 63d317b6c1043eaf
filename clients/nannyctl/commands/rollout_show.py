"""rollout show: the time line of a roll-out."""

from __future__ import annotations

import click

from hqcli.exits import Exit
from hqcli.formats import LISTS, is_data, output_option, print_data
from hqcli.terminal import say
from nannyctl.nanny_server import NannyServer, nanny_server
from nannyctl.output.rollouts import show_rollout
from nannypb.v1 import service_pb2 as pb


@click.command("show")
@click.argument("name")
@click.argument("snapshot_id", default="")
@output_option(*LISTS)
@nanny_server
def show(server: NannyServer, name: str, snapshot_id: str, output: str) -> None:
    """Show a roll-out: who ordered it, its batches, which instances failed and why, what became of it.

    By default that of the snapshot that was ordered ACTIVE last.
    """
    server.run(_print_rollout(server, pb.GetRolloutRequest(service_id=name, snapshot_id=snapshot_id), output))


async def _print_rollout(server: NannyServer, request: pb.GetRolloutRequest, output: str) -> Exit:
    answer = await server.call("GetRollout", request)
    if is_data(output):
        print_data(answer, output)
    elif not answer.HasField("rollout"):
        click.echo(f"{request.service_id}: no snapshot was ordered ACTIVE yet.", err=True)
    else:
        say(show_rollout(request.service_id, answer.rollout))
    return Exit.OK
