"""watch: instances and their changes, line by line as they happen."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from clients.hqctl.exits import Exit
from clients.hqctl.formats import as_dict, output_option, print_json_line
from clients.hqctl.rows import readiness, revision
from clients.hqctl.selecting import selecting
from clients.hqctl.session import Session, colour_of, connected
from clients.hqctl.words import truth
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from clients.client import Client
    from clients.progress import WatchItem

KIND_STYLES = {
    "gone": "red",
    "left": "yellow",
    "synced": "green",
    "resync": "magenta",
    "broken": "red",
}


class Lines:
    """Turns items of a watch into lines, with readiness as `before>after` where it changed."""

    def __init__(self, *, snapshot: bool) -> None:
        self._snapshot = snapshot
        self._readiness: dict[str, str] = {}
        self._shown = 0
        self._broken = False  # and told so
        self._widths = [16, 11, 6]  # of id, readiness, revision: as wide as the widest so far

    def of(self, item: WatchItem) -> Iterator[tuple[str, str]]:
        """Kind and text of each line for an item."""
        from clients import progress

        match item:
            case progress.SnapshotPart(instances):
                yield from self._part(instances)
            case progress.Synced():
                yield "synced", f"{self._shown} there; changes follow"
            case progress.Changes(events):
                yield from map(self._event, events)
            case progress.Resync(reason, cluster):
                self._readiness.clear()
                self._shown = 0
                yield "resync", f"{reason}; everything{f' of {cluster}' if cluster else ''} is shown anew"
            case progress.Interrupted(error) if not self._broken:
                yield "broken", f"{error.message}; going on by itself"
        self._broken = isinstance(item, progress.Interrupted)

    def _part(self, instances: Sequence[instance_pb2.Instance]) -> Iterator[tuple[str, str]]:
        self._shown += len(instances)
        lines = [("is", self._text(instance)) for instance in instances]
        yield from lines if self._snapshot else ()

    def _event(self, event: pb.WatchEvent) -> tuple[str, str]:
        match event.WhichOneof("change"):
            case "put":
                return "put", self._text(event.put)
            case "delete":
                self._readiness.pop(event.delete.id, None)
                return "gone", event.delete.id
            case _:
                self._readiness.pop(event.left.id, None)
                return "left", f"{event.left.id}  no longer matches"

    def _text(self, instance: instance_pb2.Instance) -> str:
        cells = (instance.meta.id, self._ready(instance), revision(instance))
        self._widths = [max(len(cell), width) for cell, width in zip(cells, self._widths, strict=True)]
        aligned = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
        return "  ".join((*aligned, instance.spec.node_name or "-"))

    def _ready(self, instance: instance_pb2.Instance) -> str:
        now, word = readiness(instance), truth(instance.status.ready)
        before = self._readiness.get(instance.meta.id, word)
        self._readiness[instance.meta.id] = word
        return now if before == word else f"{before}>{now}"


@click.command()
@selecting
@click.option("--only-changes", is_flag=True, help="Leave out what is there already.")
@output_option("table", "json")
@connected
def watch(session: Session, where: pb.InstanceFilter, only_changes: bool, output: str) -> None:
    """Show the instances that match, then every change to them, until Ctrl-C.

    \b
    is      it was there when the watch began
    put     created or changed
    gone    deleted
    left    still there, but it no longer matches
    synced  everything that was there has been shown
    resync  continuity is lost: everything is shown anew
    broken  no connection at the moment; the watch goes on by itself
    """

    async def work(client: Client) -> Exit:
        lines = Lines(snapshot=not only_changes)
        async with client.watch(where) as items:
            async for item in items:
                if output == "json":
                    _print_json(item, only_changes)
                else:
                    _print(lines, item)
        return Exit.OK

    session.run(work)


def _print(lines: Lines, item: WatchItem) -> None:
    now = time.strftime("%H:%M:%S")
    coloured = colour_of(sys.stdout)
    for kind, text in lines.of(item):
        styled = click.style(f"{kind:<6}", fg=KIND_STYLES.get(kind)) if coloured else f"{kind:<6}"
        room = shutil.get_terminal_size().columns - 18 if sys.stdout.isatty() else len(text)
        shown = text if len(text) <= room or kind == "broken" else text[: room - 1] + "…"
        click.echo(f"{now}  {styled}  {shown}".rstrip(), color=coloured)


def _print_json(item: WatchItem, only_changes: bool) -> None:
    for value in _json_of(item, only_changes):
        print_json_line(value)


def _json_of(item: WatchItem, only_changes: bool) -> Iterator[dict[str, Any]]:
    from clients import progress

    match item:
        case progress.SnapshotPart(instances) if not only_changes:
            yield from ({"kind": "snapshot", "put": as_dict(instance)} for instance in instances)
        case progress.Synced(token):
            yield {"kind": "synced", "resumeToken": token}
        case progress.Changes(events, token):
            for event in events:
                yield {"kind": event.WhichOneof("change"), **as_dict(event), "resumeToken": token}
        case progress.Resync(reason, cluster):
            yield {"kind": "resync", "reason": reason, **({"cluster": cluster} if cluster else {})}
        case progress.Interrupted(error, retry_in_s):
            yield {"kind": "broken", "error": error.message, "retryInSeconds": round(retry_in_s, 3)}
