"""How long actions have made no progress, by this process's clock. A new process starts at 0, which only delays."""

from __future__ import annotations

from collections.abc import Hashable

from serving.clock import Clock


class ProgressClock:
    """One watch for each action; one that is not checked for a while (a pause) starts again at 0."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._marks: dict[tuple[str, int], tuple[Hashable, float]] = {}

    def stalled_s(self, service: str, number: int, mark: Hashable) -> float:
        """For how long the mark has been unchanged."""
        now = self._clock.now()
        known, since = self._marks.get((service, number), (None, now))
        if known != mark:
            since = now
        self._marks[service, number] = mark, since
        return now - since

    def forget(self, service: str) -> None:
        """Its actions are paused or over."""
        for key in [key for key in self._marks if key[0] == service]:
            del self._marks[key]
