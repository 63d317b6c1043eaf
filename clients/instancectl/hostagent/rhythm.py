"""When the supervisors of a node report: together, so that their heartbeats are one call. No I/O."""

from __future__ import annotations

from serving.clock import Clock


class Rhythm:
    """One moment for all. Nobody is told to come later than HQ says, only sooner."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_at = 0.0

    def next_s(self, hint_s: float) -> float:
        """Seconds until whoever is answered now shall report again; `hint_s`: as HQ says."""
        now = self._clock.now()
        if self._next_at <= now or self._next_at > now + hint_s:
            self._next_at = now + hint_s
        return self._next_at - now
