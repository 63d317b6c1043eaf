"""The command `hq plan`."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from hq.sizing.capacity import CapacityPlan, LocationNeed, Workload, capacity_plan
from hq.sizing.costs import FILE, BadCosts, MeasuredCosts, read_costs
from hq.sizing.drills import DRILLS, DrillReport

_GB = 1e9


_MOST = 10**12  # of anything: what is beyond that is a slip of the hand


class FiniteRange(click.FloatRange):
    """A number between bounds, which nan is not."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number", param, ctx) if math.isnan(number) else number


@click.command(short_help="Say how many machines an installation needs, and how it stands bad days.")
@click.option(
    "--instances", type=click.IntRange(1, _MOST), default=1_000_000, show_default=True, help="Of all locations."
)
@click.option(
    "--services", type=click.IntRange(1, _MOST), default=10_000, show_default=True, help="That the instances belong to."
)
@click.option(
    "--lookups", type=FiniteRange(0, _MOST), default=1_000.0, show_default=True, help="Of a service, a second."
)
@click.option(
    "--watchers", type=click.IntRange(0, _MOST), default=1_000, show_default=True, help="Each of one service."
)
@click.option("--changes", type=FiniteRange(0, _MOST), default=20.0, show_default=True, help="Of status, a second.")
@click.option("--report-interval", "report_interval_s", type=FiniteRange(1, _MOST), default=180.0, show_default=True,
              metavar="SECONDS", help="Each instance reports so often.")  # fmt: skip
@click.option("--per-node", type=click.IntRange(1, _MOST), default=20, show_default=True,
              help="Instances behind a host agent; 1: there are none.")  # fmt: skip
@click.option("--replicas", type=click.IntRange(1, _MOST), help="In each location.  [default: as few as it takes]")
@click.option("--locations", type=click.IntRange(1, _MOST), help="[default: as few as it takes]")
@click.option("--secured/--plain", default=True, show_default=True, help="TLS and tokens.")
@click.option(
    "--drill", "drills", multiple=True, type=click.Choice(["all", *DRILLS]), help="Play a bad day. Repeatable."
)
@click.option("--seed", default=1, show_default=True, help="Of the drills.")
@click.option("--costs", "file", type=click.Path(path_type=Path), default=FILE,
              help="Measured on your own machine.  [default: those of this version]")  # fmt: skip
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json is for programs.",
)
def plan(
    drills: tuple[str, ...],
    seed: int,
    file: Path,
    output: str,
    replicas: int | None,
    locations: int | None,
    **given: Any,
) -> None:
    """Say how many machines an installation needs: `hq plan --instances 1000000 --lookups 2000`.

    Computed from costs that were measured on this version, for replicas of which one may be down. Exit code 1:
    nothing carries this, or a drill is not stood. What is behind it: docs/scale.md.
    """
    try:
        costs = read_costs(file)
    except BadCosts as error:
        raise click.UsageError(str(error)) from error
    found = capacity_plan(costs, Workload(**given), replicas, locations)
    names = DRILLS if "all" in drills else dict.fromkeys(drills)
    reports = {name: DRILLS[name](costs, found.workload, seed) for name in names}
    click.echo(_as_json(found, reports) if output == "json" else "\n".join(_lines(costs, found, reports)))
    if not found.fits or not all(report.holds for report in reports.values()):
        raise SystemExit(1)


def need_rows(need: LocationNeed) -> list[tuple[str, str]]:
    """Return the needs of a location, in units that people use."""
    return [
        ("cores per replica", f"{need.cores_per_replica:.2f}"),
        ("memory per replica, GB", f"{need.memory_bytes_per_replica / _GB:.2f}"),
        ("connections and watches per replica", f"{need.connections_per_replica:,.0f}"),
        ("start of a replica, s", f"{need.start_s:.0f}"),
        ("... with a checkpoint, s", f"{need.restart_s:.0f}"),
        ("network per replica, MB/s", f"{need.network_bytes_per_s_per_replica / 1e6:.1f}"),
        ("etcd transactions/s", f"{need.etcd_transactions_per_s:.0f}"),
        ("etcd written, kB/s", f"{need.etcd_bytes_per_s / 1e3:.1f}"),
        ("etcd database, GB", f"{need.etcd_database_bytes / _GB:.2f}"),
    ]


def machine_rows(found: CapacityPlan) -> list[tuple[str, str]]:
    """Return the machines to buy."""
    work, need = found.workload, found.need_with_one_down
    memory_gb = 1.5 * (need.memory_bytes_per_replica + need.etcd_database_bytes) / _GB + 1
    rows = [
        ("locations", f"{work.locations}"),
        ("machines in each", _machines(work.replicas)),
        ("... cores", "4: one for the replica, one for etcd, two for the rest"),
        ("... memory", f"{_up(memory_gb)} GB"),
        ("... disk", f"SSD, {_up(4 * need.etcd_database_bytes / _GB + 20)} GB"),
        ("... --max-agents", f"{_up(1.2 * need.connections_per_replica, 20_000):,}"),
    ]
    if found.gateways:
        rows.append(("federation gateways", f"{found.gateways}, one of them may be down"))
    return rows


def _machines(replicas: int) -> str:
    if replicas == 1:
        return "1, with a replica and etcd: nothing answers while it is down"
    where = "a replica on each, etcd on three of them" if replicas > 2 else "a replica on two, etcd on each"
    return f"{max(3, replicas)}, {where}"


def _up(value: float, least: int = 4) -> int:
    """The next power of two, times the least."""
    size = least
    while size < value:
        size *= 2
    return size


def _lines(costs: MeasuredCosts, found: CapacityPlan, reports: Mapping[str, DrillReport]) -> Iterable[str]:
    limit, share = found.need_with_one_down.first_limit()
    where = ", with one replica down" if found.workload.replicas > 1 else ""
    if not found.fits:
        yield f"does not fit: over the limit{where}: {limit} ({share:.0%} used)"
        yield ""
    yield from _table(machine_rows(found))
    yield ""
    yield "each location, while all run"
    yield from _table(need_rows(found.need))
    if found.fits:
        yield f"  breaks first{where}: {limit} ({share:.0%} used)"
    for name, report in reports.items():
        yield ""
        yield f"{name}: {'holds' if report.holds else 'does not hold: ' + report.remedy}"
        for figure in report.figures:
            mark = "" if figure.holds else f"   over {figure.limit:g}"
            yield f"  {figure.what:44} {_short(figure.value)} {figure.unit}{mark}"
    yield ""
    yield f"costs measured {costs.measured}"


def _table(rows: Iterable[tuple[str, str]]) -> Iterable[str]:
    return (f"  {name:44} {value}" for name, value in rows)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _as_json(found: CapacityPlan, reports: Mapping[str, DrillReport]) -> str:
    limit, share = found.need_with_one_down.first_limit()
    return json.dumps(
        {
            "fits": found.fits,
            "gateways": found.gateways,
            "first_limit": {"what": limit, "used": share},
            "workload": dataclasses.asdict(found.workload),
            "need": dataclasses.asdict(found.need),
            "need_with_one_down": dataclasses.asdict(found.need_with_one_down),
            "drills": {name: {"holds": r.holds, **dataclasses.asdict(r)} for name, r in reports.items()},
        },
        indent=2,
    )
