"""Plots of throughput, latency and scaling, as SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

from tests.bench.results import Results

mpl.use("svg")
# Equal results make equal files.
mpl.rcParams.update({"svg.hashsalt": "hq", "svg.fonttype": "none", "axes.grid": True, "grid.alpha": 0.3})

from matplotlib import pyplot as plt  # noqa: E402  # behind the choice of the back end
from matplotlib.patches import Rectangle  # noqa: E402

_COLOURS = {"hq": "#2a6fbb", "empty": "#bbbbbb", "etcd": "#d98c3f"}


def draw(results: Results, directory: Path) -> list[Path]:
    """Write all plots that the results have points for."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = [
        _throughput(results, directory / "throughput.svg"),
        _latency(results, directory / "latency.svg"),
        _scaling(results, directory / "scaling.svg"),
        _sizes(results, directory / "sizes.svg"),
        _curves(results, directory / "storage.svg"),
    ]
    return [path for path in drawn if path is not None]


def _throughput(results: Results, path: Path) -> Path | None:
    shown = [c for c in results.comparisons if "empty" in c.sides]
    if not shown:
        return None
    figure, axes = plt.subplots(figsize=(9, 0.42 * len(shown) + 1.2))
    for row, c in enumerate(reversed(shown)):
        for offset, side in enumerate(("hq", "empty", "etcd")):
            name = next((s for s in c.sides if s.startswith(side)), None)
            if name is not None:
                rate = c.rate(name)
                error = [[rate.median - rate.least], [rate.greatest - rate.median]]
                colour = _COLOURS[side]
                axes.barh(row + 0.25 - 0.25 * offset, rate.median, 0.24, xerr=error, color=colour, ecolor="#555555")
    axes.set_yticks(range(len(shown)), [c.name for c in reversed(shown)], fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("per second (median; the line is the spread of the rounds)")
    axes.legend(handles=[Rectangle((0, 0), 1, 1, color=c, label=s) for s, c in _COLOURS.items()], fontsize=8)
    return _saved(figure, path)


def _latency(results: Results, path: Path) -> Path | None:
    shown = [c for c in results.comparisons if c.group == "lookups" and "empty" in c.sides and not c.size]
    shown += [c for c in results.comparisons if c.name.startswith("Find 100, ")]
    if not shown:
        return None
    figure, axes = plt.subplots(figsize=(9, 4))
    measures = ("p50_ms", "p90_ms", "p99_ms")
    for row, c in enumerate(shown):
        for side, shift in (("hq", -0.15), ("empty", 0.15)):
            values = [c.of(measure, side).median for measure in measures]
            axes.plot([row + shift] * 3, values, color=_COLOURS[side], linewidth=2)
            for value, mark in zip(values, "o^s", strict=True):
                axes.plot(row + shift, value, mark, color=_COLOURS[side], markersize=5)
    axes.set_yscale("log")
    axes.set_ylabel("ms: p50 ●, p90 ▲, p99 ■ at full load")
    axes.set_xticks(range(len(shown)), [c.name for c in shown], rotation=30, ha="right", fontsize=8)
    return _saved(figure, path)


def _scaling(results: Results, path: Path) -> Path | None:
    figure, axes = plt.subplots(figsize=(7, 4))
    found = False
    for transport, style in (("gRPC", "-"), ("proto", "--"), ("JSON", ":")):
        cases = [c for c in results.comparisons if c.size and c.name.startswith("Find") and c.name.endswith(transport)]
        for side in ("hq", "empty", "etcd"):
            points = sorted((c.size, c.of("cpu_us", side).median) for c in cases if side in c.sides)
            if len(points) > 1:
                found = True
                axes.plot(
                    *zip(*points, strict=True), style, marker="o", color=_COLOURS[side], label=f"{side}, {transport}"
                )
    if not found:
        plt.close(figure)
        return None
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("instances in the answer")
    axes.set_ylabel("CPU µs per answer")
    axes.legend(fontsize=8)
    return _saved(figure, path)


def _sizes(results: Results, path: Path) -> Path | None:
    kinds = {"ready to serve": "s", "memory each beyond these": "B", "lookups under": "ms, p99"}
    figure, all_axes = plt.subplots(1, 3, figsize=(10, 3))
    found = False
    for axes, (kind, unit) in zip(all_axes, kinds.items(), strict=True):
        facts = [f for f in results.facts if f.name.startswith(kind) and ("p99" not in unit or f.name.endswith("p99"))]
        points = sorted((f.size, f.spread().median) for f in facts)
        if points:
            found = True
            axes.plot(*zip(*points, strict=True), marker="o", color=_COLOURS["hq"])
        axes.set_xscale("log")
        axes.set_title(f"{kind} ({unit})", fontsize=9)
        axes.set_xlabel("instances", fontsize=8)
    if not found:
        plt.close(figure)
        return None
    return _saved(figure, path)


def _curves(results: Results, path: Path) -> Path | None:
    if not results.curves:
        return None
    figure, axes = plt.subplots(figsize=(7, 3))
    for name, points in results.curves.items():
        axes.plot(*zip(*points, strict=True), label=name)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("minute")
    axes.legend(fontsize=8)
    return _saved(figure, path)


def _saved(figure: Any, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return path
