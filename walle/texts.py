"""External texts kept in records: limited to a readable length, and cut at the end of a clause."""

from __future__ import annotations

from typing import Final

_MOST: Final = 1_000
_MORE: Final = "; \N{HORIZONTAL ELLIPSIS}"


def truncate_text(text: str) -> str:
    """The text, or the clauses and words that fit."""
    if len(text) <= _MOST:
        return text
    fits = text[: _MOST - len(_MORE)]
    clauses, found, _ = fits.rpartition("; ")
    return (clauses if found else fits.rpartition(" ")[0] or fits) + _MORE
