"""A watch on a terminal: as lines, or as a table that is kept up to date."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from hqcli.readable import plural, truth
from hqcli.terminal import colour_of, fit_columns, lines
from hqclient import watch_items
from hqclient.watch_items import Key, Shown
from hqctl.output.rows import Columns, readiness, revision, spans_clusters
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client


# Colours of the kinds of lines.
KIND_STYLES = {
    "gone": "red",
    "left": "yellow",
    "synced": "green",
    "resync": "magenta",
    "broken": "red",
}


class WatchLines:
    """Turns items of a watch into lines, with readiness as `before>after` where it changed.

    From a gateway, an instance is `CLUSTER/ID`: an id is unique in its cluster only.
    """

    def __init__(self, *, snapshot: bool) -> None:
        self._snapshot = snapshot
        self._readiness: dict[Key, str] = {}  # of all known instances
        self._spans_clusters = False
        self._broken = False  # without a stream, and reported as such
        self._widths = [16, 11, 6]  # of id, readiness, revision: the widest so far

    def of(self, item: watch_items.WatchItem) -> Iterator[tuple[str, str]]:
        """Kind and text of each line for an item."""
        match item:
            case watch_items.SnapshotPart(instances):
                lines = [("is", self._text(instance)) for instance in instances]
                yield from lines if self._snapshot else ()
            case watch_items.Synced():
                yield "synced", self._complete(item.sources)
            case watch_items.Changes(events):
                yield from map(self._event, events)
            case watch_items.Bookmark(_, sources):
                self._spans_clusters = self._spans_clusters or len(sources) > 1
            case watch_items.Resync(reason, cluster):
                self._readiness = {k: word for k, word in self._readiness.items() if cluster and k[0] != cluster}
                yield "resync", f"{reason}; everything{f' of {cluster}' if cluster else ''} is shown anew"
            case watch_items.Interrupted(error) if not self._broken:
                yield "broken", f"{error.message}; resuming automatically"
        self._broken = isinstance(item, watch_items.Interrupted)

    def _complete(self, sources: Sequence[pb.Source]) -> str:
        clusters = {source.cluster for source in sources}
        if not self._spans_clusters or not clusters:
            return f"{len(self._readiness)} there; changes follow"
        count = sum(key[0] in clusters for key in self._readiness)
        return f"{count} there in {', '.join(sorted(clusters))}; changes follow"

    def _event(self, event: pb.WatchEvent) -> tuple[str, str]:
        match event.WhichOneof("change"):
            case "put":
                return "put", self._text(event.put)
            case "delete":
                return "gone", self._drop_instance(event.delete)
            case _:
                return "left", f"{self._drop_instance(event.left)}  no longer matches"

    def _drop_instance(self, ref: pb.InstanceRef) -> str:
        self._readiness.pop((ref.cluster, ref.id), None)
        return self._name((ref.cluster, ref.id))

    def _text(self, instance: instance_pb2.Instance) -> str:
        key = (instance.meta.cluster, instance.meta.id)
        cells = (self._name(key), self._ready(key, instance), revision(instance))
        self._widths = [max(len(cell), width) for cell, width in zip(cells, self._widths, strict=True)]
        aligned = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
        return "  ".join((*aligned, instance.spec.node_name or "-"))

    def _name(self, key: Key) -> str:
        return "/".join(key) if self._spans_clusters else key[1]

    def _ready(self, key: Key, instance: instance_pb2.Instance) -> str:
        now, word = readiness(instance), truth(instance.status.ready)
        before = self._readiness.get(key, word)
        self._readiness[key] = word
        return now if before == word else f"{before}>{now}"


CHANGES_SHOWN = 6


class Board:
    """Follows a watch item by item."""

    def __init__(self) -> None:
        self._shown = Shown()
        self._lines = WatchLines(snapshot=False)
        self._silent: set[str] = set()  # a gateway's locations that do not answer
        self._state = "reading"
        self.changes: deque[tuple[str, str, str]] = deque(maxlen=CHANGES_SHOWN)

    def apply_item(self, item: watch_items.WatchItem, clock: str) -> None:
        """Apply an item; `clock` is the time as text."""
        self.changes.extend((clock, kind, text) for kind, text in self._lines.of(item) if kind != "synced")
        self._shown.apply_item(item)
        match item:
            case watch_items.Resync():
                self._state = "reloading"
            case watch_items.Interrupted():
                self._state = "NO CONNECTION, data may be stale"
            case watch_items.Synced() | watch_items.Changes() | watch_items.Bookmark():
                self._silent -= {source.cluster for source in item.sources}
                self._silent |= {source.cluster for source in item.sources if source.error}
                self._state = self._completeness()

    def title(self) -> str:
        """How many instances exist, how many are ready, and whether that is current."""
        ready = sum(truth(i.status.ready) == "yes" for i in self._shown.instances.values())
        return f"{ready} of {plural(len(self._shown.instances), 'instance')} ready, {self._state}"

    def table(self, room: int, now_s: float | None = None) -> tuple[Sequence[str], list[list[str]], str]:
        """Names of columns, as many rows as fit, and a remark about those left out."""
        instances = list(self._shown.instances.values())
        columns = Columns(cluster=spans_clusters(instances, ()), live=True)
        ordered = sorted(instances, key=lambda i: (truth(i.status.ready) == "yes", i.meta.id, i.meta.cluster))
        shown, rest = ordered[:room], ordered[room:]
        left_out = f"… {len(rest)} more, {self._readiness(rest)}" if rest else ""
        now_s = time.time() if now_s is None else now_s
        return columns.names, [columns.row(instance, now_s) for instance in shown], left_out

    def _completeness(self) -> str:
        if self._silent:
            return f"{', '.join(sorted(self._silent)).upper()} UNREACHABLE (may be stale)"
        return "up to date" if self._shown.is_whole else f"reading {', '.join(self._shown.missing)}"

    def _readiness(self, instances: Sequence[instance_pb2.Instance]) -> str:
        unready = sum(truth(i.status.ready) != "yes" for i in instances)
        if unready == len(instances):
            return "none of them ready"
        return f"{unready} of them not ready" if unready else "all ready"


REDRAW_S = 0.25
AROUND = 6  # lines that are not rows of the table


async def show_live(client: Client, where: pb.InstanceFilter) -> None:
    """Draw until the caller ends it. Raises what a watch raises."""
    board = Board()
    console = Console(no_color=not colour_of(sys.stdout), highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        drawing = asyncio.create_task(_draw(live, board), name="draw the table")
        try:
            async with client.watch(where) as items:
                async for item in items:
                    board.apply_item(item, time.strftime("%H:%M:%S"))
        finally:
            drawing.cancel()
            await asyncio.gather(drawing, return_exceptions=True)
            live.update(picture(board), refresh=True)


async def _draw(live: Live, board: Board) -> None:
    while True:
        live.update(picture(board), refresh=True)
        await asyncio.sleep(REDRAW_S)


def picture(board: Board) -> Text:
    """Everything there is to see, in the size of the terminal."""
    terminal = shutil.get_terminal_size()
    coloured = colour_of(sys.stdout)
    changes = [_change(kind, f"{clock}  {kind:<6}  {text}", terminal.columns) for clock, kind, text in board.changes]
    names, rows, left_out = board.table(max(3, terminal.lines - AROUND - len(changes)))
    head = f"{board.title()}  ({time.strftime('%H:%M:%S %Z')}; Ctrl-C ends it)"[: terminal.columns]
    shown = [click.style(head, bold=True) if coloured else head, ""]
    shown += lines(names, rows, fit_columns(names, rows, terminal.columns), colours=coloured) if rows else []
    shown += [left_out] if left_out else []
    return Text.from_ansi("\n".join([*shown, "", *changes]), no_wrap=True, overflow="crop")


def _change(kind: str, text: str, width: int) -> str:
    cut = text if len(text) <= width else text[: width - 1] + "…"
    colour = KIND_STYLES.get(kind)
    return click.style(cut, fg=colour) if colour and colour_of(sys.stdout) else cut
