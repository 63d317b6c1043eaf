"""Denied calls are recorded one by one up to a rate, then summed up: whoever floods must not push out the record."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from serving.auth.audit import Line
from serving.clock import Clock

_PER_S: Final = 10.0
_BURST: Final = 200.0
_MAX_CALLERS: Final = 10_000


class _Caller:
    """Lines that may be written, as of when; how many calls were left out since the last one, and what the last was."""

    __slots__ = ("last", "left_out", "lines", "since")

    def __init__(self, now: float) -> None:
        self.lines, self.since, self.left_out = _BURST, now, 0
        self.last: Line | None = None


class Denials:
    """Hands lines on to `write`: of each caller 200 at once, then ten a second, each with the number of its calls."""

    def __init__(self, write: Callable[[Line], object], clock: Clock) -> None:
        self._write, self._clock = write, clock
        self._callers: dict[str, _Caller] = {}  # the one that was denied longest ago is first

    def callers(self) -> Collection[str]:
        """Those that were denied lately."""
        return self._callers.keys()

    def record(self, caller: str, line: Line) -> None:
        """A call of this caller (an identity, else a peer) was denied."""
        found = self._callers.pop(caller, None) or _Caller(self._clock.now())
        self._callers[caller] = found
        found.left_out, found.last = found.left_out + line.calls, line
        self._tell(found)
        if len(self._callers) > _MAX_CALLERS:
            oldest = self._callers.pop(next(iter(self._callers)))
            self._sum_up(oldest)

    def tell_rest(self, *, all_of_it: bool = False) -> None:
        """Write what was left out and may be written by now; to be called now and then, and at the end."""
        for name, caller in list(self._callers.items()):
            if all_of_it:
                self._sum_up(caller)
            else:
                self._tell(caller)
            if caller.last is None and caller.lines >= _BURST:
                del self._callers[name]

    def _tell(self, caller: _Caller) -> None:
        now = self._clock.now()
        caller.lines = min(_BURST, caller.lines + (now - caller.since) * _PER_S)
        caller.since = now
        if caller.last is not None and caller.lines >= 1.0:
            caller.lines -= 1.0
            self._sum_up(caller)

    def _sum_up(self, caller: _Caller) -> None:
        if caller.last is not None:
            self._write(caller.last._replace(calls=caller.left_out))
        caller.left_out, caller.last = 0, None
