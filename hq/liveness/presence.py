"""Whether HQ itself was there to hear: the judge of gaps. Pure but for what it is told.

Two ways of being away: the cache was not fresh (the store, or the way to it, was gone), and the process stood still (it
was paused, or the machine was). Either stops the measuring of silence, and nothing is flipped until it is over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from hq.liveness.deadlines import Deadlines

log = logging.getLogger(__name__)


class Presence:
    """Looks at every sweep, and tells the deadlines of each gap when it is over.

    Attributes:
        gaps: how many there were; for metrics.
    """

    def __init__(
        self, deadlines: Deadlines, proven_at: Callable[[], float | None], *, fresh_s: float, pause_s: float
    ) -> None:
        """`proven_at` is when the cache was last proven fresh, on the injected clock (None: not since it was loaded);
        older than `fresh_s`, it is not. Two looks more than `pause_s` apart: the process stood still in between."""
        self._deadlines = deadlines
        self._proven_at = proven_at
        self._fresh_s, self._pause_s = fresh_s, pause_s
        self._last_look: float | None = None
        self._away_since: float | None = None
        self.gaps = 0

    def look(self, now: float) -> bool:
        """Whether silence can be judged now."""
        paused_since, self._last_look = self._last_look, now
        proven_at = self._proven_at()
        if proven_at is None:
            self._away_since = None  # the full timeout of a new start covers everything before
            return False
        if now - proven_at > self._fresh_s:
            if self._away_since is None:
                self._away_since = proven_at
                log.warning("the cache is no longer proven fresh: no flips until it is")
            return False
        if self._away_since is not None:
            self._gap(self._away_since, now, "HQ had lost touch with its store")
            self._away_since = None
        elif paused_since is not None and now - paused_since > self._pause_s:
            self._gap(paused_since, now, "this replica stood still")
        return True

    def _gap(self, began: float, now: float, because: str) -> None:
        self.gaps += 1
        self._deadlines.gap(began, now, f"{because} for {now - began:.0f} s")
        log.warning("%s for %.1f s: deadlines move by as much", because, now - began)
