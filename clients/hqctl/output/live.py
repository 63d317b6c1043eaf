"""A table on a terminal that is kept up to date by a watch."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from hqctl.asking.session import colour_of
from hqctl.output.board import Board
from hqctl.output.lines import KIND_STYLES
from hqctl.output.tables import fitted, lines
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client

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
                    board.took(item, time.strftime("%H:%M:%S"))
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
    shown += lines(names, rows, fitted(names, rows, terminal.columns), colours=coloured) if rows else []
    shown += [left_out] if left_out else []
    return Text.from_ansi("\n".join([*shown, "", *changes]), no_wrap=True, overflow="crop")


def _change(kind: str, text: str, width: int) -> str:
    cut = text if len(text) <= width else text[: width - 1] + "…"
    colour = KIND_STYLES.get(kind)
    return click.style(cut, fg=colour) if colour and colour_of(sys.stdout) else cut
