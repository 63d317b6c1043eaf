"""Windows as people write them, read for the ledger's calendar. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cms.checks import check_line, check_size, is_name
from cms.ledger.calendar import CalendarRule, Freeze, Window
from cmspb.v1 import cms_pb2 as pb
from serving.durations import duration_s
from serving.errors import InvalidRequest, Violation, invalid

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00")
_MOST: Final = 100  # of hours and freezes
_MOST_MARGIN_S: Final = 86_401.0
_OVERRUN_S: Final = 3_600.0
# Bounds of a freeze for ever: times computed from these, days and minutes more, are still within a calendar's years.
_FIRST_S: Final = datetime(1970, 1, 1, tzinfo=UTC).timestamp()
_LAST_S: Final = datetime(9000, 1, 1, tzinfo=UTC).timestamp()


def check_windows(windows: pb.Windows) -> None:
    """Raises InvalidRequest, naming the field that is wrong. What was stored before may be larger."""
    rule_of(windows)
    if found := check_size(windows, "windows"):
        raise InvalidRequest(*found)


def rule_of(windows: pb.Windows) -> CalendarRule:
    """The rule that windows make. Raises InvalidRequest, naming the field that is wrong."""
    _check_words(windows)
    zone = _zone(windows.zone or "UTC")
    rule = CalendarRule(
        windows.name,
        windows.service,
        windows.project,
        zone.key,
        tuple(_window(hours, f"windows.hours[{n}]") for n, hours in enumerate(windows.hours)),
        duration_s(windows.margin, "windows.margin") if windows.margin else 0.0,
        tuple(_freeze(one, zone, f"windows.freeze[{n}]") for n, one in enumerate(windows.freeze)),
        duration_s(windows.overrun, "windows.overrun") if windows.overrun else _OVERRUN_S,
    )
    if rule.overrun_s >= _MOST_MARGIN_S:
        raise invalid("windows.overrun", f"{windows.overrun} is too long: at most 24h")
    if rule.margin_s >= _MOST_MARGIN_S:
        raise invalid("windows.margin", f"{windows.margin} is too long: at most 24h")
    if rule.windows and all(width_s <= rule.margin_s for width_s in _widths(rule)):
        raise invalid("windows.margin", f"{windows.margin} leaves nothing of the hours: write less")
    return rule


def _check_words(windows: pb.Windows) -> None:
    found = []
    if not is_name(windows.name):
        found.append(Violation("windows.name", f"{windows.name[:60]!a}: use 1 to 100 letters, digits and ._@-"))
    if windows.service and windows.project:
        found.append(Violation("windows.service", "give a service or a project, or none of them, not both"))
    for field in ("service", "project"):
        found += check_line(getattr(windows, field), f"windows.{field}", 253, may_be_empty=True)
    if not windows.hours and not windows.freeze:
        found.append(Violation("windows.hours", "is empty: write hours, or a freeze"))
    if max(len(windows.hours), len(windows.freeze)) > _MOST:
        found.append(Violation("windows.hours", f"at most {_MOST} hours and {_MOST} freezes"))
    for number, freeze in enumerate(windows.freeze):
        found += check_line(freeze.reason, f"windows.freeze[{number}].reason", 1_000)
    if found:
        raise InvalidRequest(*found)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        words = f"{name[:60]!a} is not a time zone known here: write one as Europe/Berlin (IANA, package tzdata)"
        raise invalid("windows.zone", words) from None


def _window(hours: pb.Hours, field: str) -> Window:
    begin, end = _minute(hours.begin, f"{field}.begin"), _minute(hours.end, f"{field}.end")
    if begin == 24 * 60 or begin == end:
        raise invalid(f"{field}.begin", f"{hours.begin} to {hours.end} is empty: write 00:00 to 24:00 for a whole day")
    return Window(frozenset(_days(hours.days or "mon-sun", f"{field}.days")), begin, end)


def _minute(text: str, field: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise invalid(field, f"{text[:40]!a} is not a time of day: write one as 22:00")
    return int(found[1]) * 60 + int(found[2]) if found[1] else 24 * 60


def _days(text: str, field: str) -> Iterator[int]:
    for part in text.lower().split(","):
        first, _, last = (word.strip() for word in part.partition("-"))
        if first not in _DAYS or (last and last not in _DAYS):
            raise invalid(field, f"{part[:40]!a} is not a day: write them as mon-fri or sat,sun")
        begin = _DAYS.index(first)
        length = (_DAYS.index(last or first) - begin) % 7 + 1
        yield from ((begin + n) % 7 for n in range(length))


def _freeze(freeze: pb.FreezePeriod, zone: ZoneInfo, field: str) -> Freeze:
    begin = _moment(freeze.begin, zone, f"{field}.begin")
    end = _moment(freeze.end, zone, f"{field}.end", days=1)
    if begin >= end:
        raise invalid(f"{field}.end", f"{freeze.end} is not after {freeze.begin}")
    return Freeze(max(begin, _FIRST_S), min(end, _LAST_S), freeze.reason, freeze.repairs)


def _moment(text: str, zone: ZoneInfo, field: str, *, days: int = 0) -> float:
    """A local time as Unix time; infinity beyond a calendar's years. `days` are added to a date without a time."""
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(field, f"{text[:40]!a} is neither a day as 2026-12-20 nor a time as 2026-12-20T18:00") from None
    if local.tzinfo is not None:
        raise invalid(field, f"{text} names a time zone: leave it out, `zone` says it")
    try:
        return (local + timedelta(days=days if len(text) == 10 else 0)).replace(tzinfo=zone).timestamp()
    except (OverflowError, ValueError):
        return math.inf if local.year > 1 else -math.inf


def _widths(rule: CalendarRule) -> Iterator[float]:
    """How long each window is when no clock changes; one that touches midnight may go on: infinity, too."""
    if any(window.begin == 0 or window.end == 24 * 60 for window in rule.windows):
        yield float("inf")
    for window in rule.windows:
        yield 60.0 * ((window.end - window.begin - 1) % (24 * 60) + 1)
