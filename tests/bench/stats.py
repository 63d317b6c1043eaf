"""Medians, spreads, percentiles and slopes of what was measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """One round of load on one side.

    Attributes:
        rate: answers per second.
        p50_ms, p90_ms, p99_ms, max_ms: of the time from a request to its answer.
        cpu_us: processor time of the server per answer, all of its threads; 0: not taken.
        answer_bytes: per answer, as the load generator counted them.
    """

    rate: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    cpu_us: float = 0.0
    answer_bytes: float = 0.0

    def as_dict(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and greatest of several rounds."""

    median: float
    least: float
    greatest: float

    def as_dict(self) -> dict[str, float]:
        return {"median": self.median, "least": self.least, "greatest": self.greatest}

    def __str__(self) -> str:
        return f"{short(self.median)} ({short(self.least)}..{short(self.greatest)})"


def spread(values: Sequence[float]) -> Spread:
    """Spread of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ours over theirs, round by round: what disturbed a round disturbed both sides."""
    return spread([mine / other for mine, other in zip(ours, theirs, strict=True) if other])


def percentile(ordered: Sequence[float], share: float) -> float:
    """Percentile of values in ascending order; 0 if there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def slope(points: Mapping[float, float]) -> float:
    """How cost grows with size: the exponent of the power law through the points (0: not at all, 1: in proportion)."""
    logs = [(math.log(x), math.log(y)) for x, y in points.items() if x > 0 and y > 0]
    if len(logs) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def line(points: Mapping[float, float]) -> tuple[float, float]:
    """Cost = intercept + slope · size, as (intercept, slope): least squares of the relative error."""
    weights = {x: 1 / max(y, 1e-9) ** 2 for x, y in points.items()}
    total = sum(weights.values())
    mean_x = sum(w * x for x, w in weights.items()) / total
    mean_y = sum(w * points[x] for x, w in weights.items()) / total
    over = sum(w * (x - mean_x) * (points[x] - mean_y) for x, w in weights.items())
    under = sum(w * (x - mean_x) ** 2 for x, w in weights.items())
    per = over / under if under else 0.0
    return mean_y - per * mean_x, per


def short(value: Any) -> str:
    """A number as people read it: three digits that mean something, thousands apart."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
