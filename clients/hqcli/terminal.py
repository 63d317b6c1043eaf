"""Tables: coloured, folded and fitted on a terminal, one line per row; plain columns in a pipe."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

import click

WIDEST = 120
UNFOLDED = 100_000


def width_of(stream: Any) -> int:
    """Columns to fold text to; in a pipe lines are not folded."""
    return min(WIDEST, shutil.get_terminal_size().columns) if stream.isatty() else UNFOLDED


def fold(line: str, width: int, hang: int | None = None) -> list[str]:
    """A line folded to a width, its continuation indented by `hang` columns (default: like the line itself)."""
    indent = len(line) - len(line.lstrip())
    rest = " " * (indent if hang is None else hang)
    return textwrap.wrap(line, width, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False) or [""]


_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def has_controls(text: str) -> bool:
    """Whether it has characters that would control a terminal or reverse text."""
    return bool(_CONTROLS.search(text))


def escape_controls(text: str) -> str:
    """Text of programs, agents and other people: what would control a terminal or turn words around is spelled out."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def json_controls(text: str) -> str:
    """Spell out controls as JSON escapes, so that the document (JSON, or YAML that quotes them) means the same."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str) -> None:
    """Print on stdout, without colours, a text with words of programs, agents or other people in it."""
    click.echo(escape_controls(text))


STYLES = {
    "yes": "green",
    "ok": "green",
    "no": "red",
    "unknown": "yellow",
    "stale": "red",
    "silent": "red",
    "expiry": "red",
    "recovery": "green",
}
GAP = 2
CUTTABLE = {
    *("SERVICE", "NODE", "READY", "REVISION", "ENDPOINTS", "REVISIONS", "LABELS", "CLUSTER"),
    *("REASON", "ERROR", "WHY", "CONTAINERS", "BY", "KEY"),
}
CUT_TO_AT_LEAST = 10


def print_table(
    names: Sequence[str], rows: Sequence[Sequence[str]], *, whole: bool = False, headers: bool = True
) -> None:
    """Print on stdout, in the form that suits a terminal or a pipe; `whole`: cut nothing, even if it does not fit."""
    if sys.stdout.isatty():
        terminal = shutil.get_terminal_size().columns
        widths = None if whole else fit_columns(names, rows, terminal)
        room = None if whole else terminal
        for line in lines(names, rows, widths, colours=colour_of(sys.stdout), room=room)[0 if headers else 1 :]:
            click.echo(line)
    elif rows or headers:
        click.echo(plain(names, rows, headers=headers))


def plain(names: Sequence[str], rows: Sequence[Sequence[str]], *, headers: bool = True) -> str:
    """Columns padded with spaces, never cut; no cell is empty, so `awk` can count them."""
    return "\n".join(lines(names, rows)[0 if headers else 1 :])


def lines(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Sequence[int] | None = None,
    *,
    colours: bool = False,
    room: int | None = None,
) -> list[str]:
    """A table as lines, its head first; what does not fit its column or the line ends in `…`."""
    rows = [[escape_controls(cell).replace("\n", "\\n") for cell in row] for row in rows]
    widths = list(widths or _widths(names, rows))
    if room is not None:
        widths = _within(widths, room)
    head = _line(names, widths)
    return [click.style(head, bold=True) if colours else head, *(_line(row, widths, colours=colours) for row in rows)]


def fit_columns(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Widths of columns so that a row takes one line: the widest column that may be cut shrinks first.

    If that is not enough, the last column that was cut is left out (width 0), so that the others stay readable.
    READY is left out last of all, and the first column, which names the row, never.
    Ids and times are never cut: they are what gets copied. A table may therefore stay wider than the terminal, but
    columns before INSTANCE, which a row is about, are left out until that fits.
    """
    whole = _widths(names, rows)
    cuttable = [n for n, name in enumerate(names) if name in CUTTABLE]
    while True:
        widths = _shrunk(whole, cuttable, width)
        cut = [n for n in cuttable if widths[n] < whole[n] and n]
        if _row_width(widths) <= width or not cut:
            return _with_the_instance(names, widths, width)
        others = [n for n in cut if names[n] != "READY"]  # what everybody looks for is left out last
        whole[(others or cut)[-1]] = 0


def _with_the_instance(names: Sequence[str], widths: list[int], width: int) -> list[int]:
    at = names.index("INSTANCE") if "INSTANCE" in names else 0
    while any(widths[:at]) and _row_width(widths[: at + 1]) > width:
        widths[widths.index(max(widths[:at]))] = 0
    return widths


def _shrunk(whole: Sequence[int], cuttable: Sequence[int], width: int) -> list[int]:
    widths = list(whole)
    excess = _row_width(widths) - width
    while excess > 0 and cuttable:
        widest = max(cuttable, key=lambda n: widths[n])
        if widths[widest] <= CUT_TO_AT_LEAST:
            break
        widths[widest] -= 1
        excess -= 1
    return widths


def _row_width(widths: Sequence[int]) -> int:
    """Room for a row."""
    shown = [width for width in widths if width]
    return sum(shown) + GAP * (len(shown) - 1)


def style_cell(cell: str, text: str) -> str:
    """`text` in the colour that the first word of a cell stands for."""
    colour = STYLES.get(cell.partition(":")[0])
    return click.style(text, fg=colour) if colour else text


def _within(widths: list[int], room: int) -> list[int]:
    """Widths of the columns that fit on a line; the last of them gets the rest of the room."""
    shown: list[int] = []
    for width in widths:
        if room < min(width, CUT_TO_AT_LEAST):
            break
        shown.append(min(width, room))
        room -= shown[-1] + GAP if width else 0
    return shown


def _line(cells: Sequence[str], widths: Sequence[int], *, colours: bool = False) -> str:
    shown = []
    for number, (cell, width) in enumerate(zip(cells, widths, strict=False)):  # columns without room are left out
        if not width:
            continue
        text = cell if len(cell) <= width else cell[: width - 1] + "…"
        padded = text if number == len(widths) - 1 else text.ljust(width)
        shown.append(style_cell(cell, padded) if colours else padded)
    return (" " * GAP).join(shown).rstrip()


def _widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[n]) for row in (names, *rows)) for n in range(len(names))]


def warn(text: str) -> None:
    """Print a warning on stderr."""
    click.secho("warning: ", fg="yellow", nl=False, err=True, color=colour_of(sys.stderr))
    click.echo(escape_controls(text), err=True)


def colour_of(stream: Any) -> bool:
    """Colours only on a terminal, and not if NO_COLOR is set."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR")
