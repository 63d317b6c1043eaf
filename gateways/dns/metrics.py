"""Metrics of the DNS gateway."""

from __future__ import annotations

from typing import Final, NamedTuple

from gateways.dns.responder import DnsCounts
from gateways.dns.sockets import Tcp
from gateways.dns.zone import Zone
from serving.telemetry.metrics import Declared


class DnsMetricSources(NamedTuple):
    """The objects that the metrics are read from."""

    zone: Zone
    counts: DnsCounts
    tcp: Tcp


D = Declared[DnsMetricSources]
METRICS: Final = (
    D(
        "counter",
        "hq_dns_answers_total",
        "Answers by transport and response code.",
        lambda subject: dict(subject.counts.answers),
        ("transport", "code"),
    ),
    D(
        "counter",
        "hq_dns_dropped_total",
        "Messages and connections without an answer: no_question, rate, connections, send (buffer full), error.",
        lambda subject: {(why,): count for why, count in subject.counts.dropped.items()},
        ("reason",),
    ),
    D("gauge", "hq_dns_connections", "TCP connections.", lambda subject: subject.tcp.connections.total()),
    D(
        "gauge",
        "hq_dns_unnamed_services",
        "Published services whose id is no DNS label: they have no name.",
        lambda subject: subject.zone.unnamed_services,
    ),
)
