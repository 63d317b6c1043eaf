"""watch: instances and their changes, as they happen."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hqcli.exits import Exit
from hqcli.formats import as_dict, output_option, print_json_line
from hqcli.terminal import colour_of, escape_controls
from hqctl.asking.options import selecting
from hqctl.asking.session import HqctlSession, with_session
from hqctl.output.watch_view import KIND_STYLES, WatchLines
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client
    from hqclient.watch_items import WatchItem


@click.command()
@selecting
@click.option("--only-changes", is_flag=True, help="Show changes only, not the current instances.")
@output_option("table", "lines", "json")
@with_session
def watch(session: HqctlSession, where: pb.InstanceFilter, only_changes: bool, output: str) -> None:
    """Show the instances that match, then every change to them, until Ctrl-C.

    On a terminal it is a table that is kept up to date, those not ready first; SINCE is how long they
    have been so. Elsewhere, and with `-o lines`, each
    line is one thing:

    \b
    is      it existed when the watch began
    put     created or changed
    gone    deleted
    left    it exists, but no longer matches
    synced  all existing instances have been shown
    resync  continuity is lost: everything is shown again
    broken  no connection at the moment; the watch resumes automatically
    """

    async def work(client: Client) -> Exit:
        if output == "table" and sys.stdout.isatty():
            from hqctl.output.watch_view import show_live

            await show_live(client, where)
        lines = WatchLines(snapshot=not only_changes)
        async with client.watch(where) as items:
            async for item in items:
                if output == "json":
                    _print_json(item, only_changes)
                else:
                    _print(lines, item)
        return Exit.OK

    session.run(work)


def _print(lines: WatchLines, item: WatchItem) -> None:
    now = time.strftime("%H:%M:%S")
    coloured = colour_of(sys.stdout)
    for kind, text in ((kind, escape_controls(text)) for kind, text in lines.of(item)):
        styled = click.style(f"{kind:<6}", fg=KIND_STYLES.get(kind)) if coloured else f"{kind:<6}"
        room = shutil.get_terminal_size().columns - 18 if sys.stdout.isatty() else len(text)
        shown = text if len(text) <= room or kind == "broken" else text[: room - 1] + "…"
        click.echo(f"{now}  {styled}  {shown}".rstrip(), color=coloured)


def _print_json(item: WatchItem, only_changes: bool) -> None:
    for value in _json_of(item, only_changes):
        print_json_line(value)


def _json_of(item: WatchItem, only_changes: bool) -> Iterator[dict[str, Any]]:
    from hqclient import watch_items

    match item:
        case watch_items.SnapshotPart(instances) if not only_changes:
            yield from ({"kind": "snapshot", "put": as_dict(instance)} for instance in instances)
        case watch_items.Synced(token):
            yield {"kind": "synced", "resumeToken": token}
        case watch_items.Changes(events, token):
            for event in events:
                yield {"kind": event.WhichOneof("change"), **as_dict(event), "resumeToken": token}
        case watch_items.Resync(reason, cluster):
            yield {"kind": "resync", "reason": reason, **({"cluster": cluster} if cluster else {})}
        case watch_items.Interrupted(error, retry_in_s):
            yield {"kind": "broken", "error": error.message, "retryInSeconds": round(retry_in_s, 3)}
