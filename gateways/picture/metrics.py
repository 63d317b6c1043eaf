"""Metrics of a picture; read from it at each scrape."""

from __future__ import annotations

from typing import Final, NamedTuple

from gateways.picture.addresses import Addressing
from gateways.picture.picture import EndpointView
from hqclient.discovery import Origin
from serving.telemetry.metrics import Declared


class ViewMetricSources(NamedTuple):
    """The objects that the metrics are read from."""

    picture: EndpointView
    addressing: Addressing


def _by_readiness(subject: ViewMetricSources) -> dict[tuple[str, ...], float]:
    picture = subject.picture
    counts: dict[tuple[str, ...], float] = {("true",): 0.0, ("false",): 0.0}
    for name in picture.services:
        for instance in picture.instances(name).values():
            counts["true" if instance.is_ready else "false",] += 1
    return counts


def _by_source(subject: ViewMetricSources) -> dict[tuple[str, ...], float]:
    return {(origin.name.lower(),): float(subject.picture.condition.source is origin) for origin in Origin}


D = Declared[ViewMetricSources]
METRICS: Final = (
    D("gauge", "hq_gateway_services", "Services with instances.", lambda subject: len(subject.picture.services)),
    D("gauge", "hq_gateway_instances", "Instances that are published, ready or not.", _by_readiness, ("ready",)),
    D(
        "gauge",
        "hq_gateway_age_seconds",
        "Time since the list was last complete; infinite if it never was.",
        lambda subject: subject.picture.condition.age_s,
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
        lambda subject: float(subject.picture.condition.stale),
    ),
    D(
        "gauge",
        "hq_gateway_location_away",
        "1 for a location that does not answer the federation gateway: its last known instances are kept.",
        lambda subject: {
            (name,): float(name in subject.picture.condition.away)
            for name in subject.picture.coverage.locations | subject.picture.condition.away
        },
        ("location",),
    ),
    D(
        "counter",
        "hq_gateway_changes_total",
        "Changes of the list, or of addresses.",
        lambda subject: subject.picture.changes,
    ),
    D(
        "counter",
        "hq_gateway_resyncs_total",
        "Times that continuity was lost and a fresh snapshot taken.",
        lambda subject: subject.picture.condition.resyncs,
    ),
    D("gauge", "hq_gateway_names", "Hosts that are names.", lambda subject: subject.picture.hosts.names),
    D(
        "gauge",
        "hq_gateway_names_unresolved",
        "Of these, names without an address.",
        lambda subject: subject.picture.hosts.unresolved,
    ),
    D(
        "counter",
        "hq_gateway_left_out_total",
        "Ready instances that were left out of answers, once each: no_port, unresolved, duplicate.",
        lambda subject: {(why.name.lower(),): count for why, count in subject.addressing.left_out.items()},
        ("reason",),
    ),
)
