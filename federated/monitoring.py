"""The gateway's own state, location by location: health and Prometheus metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from federated.gateway import FederatedGateway
from federated.locations.location import Location
from federated.locations.locations import Locations
from hqpb.v1 import service_pb2
from serving.telemetry.metrics import Declared


@dataclass(slots=True)
class FederatedHealth:
    """A gateway can serve reads while it knows a location that answers."""

    locations: Locations
    leaving: bool = False

    def live(self) -> bool:
        return True

    def has_loaded(self) -> bool:
        return self.locations.started.is_set() and not self.leaving and len(self._silent()) < self._count()

    def staleness_s(self) -> float | None:
        """The highest staleness of any location; None while one is silent."""
        told = [location.health.staleness_s() for location in self.locations.by_name.values()]
        known = [staleness_s for staleness_s in told if staleness_s is not None]
        return max(known) if known and len(known) == len(told) else None

    def doubt(self) -> str:
        told = {name: one.health.source for name, one in self.locations.by_name.items()}
        doubted = (f"{name}: {s.error}" for name, s in told.items() if s and s.trust == service_pb2.EPOCH_TRUST_DOUBTED)
        return "; ".join(doubted)

    def why(self) -> str:
        if self.leaving:
            return "this gateway is shutting down"
        if not self.locations.started.is_set():
            return "this gateway has not reached its locations yet"
        silent = "; ".join(f"{name} is unreachable: {error}" for name, error in self._silent().items())
        fault = self.locations.file.fault
        return "; ".join(
            filter(None, (silent, f"the changed configuration could not be loaded: {fault}" * bool(fault)))
        )

    def _silent(self) -> dict[str, str]:
        return {one.name: one.health.error for one in self.locations.by_name.values() if not one.health.is_up}

    def _count(self) -> int:
        return len(self.locations.by_name)


_NAN: Final = float("nan")
_GAUGES: Final[dict[str, tuple[str, Callable[[Location], float]]]] = {
    "up": ("1 if the location is reachable and calls wait for it.", lambda one: float(one.health.is_up)),
    "replicas": ("Replicas in the configuration.", lambda one: len(one.race.replicas)),
    "replicas_healthy": (
        "Replicas in use (not set aside).",
        lambda one: sum(not r.is_set_aside for r in one.race.replicas.all),
    ),
    "staleness_seconds": (
        "Upper bound of how long changes may have been missed; NaN: unknown.",
        lambda one: _NAN if (staleness_s := one.health.staleness_s()) is None else staleness_s,
    ),
    "version": (
        "Latest version reported by this location.",
        lambda one: float(one.health.source.version if one.health.source else 0),
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


def _by_location(read: Callable[[Location], float]) -> Callable[[FederatedGateway], dict[tuple[str, ...], float]]:
    return lambda gateway: {(one.name,): read(one) for one in gateway.locations.by_name.values()}


D = Declared[FederatedGateway]
METRICS: Final = (
    *(
        D("gauge", f"hq_federated_location_{name}", text, _by_location(read), ("location",))
        for name, (text, read) in _GAUGES.items()
    ),
    *(
        D("counter", f"hq_federated_location_{name}_total", text, _by_location(read), ("location",))
        for name, (text, read) in _COUNTERS.items()
    ),
    D(
        "counter",
        "hq_federated_resyncs_total",
        "Times that a watch lost continuity of a location.",
        lambda gateway: {(name,): count for name, count in gateway.watches.resyncs.items()},
        ("location",),
    ),
    D("gauge", "hq_federated_followed_filters", "Filters that are followed.", lambda gateway: len(gateway.followed)),
    D("gauge", "hq_federated_followed_bytes", "Bytes held for them.", lambda gateway: gateway.followed.size_bytes),
    D(
        "counter",
        "hq_federated_followed_answers_total",
        "Lists answered from memory.",
        lambda gateway: gateway.followed.answers,
    ),
    D("gauge", "hq_federated_watches", "Open watches.", lambda gateway: gateway.watches.open),
    D(
        "gauge",
        "hq_federated_config_fault",
        "1 if the changed configuration file could not be loaded.",
        lambda gateway: float(bool(gateway.locations.file.fault)),
    ),
)
