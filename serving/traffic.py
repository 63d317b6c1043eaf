"""What goes over the transports, counted: calls by outcome, their times, what is under way, what was refused.

Own counters instead of prometheus_client's: these cost a tenth, and every call pays for them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from serving.admission import Admission

BOUNDS_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class CallStats:
    """Calls of one method over one transport."""

    __slots__ = ("answers", "buckets", "codes", "seconds")

    def __init__(self) -> None:
        self.answers = 0
        self.codes: Counter[str] = Counter()
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        self.seconds = 0.0

    def answered(self, seconds: float) -> None:
        """Count a call that succeeded after so many seconds."""
        self.answers += 1
        self.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        self.seconds += seconds

    def ended(self, code: str) -> None:
        """Count a call that failed, or a stream that ended; their times mean nothing."""
        self.codes[code] += 1


class Traffic(Collector):
    """The counters of all transports of a process, as Prometheus collects them."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._stats: dict[tuple[str, str], CallStats] = {}

    def stats(self, transport: str, method: str) -> CallStats:
        """The counters of one method over one transport."""
        return self._stats.setdefault((transport, method), CallStats())

    def collect(self) -> Iterator[Metric]:
        yield self._calls()
        yield self._seconds()
        yield self._refused()
        under_way = {
            "hq_calls_in_flight": ("Calls with one answer that are under way.", self._admission.calls),
            "hq_streams_in_flight": ("Streams that are open.", self._admission.streams),
            "hq_bodies_bytes": ("Bytes of large HTTP bodies being received.", self._admission.bodies_bytes),
        }
        for name, (text, value) in under_way.items():
            yield GaugeMetricFamily(name, text, value)

    def _calls(self) -> Metric:
        family = CounterMetricFamily("hq_calls", "Calls that ended.", labels=("transport", "method", "code"))
        for (transport, method), stats in self._stats.items():
            for code, count in (stats.codes + Counter(OK=stats.answers)).items():
                family.add_metric((transport, method, code), count)
        return family

    def _seconds(self) -> Metric:
        text = "From a call's request being complete to its answer being ready; successful calls only."
        family = HistogramMetricFamily("hq_call_seconds", text, labels=("transport", "method"))
        for labels, stats in self._stats.items():
            if any(stats.buckets):
                family.add_metric(labels, _cumulated(stats.buckets), stats.seconds)
        return family

    def _refused(self) -> Metric:
        family = CounterMetricFamily("hq_refused", "What was refused by a limit.", labels=("limit",))
        for limit, count in self._admission.refused.items():
            family.add_metric((limit,), count)
        return family


def _cumulated(buckets: list[int]) -> list[tuple[str, float]]:
    total = 0
    result: list[tuple[str, float]] = []
    for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), buckets, strict=True):
        total += count
        result.append((bound, float(total)))
    return result
