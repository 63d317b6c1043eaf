"""Tables: for eyes on a terminal (rich, one line per row), plain columns in a pipe."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import click

from clients.hqctl.session import colour_of

STYLES = {"yes": "green", "no": "red", "unknown": "yellow"}
GAP = 2
CUTTABLE = {"SERVICE", "NODE", "READY", "REVISION", "ENDPOINTS", "REVISIONS", "LABELS", "CLUSTER"}
CUT_TO_AT_LEAST = 7


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]], *, whole: bool = False) -> None:
    """Print on stdout, as suits where that goes; `whole`: cut nothing, even if the terminal is too narrow."""
    if sys.stdout.isatty():
        _for_eyes(names, rows, whole)
    else:
        click.echo(plain(names, rows))


def plain(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded with spaces, never cut; no cell is empty, so `awk` can count them."""
    widths = _widths(names, rows)
    lines = ((cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (names, *rows))
    return "\n".join((" " * GAP).join(line).rstrip() for line in lines)


def fitted(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Widths of columns so that a row takes one line: the widest that may be cut gives way first.

    Ids and times are never cut: they are what gets copied. A table may so stay wider than the terminal.
    """
    widths = _widths(names, rows)
    cuttable = [n for n, name in enumerate(names) if name in CUTTABLE]
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    while excess > 0 and cuttable:
        widest = max(cuttable, key=lambda n: widths[n])
        if widths[widest] <= CUT_TO_AT_LEAST:
            break
        widths[widest] -= 1
        excess -= 1
    return widths


def _widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[n]) for row in (names, *rows)) for n in range(len(names))]


def _for_eyes(names: Sequence[str], rows: Sequence[Sequence[str]], whole: bool) -> None:
    # Imported here: a pipe does not need it, and it takes longer to import than the answer to arrive.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = shutil.get_terminal_size().columns
    widths = _widths(names, rows) if whole else fitted(names, rows, terminal)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for name, width in zip(names, widths, strict=True):
        table.add_column(name, overflow="ellipsis", no_wrap=True, width=width)
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell.partition(":")[0], "")) for cell in row))
    width = max(terminal, sum(widths) + GAP * len(widths))
    Console(width=width, no_color=not colour_of(sys.stdout), highlight=False).print(table, soft_wrap=False)
