"""A picture of many of a kind, with a square for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Square:
    """One instance or host. `kind`: done, way (under way), failed, left or wait."""

    x: int
    y: int
    kind: str


_PER_LINE: Final = 40
MOST_SQUARES: Final = 400


def squares_of(kinds: Iterable[str]) -> tuple[list[Square], int]:
    """A square for each, line by line, and the height of the picture; no squares if there are too many."""
    listed = list(kinds)
    if len(listed) > MOST_SQUARES:
        return [], 0
    made = [Square(at % _PER_LINE * 14, at // _PER_LINE * 14, kind) for at, kind in enumerate(listed)]
    return made, (len(listed) + _PER_LINE - 1) // _PER_LINE * 14
