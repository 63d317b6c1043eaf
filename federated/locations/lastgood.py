"""The last good answer to each request, for callers who prefer an old answer to none."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple


class Kept(NamedTuple):
    """An encoded answer, and when it was given, on the front's clock."""

    body: bytes
    at: float


class LastGood:
    """Answers of one location, within a bound of bytes: those asked for least recently go first."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: OrderedDict[tuple[str, bytes], Kept] = OrderedDict()
        self._max_bytes = max_bytes
        self.size_bytes = 0

    def keep(self, method: str, request: bytes, body: bytes, now: float) -> None:
        """Remember an answer, unless it alone would drive out most of the others."""
        old = self._kept.pop((method, request), None)
        if old is not None:
            self.size_bytes -= len(old.body) + len(request)
        if len(body) > self._max_bytes // 4:
            return
        self._kept[method, request] = Kept(body, now)
        self.size_bytes += len(body) + len(request)
        while self.size_bytes > self._max_bytes:
            (_, asked), gone = self._kept.popitem(last=False)
            self.size_bytes -= len(gone.body) + len(asked)

    def get(self, method: str, request: bytes) -> Kept | None:
        """The last answer to this very request; None: it was never answered, or that is forgotten."""
        return self._kept.get((method, request))
