"""What Prometheus sees of a front, location by location; read from its parts at each scrape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from federated.front import Front
from federated.locations.location import Location
from serving.telemetry.metrics import Declared

_NAN: Final = float("nan")
_GAUGES: Final[dict[str, tuple[str, Callable[[Location], float]]]] = {
    "up": ("1 if the location is reachable and calls wait for it.", lambda one: float(one.presence.is_up)),
    "replicas": ("Replicas in the configuration.", lambda one: len(one.race.endpoints)),
    "replicas_healthy": (
        "Replicas in use (not set aside).",
        lambda one: sum(not e.is_set_aside for e in one.race.endpoints.all),
    ),
    "staleness_seconds": (
        "Upper bound of how long changes may have been missed; NaN: unknown.",
        lambda one: _NAN if (staleness_s := one.presence.staleness_s()) is None else staleness_s,
    ),
    "version": (
        "Latest version reported by this location.",
        lambda one: float(one.presence.source.version if one.presence.source else 0),
    ),
    "last_good_bytes": ("Responses kept for callers that allow stale ones.", lambda one: one.last_good.size_bytes),
}
_COUNTERS: Final[dict[str, tuple[str, Callable[[Location], float]]]] = {
    "reads": ("Reads sent to this location.", lambda one: one.race.stats.calls),
    "reads_silent": (
        "Reads it did not answer, or that were not sent because it is unreachable.",
        lambda one: one.silences,
    ),
    "hedges": ("Reads sent to a second replica because the first was slow.", lambda one: one.race.stats.hedges),
    "hedges_won": ("Those of them that the second replica answered.", lambda one: one.race.stats.hedges_won),
    "failovers": ("Calls sent to another replica because one failed.", lambda one: one.race.stats.failovers),
    "writes": ("Writes sent to this location.", lambda one: one.writes),
    "probes_answered": ("Probes that a replica answered.", lambda one: one.probes.answered),
    "probes_failed": ("Probes that no replica answered.", lambda one: one.probes.unanswered),
}


def _by_location(read: Callable[[Location], float]) -> Callable[[Front], dict[tuple[str, ...], float]]:
    return lambda front: {(one.name,): read(one) for one in front.locations.by_name.values()}


D = Declared[Front]
METRICS: Final = (
    *(
        D("gauge", f"hq_front_location_{name}", text, _by_location(read), ("location",))
        for name, (text, read) in _GAUGES.items()
    ),
    *(
        D("counter", f"hq_front_location_{name}_total", text, _by_location(read), ("location",))
        for name, (text, read) in _COUNTERS.items()
    ),
    D(
        "counter",
        "hq_front_resyncs_total",
        "Times that a watch lost continuity of a location.",
        lambda front: {(name,): count for name, count in front.watches.resyncs.items()},
        ("location",),
    ),
    D(
        "gauge",
        "hq_front_followed_filters",
        "Filters that are followed.",
        lambda front: len(front.followed),
    ),
    D("gauge", "hq_front_followed_bytes", "Bytes held for them.", lambda front: front.followed.size_bytes),
    D(
        "counter",
        "hq_front_followed_answers_total",
        "Lists answered from memory.",
        lambda front: front.followed.answers,
    ),
    D("gauge", "hq_front_watches", "Open watches.", lambda front: front.watches.open),
    D(
        "gauge",
        "hq_front_config_fault",
        "1 if the changed configuration file could not be loaded.",
        lambda front: float(bool(front.locations.file.fault)),
    ),
)
