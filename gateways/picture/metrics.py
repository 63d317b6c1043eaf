"""What Prometheus sees of a picture; read from it at each scrape."""

from __future__ import annotations

from typing import Final, NamedTuple

from gateways.picture.addresses import Addressing
from gateways.picture.picture import Picture
from hqclient.discovery import Origin
from serving.telemetry.metrics import Declared


class Seen(NamedTuple):
    """What the metrics are of."""

    picture: Picture
    addressing: Addressing


def _by_readiness(seen: Seen) -> dict[tuple[str, ...], float]:
    picture = seen.picture
    counts: dict[tuple[str, ...], float] = {("true",): 0.0, ("false",): 0.0}
    for name in picture.services:
        for instance in picture.instances(name).values():
            counts["true" if instance.is_ready else "false",] += 1
    return counts


def _by_source(seen: Seen) -> dict[tuple[str, ...], float]:
    return {(origin.name.lower(),): float(seen.picture.condition.source is origin) for origin in Origin}


D = Declared[Seen]
METRICS: Final = (
    D("gauge", "hq_gateway_services", "Services with instances.", lambda seen: len(seen.picture.services)),
    D("gauge", "hq_gateway_instances", "Instances that are published, ready or not.", _by_readiness, ("ready",)),
    D(
        "gauge",
        "hq_gateway_age_seconds",
        "The list was complete so long ago; infinite: there is none.",
        lambda seen: seen.picture.condition.age_s,
    ),
    D(
        "gauge",
        "hq_gateway_source",
        "1 for where the list comes from: none, saved (a file), kept (HQ is away), live.",
        _by_source,
        ("source",),
    ),
    D(
        "gauge",
        "hq_gateway_stale",
        "1 if the list may be out of date.",
        lambda seen: float(seen.picture.condition.stale),
    ),
    D(
        "gauge",
        "hq_gateway_location_away",
        "1 for a location of which a federation gateway has no word: its instances are kept.",
        lambda seen: {
            (name,): float(name in seen.picture.condition.away)
            for name in seen.picture.sight.locations | seen.picture.condition.away
        },
        ("location",),
    ),
    D(
        "counter",
        "hq_gateway_changes_total",
        "Steps of the list or of addresses.",
        lambda seen: seen.picture.changes,
    ),
    D(
        "counter",
        "hq_gateway_resyncs_total",
        "Times that continuity was lost and a fresh snapshot taken.",
        lambda seen: seen.picture.condition.resyncs,
    ),
    D("gauge", "hq_gateway_names", "Hosts that are names.", lambda seen: seen.picture.hosts.names),
    D(
        "gauge",
        "hq_gateway_names_unresolved",
        "Of these, those without any address.",
        lambda seen: seen.picture.hosts.unresolved,
    ),
    D(
        "counter",
        "hq_gateway_left_out_total",
        "Ready instances that were left out of answers, once each: no_port, unresolved, duplicate.",
        lambda seen: {(why.name.lower(),): count for why, count in seen.addressing.left_out.items()},
        ("reason",),
    ),
)
