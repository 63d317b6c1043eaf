"""Pages of lists: in the order of a key, from where the page before ended. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import methodcaller
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from serving.errors import invalid

T = TypeVar("T")
M = TypeVar("M", bound=Message)
_MESSAGE_BYTES: Final[Callable[[Any], int]] = methodcaller("ByteSize")
MAX_PAGE: Final = 1_000
MAX_PAGE_BYTES: Final = 2 << 20  # half of what clients of gRPC take unless told otherwise


def page_of(
    entries: Iterable[tuple[str, T]], size: int, bytes_of: Callable[[T], int] = _MESSAGE_BYTES
) -> tuple[list[T], str]:
    """The items of a page, and the token of the next one; empty: it was the last.

    `entries`: all after the page before, with unique keys, in the order of the keys; they are made as they are taken.
    A page has at most `size` of them (0: MAX_PAGE), and at most MAX_PAGE_BYTES, unless its only one has more.
    Raises InvalidRequest: `size` is more than MAX_PAGE.
    """
    if size > MAX_PAGE:
        raise invalid("page_size", f"{size}: write 1 to {MAX_PAGE}, or 0 for {MAX_PAGE}")
    page, last, taken = list[T](), "", 0
    for key, one in entries:
        taken += bytes_of(one)
        if len(page) == (size or MAX_PAGE) or (page and taken > MAX_PAGE_BYTES):
            return page, last
        page.append(one)
        last = key
    return page, ""


def page_of_records(records: Mapping[str, M], shows: Callable[[M], bool], size: int, token: str) -> tuple[list[M], str]:
    """`page_of` records by their ids: only those that the page takes are looked at. `shows`: the filter."""
    names = sorted(name for name in records if name > token)
    return page_of(((name, records[name]) for name in names if shows(records[name])), size)
