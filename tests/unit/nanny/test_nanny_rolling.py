"""A roll-out in batches: what is switched when, and when it stops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hqpb.v1 import instance_pb2 as model
from nannyctl.plans.pacing import PacingSettings, PacingStep, Roll
from tests.support.sample_instances import INSTALLED, READY

PACE = PacingSettings(2, is_share=False, min_ready_s=3.0, patience_s=60.0)


def instance(name: str, *, wants: str = "r1", is_ready: bool = True) -> model.Instance:
    made = model.Instance()
    made.meta.id = name
    for revision in ("r1", "r2"):
        made.spec.revision.add(id=revision, target=READY if revision == wants else INSTALLED)
        holds = revision == wants and is_ready
        status = model.CONDITION_STATUS_TRUE if holds else model.CONDITION_STATUS_FALSE
        made.status.revision.add(id=revision).ready.status = status
    return made


class World:
    """Instances that become ready with r2 when told to."""

    def __init__(self, *names: str, pace: PacingSettings = PACE) -> None:
        self.instances = {name: instance(name) for name in names}
        self.roll = Roll("r2", list(names), pace, pace.limit(len(names)))
        self.now = 0.0

    def look(self) -> PacingStep:
        step = self.roll.look(self.instances, self.now)
        for name in step.switch:
            self.instances[name] = instance(name, wants="r2", is_ready=False)
        return step

    def becomes_ready(self, *names: str) -> None:
        for name in names:
            self.instances[name] = instance(name, wants="r2")


def test_no_more_than_the_limit_are_switched_before_the_first_are_ready() -> None:
    world = World("a", "b", "c")
    assert world.look().switch == ("a", "b")
    assert world.look() == PacingStep(wake_in_s=60.0)
    world.becomes_ready("a")
    world.look()
    world.now = 3.0
    assert world.look().switch == (), "b is not ready yet"


def test_the_next_batch_begins_when_each_has_been_ready_for_long_enough() -> None:
    world = World("a", "b", "c")
    world.look()
    world.becomes_ready("a", "b")
    assert world.look() == PacingStep(wake_in_s=3.0)
    world.now = 3.0
    assert world.look().switch == ("c",)
    world.becomes_ready("c")
    world.look()
    world.now = 6.0
    assert world.look().is_done


def test_one_that_crashes_after_it_was_ready_stops_the_roll_out() -> None:
    world = World("a", "b", "c")
    world.look()
    world.becomes_ready("a", "b")
    world.look()
    world.now = 2.0
    world.instances["a"] = instance("a", wants="r2", is_ready=False)
    assert not world.look().switch
    world.now = 61.0
    assert world.look().late == ("a",)


def test_one_that_crashes_and_restarts_for_ever_is_no_progress() -> None:
    world = World("a")
    world.look()
    for now in range(0, 60, 2):
        world.now = now
        world.becomes_ready("a")
        assert not world.look().late
        world.now = now + 1
        world.instances["a"] = instance("a", wants="r2", is_ready=False)
        world.look()
    world.now = 61.0
    assert world.look().late == ("a",)


def test_without_progress_for_long_it_has_failed_and_with_some_it_has_not() -> None:
    world = World("a", "b")
    world.look()
    world.now = 59.0
    world.becomes_ready("a")
    assert not world.look().late
    world.now = 118.0
    assert not world.look().late
    world.now = 119.0
    assert world.look().late == ("b",)


def test_instances_that_are_not_ready_are_switched_first_and_not_waited_for() -> None:
    world = World("a", "b", "c", "d", pace=PacingSettings(1, is_share=False, min_ready_s=0.0))
    world.instances["d"] = instance("d", is_ready=False)
    assert world.look().switch == ("d", "a")
    world.becomes_ready("a")
    assert world.look().switch == ("b",)
    assert world.roll.unwatched == {"d"}


def test_one_that_is_deleted_meanwhile_is_not_waited_for() -> None:
    world = World("a", pace=PacingSettings(1, is_share=False, min_ready_s=0.0))
    world.look()
    del world.instances["a"]
    assert world.look().is_done


@pytest.mark.parametrize(
    ("pace", "instances", "limit"),
    [(PacingSettings(), 3, 1), (PacingSettings(), 29, 2), (PacingSettings(0, is_share=False), 3, 1)],
)
def test_the_limit_is_rounded_down_and_at_least_one(pace: PacingSettings, instances: int, limit: int) -> None:
    assert pace.limit(instances) == limit


@given(
    st.integers(1, 9), st.integers(1, 4), st.sets(st.integers(0, 8)), st.lists(st.sampled_from([0.0, 1.0, 3.0, 59.0]))
)
def test_whatever_fails_no_more_than_the_limit_were_taken_down_by_the_roll_out(
    count: int, limit: int, bad_ones: set[int], pauses: list[float]
) -> None:
    world = World(
        *(f"i-{number}" for number in range(count)), pace=PacingSettings(limit, is_share=False, min_ready_s=3.0)
    )
    bad = {f"i-{number}" for number in bad_ones if number < count}
    step = PacingStep()
    for pause_s in (*pauses, *[61.0] * 40):
        step = world.look()
        down = sum(one.spec.revision[1].target == READY and not ready(one) for one in world.instances.values())
        assert down <= limit
        if step.is_done or step.late:
            break
        switched = [name for name, one in world.instances.items() if one.spec.revision[1].target == READY]
        world.becomes_ready(*(name for name in switched if name not in bad))
        world.now += pause_s
    assert step.is_done == (not bad)
    assert set(step.late) <= bad


def ready(one: model.Instance) -> bool:
    return any(status.ready.status == model.CONDITION_STATUS_TRUE for status in one.status.revision)
