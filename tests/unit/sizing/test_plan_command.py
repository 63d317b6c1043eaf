"""`hq plan`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hq.main import cli
from hq.sizing.costs import FILE, BadCosts, read_costs


def plan(*words: str) -> Result:
    return CliRunner().invoke(cli, ["plan", *words])


def test_it_says_how_many_machines_and_what_breaks_first() -> None:
    result = plan("--instances", "1000000", "--lookups", "2000")

    assert result.exit_code == 0, result.output
    assert "machines in each" in result.output
    assert "breaks first, with one replica down:" in result.output
    assert read_costs().measured in result.output


def test_a_plan_that_does_not_fit_exits_with_1_and_names_the_limit() -> None:
    result = plan("--per-node", "1", "--locations", "1", "--replicas", "3")

    assert result.exit_code == 1
    assert "does not fit: over the limit, with one replica down: 50,000 connections per replica" in result.output


def test_a_drill_that_is_not_stood_says_what_to_do() -> None:
    result = plan("--instances", "2000000", "--replicas", "3", "--locations", "1", "--drill", "hot-service")

    assert result.exit_code == 1
    assert "hot-service: does not hold: watch instead" in result.output


@pytest.mark.long
def test_programs_read_json() -> None:
    told = json.loads(plan("--instances", "20000", "--drill", "all", "-o", "json").output)

    assert told["fits"]
    assert told["workload"]["replicas"] == 3
    assert set(told["drills"]) == {"replica-lost", "location-lost", "bad-push", "leader-lost", "hot-service"}


@pytest.mark.parametrize(
    ("text", "message"), [("{}", "lacks base_bytes"), ("[]", "is not an object"), ("no", "is not valid JSON")]
)
def test_a_bad_file_of_costs_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "costs.json"
    file.write_text(text)

    with pytest.raises(BadCosts, match=message):
        read_costs(file)
    assert plan("--costs", str(file)).exit_code == 2


@pytest.mark.parametrize("number", ["inf", "nan"])
@pytest.mark.parametrize("flag", ["--lookups", "--changes", "--report-interval"])
def test_what_is_no_number_is_a_usage_error(flag: str, number: str) -> None:
    answer = plan(flag, number)
    assert answer.exit_code == 2
    assert flag in answer.output


def test_the_file_of_costs_is_shipped() -> None:
    assert FILE.is_file()
    assert '"hq.sizing" = ["costs.json"]' in (FILE.parents[2] / "pyproject.toml").read_text()
