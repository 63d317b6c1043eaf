"""The gauge behind the alert about actions that are stuck: a step that holds, as it should, does not count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nanny.metrics import NannyMetricSources
from nanny.records import kinds
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ActionRecord, InstanceKey, ServiceRecord, TupleRecord

STEPS = [
    pb.RolloutStep(instances="1"),
    pb.RolloutStep(hold_s=60),
    pb.RolloutStep(promote=True),
    pb.RolloutStep(check="errors"),
]


@pytest.mark.parametrize(
    ("action", "promoted", "age_s"),
    [
        ({}, 0, 5.0),
        ({"steps_over": 1}, 0, 0.0),
        ({"steps_over": 1, "batch": [InstanceKey(id="web-1")]}, 0, 5.0),
        ({"steps_over": 2}, 0, 0.0),
        ({"steps_over": 2}, 3, 5.0),
        ({"steps_over": 3}, 0, 0.0),
        ({"steps_over": 4}, 0, 5.0),
        ({"steps_over": 2, "number": 6}, 0, 5.0),  # of another action
    ],
)
def test_a_step_that_holds_is_not_stuck(action: dict[str, Any], promoted: int, age_s: float) -> None:
    one = TupleRecord(
        snapshot_id="a", current=pb.CURRENT_STATE_ACTIVATING, since_unix_ms=1_000, action=7, promoted=promoted
    )
    records: dict[str, dict[str, object]] = {
        kinds.SERVICE.name: {"web": ServiceRecord(snapshot=[one])},
        kinds.ACTION.name: {"web/a": ActionRecord(step=STEPS, **{"number": 7, **action})},
    }
    clock = SimpleNamespace(wall_ms=lambda: 6_000)
    controller = SimpleNamespace(records=lambda kind: records[kind.name], clock=clock)
    sources = NannyMetricSources(controller, None, None, None)  # type: ignore[arg-type]
    assert sources.oldest_action_s() == age_s
