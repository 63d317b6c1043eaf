"""events: recent expiries and recoveries, and why HQ decided."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit
from hqcli.formats import as_dict, is_data, output_option, print_items, print_json_line
from hqcli.readable import seconds_of, span, stamp
from hqcli.terminal import colour_of, lines, print_table
from hqctl.asking.session import HqctlSession, with_session
from hqctl.asking.transitions import fetch_transitions, identity
from hqctl.output.sources import check_cluster
from hqpb.v1 import admin_pb2

if TYPE_CHECKING:
    from hqclient.client import Client

NAMES = ("TIME", "WHAT", "INSTANCE", "REVISION", "NODE", "WHY")
POLL_S = 1.0
WIDTHS = [25, 8, 16, 8, 12, 10]


@click.command()
@click.argument("instance_id", metavar="[INSTANCE]", default="")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most this many.")
@click.option("-w", "--watch", "watching", is_flag=True, help="Keep showing new ones, oldest first, until Ctrl-C.")
@click.option("--no-headers", is_flag=True, help="Omit the header line of the table.")
@output_option("table", "wide", "json", "yaml", "jsonpath=…")
@with_session
def events(session: HqctlSession, instance_id: str, limit: int, watching: bool, no_headers: bool, output: str) -> None:
    """Show recent expiries (HQ marked a silent revision not ready) and recoveries, newest first.

    Each given replica remembers the last 2,000 since its start.
    """

    if watching and output not in ("table", "json"):
        raise click.UsageError(f"-w shows a table, or one JSON object a line with -o json; not {output}")

    async def work(client: Client) -> Exit:
        if watching:
            return await _watch(client, instance_id, limit, output)
        found = await fetch_transitions(session, instance_id, limit)
        check_cluster(session, *found.sources)
        if is_data(output):
            print_items(found.transitions, found.sources, output)
        elif found.transitions:
            rows = [row(transition) for transition in found.transitions]
            print_table(NAMES, rows, whole=output == "wide", headers=not no_headers)
        else:
            names = [source.replica for source in found.sources]
            verb = "remembers" if len(names) == 1 else "remember"
            of_it = f" of {instance_id}" if instance_id else ""
            click.echo(f"{', '.join(names)} {verb} no expiry or recovery{of_it}.", err=True)
        return Exit.OK

    session.run(work)


def row(transition: admin_pb2.Transition) -> list[str]:
    """The cells of a transition."""
    return [
        stamp(transition.time),
        "recovery" if transition.ready else "expiry",
        transition.instance_id,
        transition.revision_id,
        transition.node_name or "-",
        decision_words(transition) or "-",
    ]


def decision_words(transition: admin_pb2.Transition) -> str:
    """Why HQ decided, in one line."""
    condition, receipt = transition.condition, transition.condition.receipt
    if transition.ready:
        return f"reported again; before: {receipt.recovered_from}" if receipt.recovered_from else "reported again"
    silence_s = seconds_of(receipt.silence)
    parts = [
        f"silent {span(silence_s)}" if silence_s else condition.reason,
        f"last heard by {receipt.heard_by}" if receipt.heard_by else "",
        f"decided by {receipt.decided_by}" if receipt.decided_by else "",
        f"guard: {receipt.guard_verdict}" if receipt.guard_verdict else "",
    ]
    return "; ".join(part for part in parts if part)


async def _watch(client: Client, instance_id: str, limit: int, output: str) -> Exit:
    """Poll; a transition is identified by its version and revision, at every replica."""
    seen: set[tuple[int, str, str]] = set()
    while True:
        answer = await client.admin.list_transitions(instance_id, page_size=1000 if seen else limit)
        fresh = [t for t in reversed(answer.transitions) if identity(t) not in seen]
        seen.update(map(identity, fresh))
        seen.add((0, "", ""))
        for text in _transition_lines(fresh, output):
            click.echo(text)
        await asyncio.sleep(POLL_S)


def _transition_lines(fresh: Sequence[admin_pb2.Transition], output: str) -> Iterator[str]:
    for transition in fresh:
        if is_data(output):
            print_json_line(as_dict(transition))
            continue
        cells = row(transition)
        for number, cell in enumerate(cells):
            WIDTHS[number] = max(WIDTHS[number], len(cell))
        yield lines(NAMES, [cells], WIDTHS, colours=colour_of(sys.stdout))[1]
