"""Texts that several parts say, and external ones kept in records: of a readable length, cut at the end of a clause."""

from __future__ import annotations

from typing import Final

_MOST: Final = 1_000
_MORE: Final = "; \N{HORIZONTAL ELLIPSIS}"


def describe_absence(kind: str, name: str) -> str:
    """What is said of a record that is not there, or is not for the caller to know of."""
    return f"{kind} {name[:_MOST]} does not exist" if name else f"no {kind} is named"


def truncate_text(text: str, most: int = _MOST) -> str:
    """The text, or the clauses and words that fit into so many characters."""
    if len(text) <= most:
        return text
    fits = text[: most - len(_MORE)]
    clauses, found, _ = fits.rpartition("; ")
    return (clauses if found else fits.rpartition(" ")[0] or fits) + _MORE
