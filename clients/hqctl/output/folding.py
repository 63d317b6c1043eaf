"""Text folded to the width of a terminal."""

from __future__ import annotations

import shutil
import textwrap
from typing import Any

WIDEST = 120
UNFOLDED = 100_000


def width_of(stream: Any) -> int:
    """Columns to fold text to; in a pipe a line stays a line."""
    return min(WIDEST, shutil.get_terminal_size().columns) if stream.isatty() else UNFOLDED


def fold(line: str, width: int, hang: int | None = None) -> list[str]:
    """A line folded to a width, its rest indented by `hang` columns (as the line itself, if not said)."""
    indent = len(line) - len(line.lstrip())
    rest = " " * (indent if hang is None else hang)
    return textwrap.wrap(line, width, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False) or [""]
