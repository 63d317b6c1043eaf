"""How requests are parsed: those that repeat are remembered by their bytes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")

_LONGEST = 4_096  # bytes; longer requests are parsed each time
_MOST_BYTES = 1 << 20  # of all requests together: parsed, they may take forty times as much


class Memo(Generic[T]):
    """A parser that remembers the newest results. Parsed requests are never changed, so they can be shared."""

    __slots__ = ("_bytes", "_kept", "_parse", "_size")

    def __init__(self, parse: Callable[[bytes], T], size: int = 4_096) -> None:
        self._parse, self._size = parse, size
        self._kept: dict[bytes, T] = {}
        self._bytes = 0

    def __call__(self, body: bytes) -> T:
        found = self._kept.get(body)
        if found is None:
            found = self._parse(body)
            if len(body) <= _LONGEST:
                self._bytes += len(body)
                while len(self._kept) >= self._size or self._bytes > _MOST_BYTES:
                    self._forget_some()
                self._kept[body] = found
        return found

    def _forget_some(self) -> None:
        # The oldest ones: simpler than the least recently used, and as good where requests repeat at all.
        for oldest in list(islice(self._kept, 1 + len(self._kept) // 16)):
            del self._kept[oldest]
            self._bytes -= len(oldest)
