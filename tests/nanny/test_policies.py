"""Steps and checks of a policy as they are written, and as an order keeps them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from control.waves import is_over
from nanny.api.policies import check_info
from nanny.records.services import steps_of
from nannypb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest


@pytest.mark.parametrize(
    ("count", "fields", "told"),
    [
        (1, {}, ""),
        (1, {"no_data": 9}, "info.rollout.check[0].no_data: 9 has no meaning: write wait, fail or pass"),
        (1, {"below": math.nan}, "info.rollout.check[0].below: nan bounds nothing: write a number"),
        (1, {"below": math.inf}, "info.rollout.check[0].below: inf bounds nothing: write a number"),
        (51, {}, "info.rollout.check: has more than 50 checks"),
        (2_000, {"below": math.nan}, "info.rollout.check: has more than 50 checks"),
    ],
)
def test_a_check_that_could_not_be_asked_is_refused(count: int, fields: dict[str, Any], told: str) -> None:
    one: dict[str, Any] = {"prometheus": "main", "query": "x", "below": 1.0, **fields}
    checks = [pb.RolloutCheck(name=f"errors-{number}", **one) for number in range(count)]
    faults = []
    try:
        check_info(pb.InfoAttributes(rollout=pb.RolloutPolicy(check=checks)), ["ams"], ["main"])
    except InvalidRequest as error:
        faults = [f"{fault.field}: {fault.description}" for fault in error.violations]
    assert faults == ([told] if told else [])


def test_a_policy_with_too_many_steps_is_refused_without_looking_at_each() -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_info(pb.InfoAttributes(rollout=pb.RolloutPolicy(step=[pb.RolloutStep(check="x")] * 2_000)), ["ams"])
    assert [fault.description for fault in refused.value.violations] == ["has more than 50 steps"]


def test_a_step_with_a_check_that_the_order_does_not_know_is_never_over() -> None:
    known, unknown = steps_of(
        [pb.RolloutStep(check="errors"), pb.RolloutStep(check="other")], [pb.RolloutCheck(name="errors", duration_s=60)]
    )
    assert (is_over(known, 59.0, is_promoted=False), is_over(known, 60.0, is_promoted=False)) == (False, True)
    assert not is_over(unknown, 1e9, is_promoted=False)
