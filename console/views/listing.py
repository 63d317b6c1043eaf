"""A list as a page shows it: sorted by the column that its address names, a page of it, and links to the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from console.views.urls import url

T = TypeVar("T")
PAGE_ROWS: Final = 100


class Column(NamedTuple):
    """What a column is sorted by. `most_first`: largest values stand first, unless the list is turned round."""

    key: Callable[[Any], Any]
    most_first: bool = False


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """One page of a list.

    Attributes:
        first: number of its first row, from 1; `total`: rows of all pages.
        previous, next: addresses of the pages beside it; empty: there is none.
        by: for each column the address of the list sorted by it; in reverse, if it is sorted by it already.
        order: for the column by which it is sorted, `ascending` or `descending`.
    """

    rows: Sequence[T]
    first: int
    total: int
    previous: str
    next: str
    by: Mapping[str, str]
    order: Mapping[str, str]


def listing(
    rows: Sequence[T],
    columns: Mapping[str, Column],
    path: Sequence[str],
    query: Mapping[str, str],
    keep: Sequence[str] = (),
    prefix: str = "",
) -> Listing[T]:
    """The page that the query asks for: `sort=COLUMN` or `-COLUMN`, and `from=NUMBER`; else the first, unsorted.

    `keep`: other parameters, which its links keep. `prefix`: of `sort` and `from`, where a page has several lists.
    """
    sort, number = query.get(f"{prefix}sort", ""), query.get(f"{prefix}from", "")
    word = sort.removeprefix("-")
    column = columns.get(word)
    falls = column is not None and column.most_first != sort.startswith("-")
    found = sorted(rows, key=column.key, reverse=falls) if column is not None else rows
    at = int(number) - 1 if number.isascii() and number.isdigit() and len(number) < 8 else 0
    at = max(0, min(at, len(found) - 1)) // PAGE_ROWS * PAGE_ROWS
    kept = {name: query[name] for name in keep if query.get(name)}

    def to(sort: str, at: int) -> str:
        return url(*path, **{**kept, f"{prefix}sort": sort, f"{prefix}from": str(at + 1) if at else ""})

    own = sort if column is not None else ""
    return Listing(
        rows=found[at : at + PAGE_ROWS],
        first=at + 1,
        total=len(found),
        previous=to(own, max(0, at - PAGE_ROWS)) if at else "",
        next=to(own, at + PAGE_ROWS) if at + PAGE_ROWS < len(found) else "",
        by={one: to(f"-{one}" if one == sort else one, 0) for one in columns},
        order={word: "descending" if falls else "ascending"} if column is not None else {},
    )
