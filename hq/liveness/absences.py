"""When HQ could not hear reports: silence measured without those times, and how long ago a report really came. Pure.

HQ's own silence is not the instances' silence. All times are on the injected clock. A gap becomes known only
afterwards, so the times of reports are kept as they were and judged when somebody asks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_GAPS_KEPT: Final = 1_000
_LATE_KEPT: Final = 50
_EVER: Final = float("-inf")


class DowntimeLog:
    """Intervals that do not count as silence.

    Attributes:
        since: nothing before it counts; a report from before it counts as heard at this moment.
    """

    def __init__(self) -> None:
        self.since = float("-inf")
        self._gaps: list[tuple[float, float]] = []  # from, to; oldest first, apart from each other
        self._away_since: float | None = None

    def restart(self, now: float) -> None:
        """Forget everything earlier: silence begins now at the earliest."""
        self.since = now
        self._gaps.clear()
        self._away_since = None

    def away(self, since: float) -> None:
        """Note that HQ has been away since then, until `add` says that it is back."""
        self._away_since = since

    def add(self, began: float, ended: float) -> None:
        """Note that HQ was away in between, and is back."""
        self._away_since = None
        began = max(began, self._gaps[-1][1] if self._gaps else self.since)
        if ended > began:
            self._gaps.append((began, ended))
        if len(self._gaps) > _GAPS_KEPT:
            self._join_oldest()

    def silence_s(self, heard: float, now: float) -> float:
        """For how long nothing was heard while HQ was there to hear."""
        now, heard = self._present(now), max(heard, self.since)
        return max(0.0, now - heard - self.absent_s(heard))

    def absent_s(self, after: float) -> float:
        """For how long HQ was away after a moment."""
        total_s = 0.0
        for began, ended in reversed(self._gaps):
            if ended <= after:
                break
            total_s += ended - max(began, after)
        return total_s

    def heard_before(self, silence_s: float, now: float) -> float:
        """The latest time of a report that means this much silence by now; minus infinity if there is none."""
        until, left_s = self._present(now), silence_s
        for began, ended in reversed(self._gaps):
            if until - ended >= left_s:
                break
            left_s -= max(0.0, until - ended)
            until = min(until, began)
        moment = until - left_s
        return moment if moment >= self.since else float("-inf")

    def _present(self, now: float) -> float:
        """The last moment at which HQ was there."""
        return now if self._away_since is None else min(now, self._away_since)

    def _join_oldest(self) -> None:
        """Join the two oldest gaps to one of their total length: only what was heard between them is judged mildly."""
        (began, ended), (next_began, next_ended) = self._gaps[:2]
        self._gaps[:2] = [(next_began - (ended - began), next_ended)]


class _Late(NamedTuple):
    """Reports learned of from `began` to `ended`, or only at `ended`, may have come as early as `came`."""

    began: float
    ended: float
    came: float


class Unheard:
    """Times at which this replica learned of reports late, or took something for a report that was not one."""

    def __init__(self) -> None:
        self._late: list[_Late] = []

    def restart(self, now: float) -> None:
        """Forget what is known: reports received before `now` may have come at any time."""
        self._late = [_Late(_EVER, now, _EVER)]

    def assume(self, now: float) -> None:
        """Note that contact learned of at this moment was no report."""
        self._add(_Late(now, now, _EVER))

    def gap(self, began: float, ended: float) -> None:
        """Note that reports learned of in between may have come as early as `began`."""
        self._add(_Late(began, ended, began))

    def unheard_s(self, heard: float, now: float) -> float | None:
        """For how long nothing came, at most; None: that is not known."""
        since = min((late.came for late in self._late if late.began <= heard <= late.ended), default=heard)
        return None if since == _EVER else now - min(since, heard)

    def _add(self, late: _Late) -> None:
        if len(self._late) >= _LATE_KEPT:  # merge the two oldest into one, of which nothing is known
            self._late[:2] = [_Late(_EVER, self._late[1].ended, _EVER)]
        self._late.append(late)
