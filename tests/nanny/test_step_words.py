"""Steps and checks as people write them, and what they are told about mistakes."""

from __future__ import annotations

from typing import Any

import click
import pytest

from nannyctl.attributes import parse_attributes
from nannypb.v1 import service_pb2 as pb

STEPS = "steps=[{instances: 1, weight: 5%}, {hold: 10m}, {instances: 10%}, {promote: manual}, {check: errors}]"
CHECKS = (
    'checks=[{name: errors, prometheus: main, query: "x{a=~\\"$instances\\"}", below: 0.1, no-data: fail, for: 5m}]'
)


def test_steps_and_checks_become_messages() -> None:
    info, paths = parse_attributes([STEPS, CHECKS])
    assert paths == ["rollout.step", "rollout.check"]
    assert list(info.rollout.step) == [
        pb.RolloutStep(instances="1", weight="5%"),
        pb.RolloutStep(hold_s=600),
        pb.RolloutStep(instances="10%"),
        pb.RolloutStep(promote=True),
        pb.RolloutStep(check="errors"),
    ]
    (check,) = info.rollout.check
    assert (check.name, check.query, check.below, check.duration_s) == ("errors", 'x{a=~"$instances"}', 0.1, 300)
    assert check.no_data == pb.NO_DATA_FAIL
    assert not check.HasField("above")


def test_an_empty_value_takes_the_steps_away() -> None:
    assert parse_attributes(["steps="]) == (pb.InfoAttributes(), ["rollout.step"])


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("steps=[", "no YAML: line"),
        ("steps={instances: 1}", "write a list: "),
        ("steps=[1]", "write a list: "),
        ("steps=[{hold: 1m}, {pause: 1m}]", "number 2 has no field 'pause': write one of instances, weight, hold"),
        ("steps=[{hold: soon}]", "number 1, hold: "),
        ("steps=[{promote: yes}]", "number 1, promote: write manual"),
        ("checks=[{below: few}]", "number 1, below: write a number"),
        ("checks=[{no-data: maybe}]", "number 1, no-data: write wait, fail, pass"),
    ],
)
def test_a_mistake_names_the_step_and_the_field(word: str, told: Any) -> None:
    with pytest.raises(click.BadParameter) as caught:
        parse_attributes([word])
    assert told in caught.value.message
