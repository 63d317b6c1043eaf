"""Whom to ask, how long to wait, when to ask a second one. Decisions only: no I/O, time is passed in."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import Final

from hqclient.retry import RetryBudget
from serving.errors import invalid

HEDGE_RATIO: Final = 0.1
_HEDGE_RESERVE: Final = 10.0
_MIN_HEDGE_S: Final = 0.01
_UNKNOWN_HEDGE_S: Final = 0.05  # until there are enough calls for a usual latency
_ENOUGH: Final = 20  # calls between two looks at the usual latency
_WINDOW: Final = 200
_BLAMABLE_WAIT_S: Final = 1.0


def select_locations(known: Iterable[str], wanted: Collection[str], field: str) -> list[str]:
    """The locations to ask: those wanted, or all if none is named, in order.

    Raises:
        InvalidRequest: one is wanted that is not known: an answer without it would look complete.
    """
    names = sorted(known)
    for name in wanted:
        if name not in names:
            raise invalid(field, f"unknown location {name[:100]!r}: known: {', '.join(names)}")
    return [name for name in names if not wanted or name in wanted]


def patience_s(timeout_s: float, left_s: float | None) -> float:
    """How long to wait for a location: its timeout, but the caller must still get the others' answers in time."""
    if left_s is None:
        return timeout_s
    return max(0.001, min(timeout_s, left_s - min(0.25, 0.1 * left_s)))


class HedgeBudget(RetryBudget):
    """A token bucket for hedged requests: every call adds a tenth, each hedge takes one.

    So n calls in a row have at most n/10 hedges, plus those saved before: one at the start, never more than ten.
    """

    def __init__(self) -> None:
        super().__init__(HEDGE_RATIO, _HEDGE_RESERVE, at_first=1.0)


class Latencies:
    """How long calls of one method took lately."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=_WINDOW)
        self._calls, self._late_s = 0, _UNKNOWN_HEDGE_S

    def record_latency(self, seconds: float) -> None:
        """Record how long a call took."""
        self._recent.append(seconds)
        self._calls += 1
        if self._calls % _ENOUGH == 0:
            self._late_s = max(_MIN_HEDGE_S, 2 * sorted(self._recent)[len(self._recent) * 19 // 20])

    def hedge_after_s(self) -> float:
        """The time after which a call is slower than usual: twice the 95th percentile."""
        return self._late_s


class LocationStanding:
    """Whether a location is worth waiting for.

    Attributes:
        is_up: calls wait for it: not between a failure and the next successful probe.
        error: what it failed with; empty while it is up.
        since: when it failed, or was up again; on the clock that is passed in.
    """

    def __init__(self, now: float) -> None:
        self.is_up = True
        self.error = ""
        self.since = now

    def record_answer(self, now: float) -> None:
        """Record an answer, whatever it was."""
        if not self.is_up:
            self.is_up, self.error, self.since = True, "", now

    def record_failure(self, error: str, waited_s: float, timeout_s: float, now: float, *, at_once: bool) -> None:
        """Record that no answer came; a short wait is ignored: the caller's deadline ended it.

        Args:
            at_once: it is not merely slow: no replica of it can be reached.
        """
        if not at_once and waited_s < min(timeout_s * 0.9, _BLAMABLE_WAIT_S):
            return
        if self.is_up:
            self.is_up, self.since = False, now
        self.error = error
