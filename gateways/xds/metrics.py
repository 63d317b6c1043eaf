"""Metrics of the xDS gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gateways.xds.stream import XdsCounts
from serving.telemetry.metrics import Declared


def _by_type(read: Callable[[XdsCounts], dict[str, int]]) -> Callable[[XdsCounts], dict[tuple[str, ...], float]]:
    return lambda counts: {(kind,): count for kind, count in read(counts).items()}


D = Declared[XdsCounts]
METRICS: Final = (
    D("gauge", "hq_xds_streams", "Clients that are connected.", lambda counts: counts.streams),
    D("counter", "hq_xds_responses_total", "Answers sent.", _by_type(lambda counts: counts.responses), ("type",)),
    D(
        "counter",
        "hq_xds_acks_total",
        "Versions that a client accepted (ACK).",
        _by_type(lambda counts: counts.acks),
        ("type",),
    ),
    D(
        "counter",
        "hq_xds_nacks_total",
        "Versions that a client rejected (NACK) and does not use: the log names the resource and the reason.",
        _by_type(lambda counts: counts.nacks),
        ("type",),
    ),
)
