"""Metrics of the Consul gateway."""

from __future__ import annotations

from typing import Final

from gateways.consul.api import ConsulApi
from serving.telemetry.metrics import Declared

D = Declared[ConsulApi]
METRICS: Final = (
    D(
        "counter",
        "hq_consul_answers_total",
        "Responses by what was requested (none: something not served) and HTTP status.",
        lambda api: dict(api.answered),
        ("question", "status"),
    ),
    D("gauge", "hq_consul_waiting", "Blocking queries that are waiting.", lambda api: api.waiting),
    D(
        "counter",
        "hq_consul_waits_total",
        "Blocking queries that ended: changed (there is a new answer) or time (the wait was over).",
        lambda api: {("changed",): api.woken, ("time",): api.timed_out},
        ("end",),
    ),
)
