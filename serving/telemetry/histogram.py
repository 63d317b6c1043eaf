"""Counts by size, as Prometheus' histograms want them; cheap enough for hot paths."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts of values by upper bounds (inclusive), and their sum."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def cumulated(self) -> list[tuple[str, float]]:
        """Upper bound and how many values do not exceed it, up to "+Inf"."""
        sums: list[tuple[str, float]] = []
        sum_ = 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self.counts, strict=True):
            sum_ += count
            sums.append((bound, float(sum_)))
        return sums
