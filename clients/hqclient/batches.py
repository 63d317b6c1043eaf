"""Items in batches that a server takes in one request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")
_MOST_BYTES: Final = 1 << 20


def split_batches(items: Iterable[T], most: int, size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """The items in their order, at most `most` and about a MiB together; a larger item is a batch of its own.

    Args:
        size_of: bytes of an item in the request.
    """
    batch: list[T] = []
    size_bytes = 0
    for item in items:
        own_bytes = size_of(item)
        if batch and (len(batch) == most or size_bytes + own_bytes > _MOST_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(item)
        size_bytes += own_bytes
    if batch:
        yield batch
