"""Metrics as tables: what is declared, how it is read, and Prometheus' collector of both.

They are read from their subjects at each scrape, which costs the hot paths nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

T = TypeVar("T")


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

    def cumulative_counts(self) -> list[tuple[str, float]]:
        """Upper bound and how many values do not exceed it, up to "+Inf"."""
        sums: list[tuple[str, float]] = []
        sum_ = 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self.counts, strict=True):
            sum_ += count
            sums.append((bound, float(sum_)))
        return sums


Values = float | Histogram | Mapping[Any, float] | Mapping[Any, Histogram]  # by tuples of words


@dataclass(frozen=True)
class Declared(Generic[T]):
    """One metric: its name as it is scraped, a sentence on it, and how to read it from its subject.

    `read` returns a number or Histogram, or one for each combination of the labels' values.
    """

    kind: Literal["gauge", "counter", "histogram"]
    name: str
    text: str
    read: Callable[[T], Values]
    labels: tuple[str, ...] = ()

    def family(self, subject: T) -> Metric:
        """Its current values."""
        values = self.read(subject)
        told = values if isinstance(values, Mapping) else {(): values}
        if self.kind == "histogram":
            histogram = HistogramMetricFamily(self.name, self.text, labels=self.labels)
            for labels, value in told.items():
                if isinstance(value, Histogram):
                    histogram.add_metric(labels, value.cumulative_counts(), value.total)
            return histogram
        make = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = make(self.name, self.text, labels=self.labels)
        for labels, value in told.items():
            if not isinstance(value, Histogram):
                family.add_metric(labels, value)
        return family


class Table(Collector, Generic[T]):
    """Collects a table of metrics of one subject."""

    def __init__(self, declared: Sequence[Declared[T]], subject: T) -> None:
        self.declared, self._subject = declared, subject

    def collect(self) -> Iterator[Metric]:
        for one in self.declared:
            yield one.family(self._subject)
