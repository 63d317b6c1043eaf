"""Tables: for eyes on a terminal (rich, folded to its width), plain columns in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from clients.hqctl.session import colour_of

STYLES = {"yes": "green", "no": "red", "unknown": "yellow"}
NEVER_FOLDED = ("HEARTBEAT", "READY", "TOTAL", "NOT READY", "VERSION", "SILENT FOR", "UNTIL", "TIME")


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print on stdout, as suits where that goes."""
    if sys.stdout.isatty():
        _for_eyes(names, rows)
    else:
        click.echo(plain(names, rows))


def plain(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded with spaces, never folded or cut; no cell is empty, so `awk` can count them."""
    widths = [max(len(row[n]) for row in (names, *rows)) for n in range(len(names))]
    return "\n".join(_padded(row, widths) for row in (names, *rows))


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _for_eyes(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    # Imported here: a pipe does not need it, and it takes longer to import than the answer to arrive.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name in NEVER_FOLDED)
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell.partition(":")[0], "")) for cell in row))
    Console(no_color=not colour_of(sys.stdout), highlight=False).print(table)
