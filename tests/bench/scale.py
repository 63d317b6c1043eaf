"""docs/scale.md: the measured coefficients, the model's checks and two sizes to look at."""

from __future__ import annotations

from dataclasses import asdict

from tests.bench.model import Load, Need, checks, coefficients, need
from tests.bench.report import table
from tests.bench.results import Results
from tests.bench.stats import short

_SIZES = {
    "1 M": Load(),
    "1 M without host agents": Load(per_node=1),
    "10 M": Load(instances=10_000_000, services=100_000, lookups=10_000, watchers=10_000, changes=200, replicas=5),
    "10 M in 10 locations": Load(
        instances=10_000_000, services=100_000, lookups=10_000, watchers=10_000, changes=200, replicas=5, locations=10
    ),
}


def rows(needed: Need) -> list[tuple[str, str]]:
    """What is needed, in units that people use."""
    return [
        ("cores per replica", f"{needed.cores_per_replica:.2f}"),
        ("memory per replica, GB", short(needed.memory_bytes_per_replica / 1e9)),
        ("connections and watches per replica", f"{needed.connections_per_replica:,.0f}"),
        ("start of a replica, s", short(needed.start_s)),
        ("network per replica, MB/s", short(needed.network_bytes_per_s_per_replica / 1e6)),
        ("etcd transactions/s", short(needed.etcd_transactions_per_s)),
        ("etcd written, kB/s", short(needed.etcd_bytes_per_s / 1e3)),
        ("etcd database, GB", short(needed.etcd_database_bytes / 1e9)),
    ]


def blocks(results: Results) -> dict[str, str]:
    """Each table by name, in Markdown."""
    c = coefficients(results)
    needs = {name: need(c, load) for name, load in _SIZES.items()}
    sized = [tuple(column) for column in zip(*(rows(needed) for needed in needs.values()), strict=True)]
    lines = [(column[0][0], *(value for _, value in column)) for column in sized]
    walls = ("first wall", *(needed.wall() for needed in needs.values()))
    checked = [
        (what, short(predicted), short(measured), f"{predicted / measured - 1:+.0%}" if measured else "", unit)
        for what, predicted, measured, unit in checks(results, c)
    ]
    return {
        "coefficients": table(
            [("coefficient", "value"), *((name, f"{value:.3g}") for name, value in asdict(c).items())]
        ),
        "checks": table([("point", "model", "measured", "off by", "unit"), *checked]),
        "sizes": table([("one location", *needs), *lines, walls]),
    }
