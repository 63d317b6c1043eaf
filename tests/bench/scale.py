"""docs/scale.md: the measured costs, how well they predict, and some sizes to look at."""

from __future__ import annotations

from dataclasses import asdict, replace

from hq.sizing.capacity import Workload, location_need
from hq.sizing.commands import need_rows
from hq.sizing.drills import DRILLS
from tests.bench.costs import checks, measured_costs
from tests.bench.report import table
from tests.bench.results import Results
from tests.bench.stats import short

_TEN_TIMES = Workload(instances=10_000_000, services=100_000, lookups=10_000, watchers=10_000, changes=200, replicas=5)
_SIZES = {
    "1 M": Workload(),
    "1 M without host agents": Workload(per_node=1),
    "10 M": _TEN_TIMES,
    "10 M in 10 locations": replace(_TEN_TIMES, locations=10, replicas=3),
}


_DRILLED = {
    "1 M": Workload(),
    "1 M, five replicas": Workload(replicas=5),
    "10 M in 10 locations": _SIZES["10 M in 10 locations"],
    "10 M in 20 locations": replace(_SIZES["10 M in 10 locations"], locations=20),
}


def drill_block(results: Results) -> str:
    """What each size does on each bad day: the figures, and in bold those that are over their limit."""
    costs, rows = measured_costs(results), [("drill", "figure", *_DRILLED)]
    for name, play in DRILLS.items():
        reports = [play(costs, workload, 1) for workload in _DRILLED.values()]
        for number, same in enumerate(zip(*(report.figures for report in reports), strict=True)):
            shown = (f"{short(figure.value)} {figure.unit}".strip() for figure in same)
            cells = (text if f.holds else f"**{text}**" for text, f in zip(shown, same, strict=True))
            rows.append((f"`{name}`" if number == 0 else "", same[0].what, *cells))
    return table(rows)


def blocks(results: Results) -> dict[str, str]:
    """Each table by name, in Markdown."""
    costs = measured_costs(results)
    needs = {name: location_need(costs, workload) for name, workload in _SIZES.items()}
    columns = [need_rows(need) for need in needs.values()]
    lines = [(row[0][0], *(value for _, value in row)) for row in zip(*columns, strict=True)]
    limits = ("first limit", *("{} ({:.0%} used)".format(*need.first_limit()) for need in needs.values()))
    checked = [
        (what, short(predicted), short(measured), f"{predicted / measured - 1:+.0%}" if measured else "", unit)
        for what, predicted, measured, unit in checks(results, costs)
    ]
    numbers = [(name, f"{value:.3g}") for name, value in asdict(costs).items() if not isinstance(value, str)]
    return {
        "costs": table([("cost", "value"), *numbers]),
        "checks": table([("point", "predicted", "measured", "off by", "unit"), *checked]),
        "sizes": table([("one location", *needs), *lines, limits]),
    }
