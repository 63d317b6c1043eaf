"""The figures on the pages are those of the results; each promise has its evidence."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from hq.sizing.costs import read_costs
from tests.bench import peers, report, scale
from tests.bench.costs import measured_costs
from tests.bench.figures import FIGURES, FIRST
from tests.bench.results import loaded

DOCS = Path(__file__).resolve().parents[3] / "docs"
RESULTS = loaded(DOCS / "performance" / "results.json")


def made(page: str) -> dict[str, str]:
    """The generated tables on the page, by name."""
    text = (DOCS / page).read_text()
    return dict(re.findall(r"<!-- made: (\w+) -->\n(.*?)\n<!-- end -->", text, re.DOTALL))


def test_the_first_page_has_the_peers_and_the_goals_of_the_results() -> None:
    assert made("performance.md") == {**report.first_blocks(RESULTS), "peers": peers.block(RESULTS)}
    assert next(iter(made("performance.md"))) == "peers"


def test_the_second_page_has_every_row() -> None:
    assert made("measurements.md") == report.all_blocks(RESULTS)


def test_the_page_on_sizes_and_hq_plan_use_the_measured_costs() -> None:
    blocks = made("scale.md")
    assert blocks.pop("drills").startswith("| drill | figure |")  # takes half a minute to play
    assert blocks == scale.blocks(RESULTS)
    costs, shipped = asdict(measured_costs(RESULTS)), asdict(read_costs())
    assert shipped.pop("measured") == costs.pop("measured")
    assert shipped == pytest.approx(costs, rel=1e-3)


def test_each_promise_has_its_evidence() -> None:
    promises, evidence = ((DOCS / name).read_text() for name in ("reliability.md", "evidence.md"))
    numbers = re.findall(r"^(\d+)\. ", promises, re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert re.findall(r"^\| (\d+) \| .* \|$", evidence.partition("\n## The rig")[0], re.MULTILINE) == numbers


def test_each_goal_on_the_first_page_is_a_figure() -> None:
    names = [figure.what for figure in FIGURES]
    assert [names.count(what) for what in FIRST] == [1] * len(FIRST)


def test_the_first_page_is_short_enough_to_be_read() -> None:
    assert len((DOCS / "performance.md").read_text().splitlines()) <= 160
