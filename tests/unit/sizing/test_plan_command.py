"""`hq plan`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hq.main import cli
from hq.sizing.costs import FILE, BadCosts, read_costs
from hq.sizing.drills import DRILLS


def plan(*words: str) -> Result:
    return CliRunner().invoke(cli, ["plan", *words])


def test_a_plan_says_how_many_machines_it_takes_and_what_breaks_first() -> None:
    result = plan("--instances", "1000000", "--lookups", "2000")

    assert result.exit_code == 0, result.output
    assert "machines in each" in result.output
    assert "breaks first, with one replica down:" in result.output
    assert read_costs().measured in result.output


def test_a_plan_that_does_not_fit_exits_with_1_and_names_the_limit() -> None:
    result = plan("--per-node", "1", "--locations", "1", "--replicas", "3")

    assert result.exit_code == 1
    assert result.output.startswith(
        "does not fit: over the limit, with one replica down: 50,000 connections per replica"
    )


def test_a_failed_drill_says_what_to_do() -> None:
    result = plan("--instances", "2000000", "--replicas", "3", "--locations", "1", "--drill", "hot-service")

    assert result.exit_code == 1
    assert "hot-service: does not hold: watch instead" in result.output


@pytest.mark.long
def test_a_plan_in_json_has_the_workload_and_the_drills() -> None:
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


def test_a_plan_with_one_replica_fails_the_drill_that_loses_it() -> None:
    result = plan("--instances", "1000", "--replicas", "1", "--locations", "1", "--drill", "replica-lost")

    assert "nothing answers while it is down" in result.output
    assert "one replica down" not in result.output
    assert "replica-lost: does not hold: run more replicas" in result.output


def test_two_replicas_need_three_machines_for_etcd() -> None:
    assert "3, a replica on two, etcd on each" in plan("--replicas", "2", "--locations", "1").output


@pytest.mark.parametrize("flag", ["--instances", "--watchers", "--replicas", "--locations", "--lookups"])
def test_an_absurdly_large_number_is_a_usage_error(flag: str) -> None:
    answer = plan(flag, "9" * 400)
    assert answer.exit_code == 2
    assert flag in answer.output


@pytest.mark.long
@pytest.mark.parametrize(("number", "exit_code"), [(0, 0), (1, 1)])
def test_the_commands_on_the_page_do_what_the_page_says(number: int, exit_code: int) -> None:
    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text()
    lines = page.partition("```\n")[2].partition("\n```")[0].splitlines()
    assert len(lines) == 2

    result = plan(*lines[number].split()[2:])

    assert result.exit_code == exit_code, result.output
    assert result.output.startswith("  locations  ")
    assert [drill for drill in DRILLS if f"{drill}: does not hold" in result.output] == ["bad-push", "hot-service"][
        : 2 * exit_code
    ]


@pytest.mark.parametrize("number", ["inf", "nan"])
@pytest.mark.parametrize("flag", ["--lookups", "--changes", "--report-interval"])
def test_infinity_and_nan_are_usage_errors(flag: str, number: str) -> None:
    answer = plan(flag, number)
    assert answer.exit_code == 2
    assert flag in answer.output


def test_the_file_of_costs_is_shipped() -> None:
    assert FILE.is_file()
    assert '"hq.sizing" = ["costs.json"]' in (FILE.parents[2] / "pyproject.toml").read_text()
