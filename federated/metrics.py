"""What Prometheus sees of a front, location by location; read from its parts at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from federated.front import Front
from federated.location import Location

_NAN: Final = float("nan")
_GAUGES: Final[dict[str, tuple[str, Callable[[Location], float]]]] = {
    "up": ("1 if calls wait for this location.", lambda one: float(one.standing.is_up)),
    "replicas": ("Replicas in the configuration.", lambda one: len(one.race.endpoints)),
    "replicas_healthy": (
        "Replicas that are not set aside.",
        lambda one: sum(not e.is_set_aside for e in one.race.endpoints.all),
    ),
    "staleness_seconds": (
        "For how long at most changes may have been missed; NaN: unknown.",
        lambda one: _NAN if (staleness_s := one.staleness_s()) is None else staleness_s,
    ),
    "version": (
        "Version that this location told last.",
        lambda one: float(one.source.version if one.source else 0),
    ),
    "last_good_bytes": ("Answers kept for callers who allow old ones.", lambda one: one.last_good.size_bytes),
}
_COUNTERS: Final[dict[str, tuple[str, Callable[[Location], float]]]] = {
    "reads": ("Reads sent to this location.", lambda one: one.race.stats.calls),
    "reads_silent": (
        "Reads that it had no answer to, or that were not sent for that reason.",
        lambda one: one.silences,
    ),
    "hedges": ("Reads sent to a second replica because the first was slow.", lambda one: one.race.stats.hedges),
    "hedges_won": ("Those of them that the second replica answered.", lambda one: one.race.stats.hedges_won),
    "failovers": ("Calls sent to another replica because one failed.", lambda one: one.race.stats.failovers),
    "writes": ("Writes sent to this location.", lambda one: one.writes),
    "probes_answered": ("Probes that a replica answered.", lambda one: one.probes[True]),
    "probes_failed": ("Probes that a replica did not answer.", lambda one: one.probes[False]),
}


class FrontCollector(Collector):
    """All metrics of one front."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def collect(self) -> Iterable[Metric]:
        locations, watches = self._front.locations, self._front.watches
        for name, (text, value) in _GAUGES.items():
            gauge = GaugeMetricFamily(f"hq_front_location_{name}", text, labels=("location",))
            for location in locations.by_name.values():
                gauge.add_metric((location.name,), value(location))
            yield gauge
        for name, (text, value) in _COUNTERS.items():
            counter = CounterMetricFamily(f"hq_front_location_{name}", text, labels=("location",))
            for location in locations.by_name.values():
                counter.add_metric((location.name,), value(location))
            yield counter
        resyncs = CounterMetricFamily(
            "hq_front_resyncs", "Continuity of a location lost in a watch.", labels=("location",)
        )
        for location_name, count in watches.resyncs.items():
            resyncs.add_metric((location_name,), count)
        yield resyncs
        yield GaugeMetricFamily("hq_front_watches", "Open watches.", watches.open)
        fault = bool(locations.file.fault)
        yield GaugeMetricFamily("hq_front_config_fault", "1 if the file as it is now is not in force.", float(fault))
