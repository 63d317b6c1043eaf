"""How long actions have made no progress, by this process's clock. A new process starts at 0, which only delays."""

from __future__ import annotations

from collections.abc import Hashable

from nanny.rollout.judge import Evidence
from serving.clock import Clock


class ProgressClock:
    """One watch for each action, and its evidence; what is forgotten (at a pause) starts again at 0."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._marks: dict[tuple[str, int], tuple[Hashable, float]] = {}
        self._evidence: dict[tuple[str, int], Evidence] = {}

    def stalled_s(self, service: str, number: int, mark: Hashable) -> float:
        """For how long the mark has been unchanged."""
        now = self._clock.now()
        known, since = self._marks.get((service, number), (None, now))
        if known != mark:
            since = now
        self._marks[service, number] = mark, since
        return now - since

    def evidence(self, service: str, number: int) -> Evidence:
        """What a roll-out has seen until now."""
        return self._evidence.setdefault((service, number), Evidence())

    def forget(self, service: str) -> None:
        """Its actions are paused or over."""
        for known in (self._marks, self._evidence):
            for key in [key for key in known if key[0] == service]:
                del known[key]
