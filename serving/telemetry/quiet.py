"""Says what repeats a few times, then how often it was repeated: a store that is away must not fill a disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

_MOST_KINDS: Final = 1_000


class _Kind:
    """Records of one place in the code: since when, how many were let through, the last that was not."""

    __slots__ = ("last", "left_out", "since", "told")

    def __init__(self, since: float) -> None:
        self.since, self.told, self.left_out = since, 0, 0
        self.last: logging.LogRecord | None = None


class Quiet(logging.Handler):
    """Hands records on to another handler: of each kind so many within a window, then one with their number.

    A kind is a logger, a level and a message without its arguments.
    """

    def __init__(self, target: logging.Handler, now: Callable[[], float], *, most: int = 10, window_s: float = 10.0):
        """`now`: seconds on a clock that never steps."""
        super().__init__()
        self._target, self._now, self._most, self._window_s = target, now, most, window_s
        self._kinds: dict[tuple[str, int, str], _Kind] = {}  # in order of `since`

    @property
    def fault(self) -> str:
        """Why the other handler could not write its last record; empty: it was, or that handler does not say."""
        return str(getattr(self._target, "fault", ""))

    def emit(self, record: logging.LogRecord) -> None:
        now = self._now()
        self._tell_old(now)
        # What is passed on as it came ("%s") is of no kind but its own: lines of the audit log must not be left out.
        key = (record.name, record.levelno, record.getMessage() if record.msg == "%s" else str(record.msg))
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind(now)
        if kind.told < self._most:
            kind.told += 1
            self._target.handle(record)
        else:
            kind.left_out, kind.last = kind.left_out + 1, record

    def close(self) -> None:
        """Tell the rest."""
        self._tell_old(float("inf"))
        self._target.close()
        super().close()

    def _tell_old(self, now: float) -> None:
        while self._kinds:
            key, kind = next(iter(self._kinds.items()))
            if kind.since + self._window_s > now and len(self._kinds) <= _MOST_KINDS:
                return
            del self._kinds[key]
            if kind.last is not None:
                self._target.handle(self._summary(kind.last, kind.left_out))

    def _summary(self, last: logging.LogRecord, left_out: int) -> logging.LogRecord:
        words = f"repeated {left_out} times within {self._window_s:.0f} s: {last.getMessage()}"
        return logging.LogRecord(last.name, last.levelno, last.pathname, last.lineno, words, None, None)
