"""why and describe: the story of an instance's readiness, and the instance itself."""

from __future__ import annotations

import asyncio
import sys
import textwrap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit
from hqcli.formats import TEXTS, as_dict, is_data, output_option, print_data, yaml_text
from hqcli.readable import truth
from hqcli.terminal import colour_of, escape_controls, width_of
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.asking.transitions import fetch_transitions
from hqctl.output.sources import merged_sources, not_of, warn_of
from hqctl.output.story import story, wrap_line
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client

READY_COLOURS = {"yes": "green", "no": "red", "unknown": "yellow"}


@click.command()
@click.argument("instance_id", metavar="INSTANCE")
@output_option(*TEXTS)
@with_session
def why(session: HqctlSession, instance_id: str, output: str) -> None:
    """Show why an instance is ready or not, since when, and what to do next.

    Also shows each revision with its last report, deadline and decision; what happened; and the guard. It is the
    view of one replica, on its own clock.
    """

    async def work(client: Client) -> Exit:
        answer, moves = await asyncio.gather(client.explain(instance_id), _moves(session, instance_id))
        if wrong := not_of([session.cluster], answer.sources):
            complain(wrong)
            return Exit.REFUSED
        if is_data(output):
            print_data(answer, output)
        else:
            _print(answer, moves)
        warn_of(answer.sources)
        return Exit.OK

    session.run(work)


@click.command()
@click.argument("instance_id", metavar="INSTANCE")
@output_option(*TEXTS)
@with_session
def describe(session: HqctlSession, instance_id: str, output: str) -> None:
    """Show everything about an instance: what `why` shows, then the instance itself as YAML.

    As JSON or YAML it is one object with `instance` and `explanation`.
    """

    async def work(client: Client) -> Exit:
        asked = client.get(instance_id), client.explain(instance_id), _moves(session, instance_id)
        got, answer, moves = await asyncio.gather(*asked)
        if wrong := not_of([session.cluster], answer.sources):
            complain(wrong)
            return Exit.REFUSED
        if is_data(output):
            print_data({"instance": as_dict(got.instance), "explanation": as_dict(answer)}, output)
        else:
            _print(answer, moves)
            click.echo("\nInstance:")
            click.echo(textwrap.indent(escape_controls(yaml_text(as_dict(got.instance))), "  "), nl=False)
        warn_of(merged_sources((got.sources, answer.sources)))
        return Exit.OK

    session.run(work)


async def _moves(session: HqctlSession, instance_id: str) -> Sequence[admin_pb2.Transition]:
    """Expiries and recoveries that the replicas remember; none from a gateway, which has no AdminService."""
    from hqclient.client import HqApiError

    try:
        return (await fetch_transitions(session, instance_id)).transitions
    except HqApiError:
        return ()


def _print(answer: pb.ExplainInstanceResponse, moves: Sequence[admin_pb2.Transition]) -> None:
    coloured, width = colour_of(sys.stdout), width_of(sys.stdout)
    for number, line in enumerate(story(answer, time.time(), moves)):
        for part in wrap_line(escape_controls(line), width):
            click.echo(_style_part(part, number == 0, answer) if coloured else part)


def _style_part(part: str, is_verdict: bool, answer: pb.ExplainInstanceResponse) -> str:
    if is_verdict:
        return click.style(part, fg=READY_COLOURS[truth(answer.ready)], bold=True)
    return click.style(part, bold=True) if part.startswith(("  next: ", "Revision ", "What happened")) else part
