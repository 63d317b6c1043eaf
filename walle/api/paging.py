"""Pages of lists: in the order of a key, from where the page before ended. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from serving.errors import invalid

T = TypeVar("T")
DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1_000


def page_of(items: Iterable[T], key: Callable[[T], str], size: int, token: str) -> tuple[list[T], str]:
    """The items of a page, and the token of the next one; empty: it was the last.

    `key` tells each item from all others. `size` 0: DEFAULT_PAGE. Raises InvalidRequest: more than MAX_PAGE.
    """
    if size > MAX_PAGE:
        raise invalid("page_size", f"{size}: write 1 to {MAX_PAGE}, or 0 for {DEFAULT_PAGE}")
    size = size or DEFAULT_PAGE
    page = heapq.nsmallest(size + 1, ((key(one), one) for one in items if key(one) > token), key=lambda one: one[0])
    return [one for _, one in page[:size]], page[size - 1][0] if len(page) > size else ""
