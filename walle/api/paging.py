"""Pages of lists: in the order of a key, from where the page before ended. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from google.protobuf.message import Message

from serving.errors import invalid

T = TypeVar("T")
M = TypeVar("M", bound=Message)
DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1_000
MAX_PAGE_BYTES: Final = 2 << 20  # half of what clients of gRPC take unless told otherwise


def checked_size(size: int) -> int:
    """Raises InvalidRequest."""
    if size > MAX_PAGE:
        raise invalid("page_size", f"{size}: write 1 to {MAX_PAGE}, or 0 for {DEFAULT_PAGE}")
    return size or DEFAULT_PAGE


def page_of(items: Iterable[T], key: Callable[[T], str], size: int, token: str) -> tuple[list[T], str]:
    """The items of a page, and the token of the next one; empty: it was the last.

    `key` tells each item from all others. `size` 0: DEFAULT_PAGE. Raises InvalidRequest: more than MAX_PAGE.
    """
    size = checked_size(size)
    page = heapq.nsmallest(size + 1, ((key(one), one) for one in items if key(one) > token), key=lambda one: one[0])
    return [one for _, one in page[:size]], page[size - 1][0] if len(page) > size else ""


def page_or_all(items: Iterable[T], key: Callable[[T], str], size: int, token: str) -> tuple[list[T], str]:
    """`page_of` for lists that have been whole before they had pages: neither size nor token asks for everything."""
    return page_of(items, key, size, token) if size or token else ([*items], "")


def page_of_records(records: Mapping[str, M], shows: Callable[[M], bool], size: int, token: str) -> tuple[list[M], str]:
    """`page_or_all` of records by their ids: only those that the page takes are looked at. `shows`: the filter.

    A page of several records has at most MAX_PAGE_BYTES.
    """
    if not size and not token:
        return [one for one in records.values() if shows(one)], ""
    page: dict[str, M] = {}
    most, taken = checked_size(size), 0
    for name in sorted(name for name in records if name > token):
        if shows(records[name]):
            taken += records[name].ByteSize()
            if len(page) == most or (page and taken > MAX_PAGE_BYTES):
                return [*page.values()], next(reversed(page))
            page[name] = records[name]
    return [*page.values()], ""
