"""When nothing was heard from a location or a server."""

from __future__ import annotations

from typing import NamedTuple


class Gap(NamedTuple):
    """A time without news from a location, or a server (`server_name`). `until_ms` None: it has not ended."""

    cluster: str
    since_ms: int
    until_ms: int | None
    reason: str


def server_name(server: str) -> str:
    """Return the name of the CMS, Nanny or Wall-E among those of locations, which cannot begin with @."""
    return f"@{server}"


def is_asked_for(name: str, cluster: str) -> bool:
    """Whether a gap is of this location or server; `cluster` empty: of any location."""
    return cluster == name if cluster else not name.startswith(server_name(""))


def overlaps(gap: Gap, since_ms: int, until_ms: int) -> bool:
    """Whether some of a gap is in [since, until)."""
    return gap.since_ms < until_ms and (gap.until_ms is None or gap.until_ms > since_ms)


def join_gap(found: list[Gap], gap: Gap) -> None:
    """Add a gap; the same one in the next day's file replaces it."""
    for number, earlier in enumerate(found):
        if earlier[:2] == gap[:2]:
            found[number] = gap
            return
    found.append(gap)
