"""docs/metrics.md from the tables of metrics: `make proto` writes it, `make check` tells if it is stale (--check)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from cms import metrics as of_cms
from federated import monitoring as of_gateway
from gateways.consul import metrics as of_consul
from gateways.dns import metrics as of_dns
from gateways.picture import metrics as of_picture
from gateways.xds import metrics as of_xds
from hq.api import metrics as of_replica
from hqapi import prometheus_sd
from nanny import metrics as of_nanny
from recorder import metrics as of_recorder
from serving.auth import security
from serving.telemetry import process, traffic
from serving.telemetry.metrics import Declared
from walle.process import metrics as of_walle

PATH: Final = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"
_CHAPTERS: Final[Sequence[tuple[str, str, Sequence[Declared[Any]]]]] = (
    ("Memory", "Of each replica.", of_replica.CACHE),
    ("Liveness", "Of each replica, as it saw it: sum nothing over replicas but what each sends.", of_replica.LIVENESS),
    ("etcd", "Of each replica.", of_replica.STORE),
    ("Calls", "Of replicas and gateways.", traffic.METRICS),
    (
        "Process",
        (
            "Of replicas and gateways, beside `process_*` (memory, descriptors, processor time), `python_gc_*` and "
            "`python_info` as every Python program has them."
        ),
        (*process.METRICS, *process.LOOP_LAG_METRICS, *process.LOG_METRICS),
    ),
    ("Security", "Of replicas and gateways that encrypt, or ask who calls.", security.METRICS),
    ("Service discovery", "Of replicas and gateways: `/sd/prometheus`.", prometheus_sd.METRICS),
    ("Federation gateways", "Of each federation gateway, location by location.", of_gateway.METRICS),
)
_GATEWAYS: Final[Sequence[tuple[str, str, Sequence[Declared[Any]]]]] = (
    ("Gateways", "Of each process of `hq-gateway`, beside those of calls and of the process.", of_picture.METRICS),
    ("DNS gateway", "Of `hq-gateway dns`.", of_dns.METRICS),
    ("Consul gateway", "Of `hq-gateway consul`.", of_consul.METRICS),
    ("Recorder", "Of each process of `hq-recorder`, beside those of calls and of the process.", of_recorder.METRICS),
    ("xDS gateway", "Of `hq-gateway xds`.", of_xds.METRICS),
    (
        "CMS",
        "Of each process of `cms` (the CMS approves disruptions), beside those of calls and of the process.",
        of_cms.METRICS,
    ),
    ("Wall-E", "Of each process of `walle`, beside those of calls and of the process.", of_walle.METRICS),
    ("Nanny", "Of each process of `nanny serve`, beside those of calls and of the process.", of_nanny.METRICS),
)
_HEAD: Final = """# Metrics

<!-- Made by tools/gen_metrics_reference.py: `make proto` writes it anew. -->

Replicas and gateways show these on `/metrics`, in Prometheus' text format or in OpenMetrics, as the scraper asks. They
are read when they are scraped; calls pay for two counters. Tests (`test_metrics*.py`) provoke what each of them tells
of, at a replica, at a secured one and at a gateway, and fail for one that does not move.

`deploy/prometheus/hq.yml` scrapes HQ and finds its targets in HQ, `deploy/prometheus/alerts.yml` has rules with a line
to the chapter *Alerts* of `docs/operations.md`, `deploy/grafana/hq.json` is a dashboard.
"""


def all_declared() -> list[Declared[Any]]:
    """Metrics of replicas and gateways with security on."""
    return [one for _, _, declared in _CHAPTERS for one in declared]


def text() -> str:
    """The page."""
    return "\n".join([_HEAD, *(_chapter(*chapter) for chapter in (*_CHAPTERS, *_GATEWAYS))])


def _chapter(title: str, words: str, declared: Iterable[Declared[Any]]) -> str:
    rows = "".join(f"| `{one.name}` | {one.kind} | {', '.join(one.labels)} | {one.text} |\n" for one in declared)
    return f"## {title}\n\n{words}\n\n| name | kind | labels | what it tells |\n| --- | --- | --- | --- |\n{rows}"


def main() -> None:
    """Write the page, or with --check exit with 1 if it is not as it should be."""
    if "--check" not in sys.argv[1:]:
        PATH.write_text(text())
    elif not PATH.exists() or PATH.read_text() != text():
        sys.exit(f"{PATH.name} is out of date: make proto")


if __name__ == "__main__":
    main()
