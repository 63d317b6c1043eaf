"""When to report next: soon after a change, again after a failure, else as often as HQ asks. Decisions only, no I/O."""

from __future__ import annotations

import math
import random

COALESCE_S = 1.0
MIN_TRY_S, MAX_TRY_S = 1.0, 10.0
_SETTLE_S = 0.1


class Schedule:
    """The rhythm of reports: soon after a change but at most one a second, else when the server asked for one.

    Urgent news waits for neither.

    After a failure the wait grows with the time since the first failure in a row and never exceeds that time, nor the
    interval: a short outage must not cost more silence than it lasted.
    """

    def __init__(self, interval_s: float, rng: random.Random) -> None:
        self._interval_s = interval_s
        self._rng = rng
        self._changed_at: float | None = None
        self._sent_at: float | None = None
        self._next_heartbeat_at: float | None = None
        self._failing_since: float | None = None
        self._retry_at = 0.0
        self._some_taken = False
        self._at_once = False

    @property
    def failing_since(self) -> float | None:
        """When the first try began of those that failed since the last success; None: none failed."""
        return self._failing_since

    @property
    def patience_s(self) -> float:
        """How long one try may take: a second one must fit into the interval."""
        return min(MAX_TRY_S, max(MIN_TRY_S, self._interval_s / 2))

    def add_news(self, now: float, *, at_once: bool = False) -> None:
        """There is news. All news until the next report goes into that one; `at_once` makes it due now."""
        if self._changed_at is None:
            self._changed_at = now
        self._at_once |= at_once

    def begin_report(self, now: float) -> None:
        """Note that a report is being sent, with all news so far."""
        self._sent_at = now
        self._changed_at = None
        self._at_once = False

    def record_acceptance(self, now: float, next_report_in_s: float) -> None:
        """The report was taken. The server's hint includes jitter; 0: there was none."""
        self._failing_since = None
        self._next_heartbeat_at = now + (next_report_in_s or self._interval_s * self._rng.uniform(0.9, 1.0))

    def record_failure(self, now: float, retry_delay_s: float = 0.0, *, partly: bool = False) -> None:
        """The report was not taken, as far as we know.

        Args:
            retry_delay_s: how long the server asks us to wait.
            partly: a part of it was taken, so news need not wait for the retry.
        """
        self._some_taken = partly
        if self._failing_since is None:
            self._failing_since = now if self._sent_at is None else self._sent_at
        bound_s = min(max(now - self._failing_since, retry_delay_s), self._interval_s)
        self._retry_at = now + max(min(retry_delay_s, bound_s), bound_s * self._rng.uniform(0.5, 1.0))

    def set_interval(self, interval_s: float) -> None:
        """The server said how often to report when nothing changes."""
        if interval_s > 0:
            self._interval_s = interval_s

    def is_heartbeat_due(self, now: float) -> bool:
        """Whether it is time to report everything, whether or not it changed."""
        return self._next_heartbeat_at is None or now >= self._next_heartbeat_at

    def due_in_s(self, now: float) -> float:
        """Seconds until the next report; 0: now."""
        return max(0.0, self._due_at(now) - now)

    def _due_at(self, now: float) -> float:
        if self._failing_since is not None:
            return min(self._retry_at, self._news_at()) if self._some_taken else self._retry_at
        return now if self._next_heartbeat_at is None else min(self._next_heartbeat_at, self._news_at())

    def _news_at(self) -> float:
        """The first change goes out soon; further ones within the same second share one report."""
        if self._changed_at is None:
            return math.inf
        if self._at_once:
            return self._changed_at
        after_last = -math.inf if self._sent_at is None else self._sent_at + COALESCE_S
        return max(self._changed_at + _SETTLE_S, after_last)
