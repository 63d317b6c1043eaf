"""docs/performance.md and measurements.md: tables are made from the results, the text is written by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.figures import FIGURES, FIRST, Figure
from tests.bench.results import Comparison, Results
from tests.bench.stats import Spread, short
from tests.bench.table import slopes


def write(made_blocks: Mapping[str, str], page: Path) -> None:
    """Put the tables of today in place of those of before."""
    words = page.read_text()
    for name, made in made_blocks.items():
        pattern = rf"(<!-- made: {name} -->\n).*?(<!-- end -->)"
        words, count = re.subn(pattern, lambda m, made=made: f"{m[1]}{made}\n{m[2]}", words, flags=re.DOTALL)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"{page} has no place for `{name}`, or several")
    page.write_text(words)


def first_blocks(results: Results) -> dict[str, str]:
    """The tables of what matters, by name, in Markdown; the peers' is their case's."""
    return {
        "goals": _goals(results),
        "header": table([("", ""), *results.header.items()]),
    }


def all_blocks(results: Results) -> dict[str, str]:
    """The tables of every row, by name, in Markdown."""
    return {
        "figures": _figures(results),
        "comparisons": _comparisons(results),
        "facts": _facts(results),
        "slopes": table([("case", "exponent"), *((kind, f"{power:.2f}") for kind, power in slopes(results).items())]),
    }


def _goals(results: Results) -> str:
    """How many goals are reached, those that are not, and the most important ones."""
    found = {figure: figure.find(results) for figure in FIGURES}
    missed = [figure for figure in FIGURES if not figure.is_reached(found[figure])]
    rows = [("what", "goal", "measured"), *(_goal(f, found[f]) for f in FIGURES if f.what in FIRST)]
    text = f"{len(FIGURES) - len(missed)} of {len(FIGURES)} goals are reached. These matter most:\n\n{table(rows)}"
    if rest := [(_full_name(f), *_goal(f, found[f])[1:]) for f in missed if found[f] is not None]:
        text += "\n\nNot reached:\n\n" + table([("what", "goal", "measured"), *rest])
    if waiting := [f"{_full_name(f)} ({f.told_target()})" for f in missed if found[f] is None]:
        text += f"\n\nNot measured yet: {'; '.join(waiting)}."
    return text


def _full_name(figure: Figure) -> str:
    """With the name of the row above that "…" stands for."""
    above = [other.what for other in FIGURES[: FIGURES.index(figure)] if not other.what.startswith("…")]
    return figure.what.replace("…", f"{above[-1]},") if figure.what.startswith("…") else figure.what


def _goal(figure: Figure, found: Spread | None) -> tuple[str, ...]:
    return figure.what, figure.told_target(), figure.told(found)


def _figures(results: Results) -> str:
    rows: list[tuple[str, ...]] = [("what", "target", "figure", "spread", "", "date, machine", "command")]
    for figure in FIGURES:
        found = figure.find(results)
        verdict = "" if found is None else "reached" if figure.is_reached(found) else "**missed**"
        command = f"`make bench CASES={figure.group}`"
        date = re.sub(r" \d\d:\d\d UTC|\(R\)| Processor", "", results.dates.get(figure.group, ""))
        rows.append(
            (figure.what, figure.told_target(), figure.told(found), figure.told_spread(found), verdict, date, command)
        )
    return table(rows)


def _comparisons(results: Results) -> str:
    rows: list[tuple[str, ...]] = [
        ("case", "side", "per second", "spread", "HQ against it", "p50 ms", "p99 ms", "CPU µs")
    ]
    for comparison in results.comparisons:
        rows += [_side(comparison, side) for side in comparison.sides]
    return table(rows)


def _side(c: Comparison, side: str) -> tuple[str, ...]:
    rate, is_first = c.rate(side), side == next(iter(c.sides))
    share = "" if side == "hq" else f"{c.ratio(side).median:.0%}"
    measures = (short(c.of(measure, side).median) for measure in ("p50_ms", "p99_ms", "cpu_us"))
    spread = f"{short(rate.least)} .. {short(rate.greatest)}"
    return (c.name if is_first else "", side, short(rate.median), spread, share, *measures)


def _facts(results: Results) -> str:
    rows: list[tuple[str, ...]] = [("what", "median", "spread", "unit")]
    for fact in results.facts:
        found = fact.spread()
        spread = f"{short(found.least)} .. {short(found.greatest)}" if found.least != found.greatest else ""
        rows.append((fact.name, short(found.median), spread, fact.unit))
    return table(rows)


def table(rows: Sequence[tuple[str, ...]]) -> str:
    head, *body = rows
    return "\n".join([_row(head), _row(tuple("---" for _ in head)), *map(_row, body)])


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
