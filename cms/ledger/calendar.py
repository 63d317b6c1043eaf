"""When planned work and roll-outs may begin: windows and freezes. Pure; times are Unix time in seconds.

Windows are in local time. On a day on which the clocks change, an hour that is skipped is missing from them, and one
that is repeated is part of them: they begin at the first and end at the first occurrence of their local time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

_DAY: Final = timedelta(days=1)
_MONTH_S: Final = 28 * 86_400.0
_WITHIN_S: Final = 15 * 86_400.0
_HORIZON_S: Final = 400 * 86_400.0  # windows in two time zones may meet in one half of the year only
_MOST_OPENINGS: Final = 2_000
DAY_END: Final = 24 * 60


@dataclass(frozen=True, slots=True)
class Window:
    """Weekly hours: `begin` and `end` in minutes of the local day; an end at or before the begin is on the next day."""

    days: frozenset[int]  # Monday is 0
    begin: int
    end: int


class Freeze(NamedTuple):
    """No work begins from `begin` until just before `end`; with `repairs`, not even repairs."""

    begin: float
    end: float
    reason: str
    repairs: bool = False


class Opening(NamedTuple):
    """When work may begin. `at` None: never. `why`: what is in the way until then; empty: nothing, it may begin now."""

    at: float | None
    why: str = ""
    name: str = ""


@dataclass(frozen=True)
class CalendarRule:
    """When work may begin on what the rule is for.

    Attributes:
        service, project: the rule is for this service's instances or this project's hosts; both empty: for all work.
        windows: when work may begin; none: at any time but in freezes.
        margin_s: how long before a window's end nothing begins any more.
        overrun_s: an order that began before a window's end may go on for this long after it.
    """

    name: str
    service: str = ""
    project: str = ""
    zone: str = "UTC"
    windows: tuple[Window, ...] = ()
    margin_s: float = 0.0
    freezes: tuple[Freeze, ...] = ()
    overrun_s: float = 0.0

    @cached_property
    def _months(self) -> dict[tuple[int, float], list[tuple[float, float]]]:
        return {}

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    def opening(self, now: float, *, is_repair: bool = False) -> Opening:
        """When work may begin next, this rule alone considered."""
        at, why = now, ""
        for _ in range(2 * len(self.freezes) + 2):
            frozen = next((f for f in self.freezes if f.begin <= at < f.end and (f.repairs or not is_repair)), None)
            if frozen is not None:
                at, why = frozen.end, why or f"freeze of {self.name}: {frozen.reason}"
                continue
            opens_at = at if is_repair or not self.windows else self._opens_at(at, self.margin_s)
            if opens_at == at:
                return Opening(at, why, self.name)
            why = why or f"window {self.name} is closed"
            if opens_at is None:
                break
            at = opens_at
        return Opening(None, why, self.name)

    def may_go_on(self, began: float, now: float) -> bool:
        """Whether work of an order that began at `began` may begin now: in a window, or not long after its end.

        A freeze stops it at once: whoever writes one wants that nothing changes.
        """
        if not self.windows or any(freeze.begin <= now < freeze.end for freeze in self.freezes):
            return False
        since = min(now, max(began, now - self.overrun_s))
        opens_at = self._opens_at(since, 0.0)
        return opens_at is not None and opens_at <= now

    def _opens_at(self, now: float, margin_s: float) -> float | None:
        """When work may begin next, freezes apart; None: never, as all windows are shorter than the margin."""
        month = int(now // _MONTH_S), margin_s
        if month not in self._months:
            self._months[month] = [*self._intervals(*month)]
        found = self._months[month]  # the intervals are apart and in order, and so are their ends
        first = bisect_right(found, now, key=_end)
        return max(now, found[first][0]) if first < len(found) else None

    def _intervals(self, month: int, margin_s: float) -> Iterator[tuple[float, float]]:
        """Intervals in which work may begin, in order, for 28 days and two weeks more; hours that touch make one."""
        first = datetime.fromtimestamp(month * _MONTH_S, self._zone).date()
        merged: list[list[float]] = []
        for begin, end in sorted(self._hours(first - 2 * _DAY, 28 + 2 + 16)):
            if merged and begin <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([begin, end])
        for begin, end in merged:
            if end - begin > margin_s:
                yield begin, end - margin_s

    def _hours(self, first: date, days: int) -> Iterator[tuple[float, float]]:
        midnights = [self._instant(first + n * _DAY, 0) for n in range(days + 3)]

        def instant(n: int, minute: int) -> float:
            n, minute = n + minute // DAY_END, minute % DAY_END
            if midnights[n + 1] - midnights[n] == _DAY.total_seconds():  # no clock changes
                return midnights[n] + 60.0 * minute
            return self._instant(first + n * _DAY, minute)

        for n in range(days):
            weekday = (first + n * _DAY).weekday()
            for window in self.windows:
                if weekday in window.days:
                    begin = instant(n, window.begin)
                    end = instant(n + (window.end <= window.begin), window.end)
                    if begin < end:
                        yield begin, end

    def _instant(self, day: date, minute: int) -> float:
        """A local time as Unix time; for a time that the clocks skip, the moment of the skip."""
        local = datetime.combine(day, time()) + timedelta(minutes=minute)
        earlier, later = (local.replace(tzinfo=self._zone, fold=fold).timestamp() for fold in (1, 0))
        if earlier >= later:  # the local time exists, once or twice
            return later
        offset = self._offset(earlier)
        while later - earlier > 1:
            middle = (earlier + later) // 2
            earlier, later = (middle, later) if self._offset(middle) == offset else (earlier, middle)
        return later

    def _offset(self, at: float) -> timedelta | None:
        return datetime.fromtimestamp(at, UTC).astimezone(self._zone).utcoffset()


def _end(interval: tuple[float, float]) -> float:
    return interval[1]


@dataclass
class Calendar:
    """All rules. Work has to fit every rule that is for it."""

    rules: tuple[CalendarRule, ...] = ()
    _openings: dict[tuple[frozenset[str], bool], tuple[float, Opening]] = field(default_factory=dict)

    def opening(
        self,
        now: float,
        services: Collection[str],
        projects: Collection[str],
        *,
        is_repair: bool = False,
        began: float | None = None,
    ) -> Opening:
        """When work on these may begin next. `began`: when the order began that it is part of; None: with this work."""
        rules = [rule for rule in self.rules if _is_for(rule, services, projects)]
        if began is not None:
            rules = [rule for rule in rules if not rule.may_go_on(began, now)]
        if not rules:
            return Opening(now)
        key = frozenset(rule.name for rule in rules), is_repair
        asked_at, opening = self._openings.get(key, (-1.0, Opening(now)))
        # A closed calendar stays closed until it opens; an open one may close any time.
        stays_closed = bool(opening.why) and asked_at <= now and (opening.at is None or now < opening.at)
        if asked_at != now and not stays_closed:
            opening = meeting(rules, now, is_repair=is_repair)
            self._openings[key] = (now, opening)
        return opening


def _is_for(rule: CalendarRule, services: Collection[str], projects: Collection[str]) -> bool:
    if rule.service or rule.project:
        return rule.service in services if rule.service else rule.project in projects
    return True


def meeting(rules: Sequence[CalendarRule], now: float, *, is_repair: bool = False) -> Opening:
    """When all rules allow work to begin; never, if not within 400 days after the last freeze (one time zone: 15).

    After `_MOST_OPENINGS` steps it gives up, as every decision waits for this: the answer is then when to look again,
    before which the rules do not meet.
    """
    last = max((freeze.end for rule in rules for freeze in rule.freezes), default=now)
    horizon_s = _HORIZON_S if len({rule.zone for rule in rules if rule.windows}) > 1 else _WITHIN_S
    at, first = now, Opening(now)
    for _ in range(_MOST_OPENINGS):
        if at > max(now, last) + horizon_s:
            break
        openings = [rule.opening(at, is_repair=is_repair) for rule in rules]
        latest = _latest(openings)
        first = first if first.why else next((o for o in openings if o.why), first)
        if latest.at is None:
            return latest
        if latest.at == at:
            return Opening(at, first.why, first.name) if at > now else Opening(at)
        at = latest.at
    else:
        return Opening(at, first.why, first.name)
    names = ", ".join(rule.name for rule in rules if rule.windows)
    return Opening(None, f"the windows {names} never meet", first.name)


def _latest(openings: Iterable[Opening]) -> Opening:
    """The one that opens last; one that never opens is later than all."""
    return max(openings, key=lambda opening: float("inf") if opening.at is None else opening.at)
