"""The past as a picture and as a table: readiness as an area, orders as lines, gaps as what they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from console.views.instances import Moments
from console.views.urls import url
from console.views.words import absolute, plural, seconds, short, split_camel_case
from historypb.v1 import history_pb2 as pb
from nannypb.v1 import service_pb2 as npb

WIDTH: Final = 960
HEIGHT: Final = 120
MOST_EVENTS: Final = 60
_MOST_ROWS: Final = 200
_STEPS: Final = 240
_HOURS: Final = {"1h": 1, "6h": 6, "24h": 24, "7d": 168}
_KINDS: Final = {
    pb.EVENT_KIND_CREATED: ("plain", "created"),
    pb.EVENT_KIND_DELETED: ("plain", "deleted"),
    pb.EVENT_KIND_READY: ("good", "ready"),
    pb.EVENT_KIND_NOT_READY: ("bad", "not ready"),
    pb.EVENT_KIND_CHANGED: ("plain", "changed"),
    pb.EVENT_KIND_GAP: ("coming", "nothing heard"),
}


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The Unix times that a time line covers. It moves on by whole steps: between two of them a page stays the same."""

    name: str
    since_s: int
    until_s: int
    step_s: int

    @classmethod
    def ending(cls, name: str, now_s: float) -> TimeRange:
        """The range of this name up to now; six hours if there is none."""
        name = name if name in _HOURS else "6h"
        step_s = _HOURS[name] * 3_600 // _STEPS
        until_s = int(now_s) // step_s * step_s + step_s
        return cls(name, until_s - step_s * _STEPS, until_s, step_s)

    def x(self, at_s: float) -> float:
        """Where a time is in the picture."""
        return round(WIDTH * (at_s - self.since_s) / (self.until_s - self.since_s), 1)

    def links(self, *address: str) -> list[tuple[str, str, bool]]:
        """The ranges to choose from, each with its address and whether it is this one."""
        return [(name, url(*address, span=name), name == self.name) for name in _HOURS]


@dataclass(frozen=True, slots=True)
class ChartMark:
    """Something that was ordered, or that followed."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class ReadinessRow:
    """Counts from a time on: ready instances, and the fewest (`least`) since the row before."""

    at_s: float
    ready: int
    least: int
    instances: int
    in_gap: bool


@dataclass(frozen=True, slots=True)
class ReadinessChart:
    """`ready` and `instances`: corners of areas; `gaps`: x and width, where nothing was heard; `rows`: newest first."""

    range: TimeRange
    ready: str
    instances: str
    gaps: Sequence[tuple[float, float]]
    marks: Sequence[ChartMark]
    rows: Sequence[ReadinessRow]
    most: int
    summary: str


def readiness_chart(range_: TimeRange, counts: Iterable[pb.Count], marks: Sequence[ChartMark] = ()) -> ReadinessChart:
    """The picture of these counts; those of the future are left out."""
    rows = [
        ReadinessRow(seconds(one.time), one.ready, min(one.least_ready, one.ready), one.instances, one.in_gap)
        for one in counts
    ]
    most = max((one.instances for one in rows), default=0)
    return ReadinessChart(
        range_,
        _area(range_, [(one.at_s, one.least) for one in rows], most),
        _area(range_, [(one.at_s, one.instances) for one in rows], most),
        list(_gaps(range_, rows)),
        marks,
        list(_changed_rows(rows))[-_MOST_ROWS:][::-1],
        most,
        _summary(rows, most),
    )


def _area(range_: TimeRange, points: Sequence[tuple[float, int]], most: int) -> str:
    """Steps, not slopes: between two counts nothing is made up."""
    if not points or not most:
        return ""
    corners = [(range_.x(points[0][0]), float(HEIGHT))]
    for (_, value), (at_s, after) in pairwise([points[0], *points]):
        x = range_.x(at_s)
        corners += [(x, _y(value, most)), (x, _y(after, most))]
    corners.append((corners[-1][0], float(HEIGHT)))
    return " ".join(f"{x:g},{y:g}" for (x, y), _ in groupby(corners))  # neighbours only: the last corner may repeat one


def _y(value: int, most: int) -> float:
    return round(HEIGHT - (HEIGHT - 6) * value / most, 1)


def _gaps(range_: TimeRange, rows: Sequence[ReadinessRow]) -> Iterator[tuple[float, float]]:
    """Where something was not heard, neighbours together."""
    since: float | None = None
    end = range_.since_s
    for one in rows:
        if one.in_gap and since is None:
            since = end if one is not rows[0] else one.at_s
        if not one.in_gap and since is not None:
            yield range_.x(since), range_.x(end) - range_.x(since)
            since = None
        end = int(one.at_s)
    if since is not None:
        yield range_.x(since), max(1.0, range_.x(end) - range_.x(since))


def _changed_rows(rows: Sequence[ReadinessRow]) -> Iterator[ReadinessRow]:
    for before, one in pairwise([None, *rows]):
        assert one is not None
        as_before = before is not None and (before.ready, before.instances, before.in_gap) == (
            one.ready,
            one.instances,
            one.in_gap,
        )
        if not as_before or one.least < one.ready:
            yield one


def _summary(rows: Sequence[ReadinessRow], most: int) -> str:
    if not most:
        return "Nothing of it is on record in this time."
    last = rows[-1]
    # Before an instance was made none was ready, which is no dip.
    lowest = min((one for before, one in pairwise(rows) if before.instances), key=lambda one: one.least, default=last)
    told = f"{last.ready} of {plural(last.instances, 'instance')} ready at the end"
    if lowest.least < last.ready:
        told += f"; fewest: {lowest.least}, at {absolute(lowest.at_s, last.at_s)}"
    return f"{told}; something was not heard." if any(one.in_gap for one in rows) else f"{told}."


def order_marks(range_: TimeRange, history: Iterable[npb.HistoryEntry]) -> list[ChartMark]:
    """Return people's orders to Nanny, as lines in the picture."""
    return [
        ChartMark(range_.x(at_s), f"{absolute(at_s, range_.until_s)} {one.author}: {one.what} {short(one.snapshot_id)}")
        for one in history
        if one.author and range_.since_s <= (at_s := seconds(one.time)) < range_.until_s
    ]


def past_moments(events: Iterable[pb.Event], *, is_of_one: bool) -> list[Moments]:
    """Recorded events for a list, newest first as they come. `is_of_one`: the page is of this instance already."""
    return [_moment(one, is_of_one=is_of_one) for one in events]


def _moment(one: pb.Event, *, is_of_one: bool) -> Moments:
    level, word = _KINDS.get(one.kind, ("plain", "changed"))
    if one.kind == pb.EVENT_KIND_GAP:
        until_s = seconds(one.until) if one.HasField("until") else 0.0
        ending = f"until {absolute(until_s, seconds(one.time))}" if until_s else "until now"
        return Moments(one.time, level, f"{word} {ending}", one.message)
    parts = [split_camel_case(one.reason), one.message, "" if is_of_one or not one.node else f"on {one.node}"]
    if not one.version:
        parts.append("found after a gap: it happened before")
    return Moments(
        one.time, level, word if is_of_one else f"{one.instance_id} {word}", " · ".join(part for part in parts if part)
    )
