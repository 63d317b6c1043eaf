"""The results as text."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.results import Comparison, Results
from tests.bench.stats import short, slope

_HEAD = ("", "side", "rate/s", "least..greatest", "of it", "p50 ms", "p99 ms", "CPU µs")


def text(results: Results) -> str:
    """Header, comparisons, facts and slopes as a table for a terminal."""
    lines = [f"{name:22}{words}" for name, words in results.header.items()]
    for group in results.groups():
        rows = [row for c in results.comparisons if c.group == group for row in _rows(c)]
        if rows:
            lines += ["", *_aligned([_HEAD, *rows])]
        facts = [(f.name, str(f.spread()), f.unit) for f in results.facts if f.group == group]
        lines += ["", *_aligned(facts)] if facts else []
    return "\n".join([*lines, "", *_slopes(results)])


def _rows(c: Comparison) -> list[tuple[str, ...]]:
    rows = []
    for side in c.sides:
        rate = c.rate(side)
        share = "" if side == "hq" else f"{c.ratio(side).median:.0%}"
        rows.append(
            (
                c.name if side == next(iter(c.sides)) else "",
                side,
                short(rate.median),
                f"{short(rate.least)}..{short(rate.greatest)}",
                share,
                *(short(c.of(measure, side).median) for measure in ("p50_ms", "p99_ms", "cpu_us")),
            )
        )
    return rows


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _slopes(results: Results) -> list[str]:
    return [
        f"{name}: cost grows with size to the power of {exponent:.2f}" for name, exponent in slopes(results).items()
    ]


def slopes(results: Results) -> dict[str, float]:
    """For each case at several sizes: the exponent of its cost."""
    found: dict[str, dict[float, float]] = {}
    for c in results.comparisons:
        if c.size:
            kind = c.name.replace(f"{c.size:,.0f}", "n")
            found.setdefault(kind, {})[c.size] = c.of("cpu_us").median
    for fact in results.facts:
        if fact.size and "CPU per" in fact.name:
            found.setdefault(fact.name.replace(f"{fact.size:,.0f}", "n"), {})[fact.size] = fact.spread().median
    return {kind: slope(points) for kind, points in found.items() if len(points) > 1}
