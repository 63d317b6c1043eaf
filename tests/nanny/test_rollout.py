"""A roll-out never takes more away than it may, stops at the first bad batch, and always ends."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from control.amounts import Amount
from control.waves import WaveStep
from nanny.rollout.moves import (
    AskCheck,
    Begin,
    Failed,
    Finished,
    GiveBack,
    Prove,
    Step,
    StepOver,
    Switch,
    Wait,
)
from nanny.rollout.plan import next_step
from nanny.rollout.policy import Policy
from nanny.rollout.views import Key, RolloutProgress, Stage, Stages

LONG = 1e9
ONE = Policy(max_unavailable=Amount(1), max_failures=Amount(1))
PROVEN = RolloutProgress(proven=True)


def views(**stages: str) -> Stages:
    """`a1=Stage.UP`: the letter is the location."""
    return sorted_out(((name[0], name), Stage(stage)) for name, stage in stages.items())


def sorted_out(pairs: Iterable[tuple[Key, Stage]]) -> Stages:
    found: dict[Stage, set[Key]] = {}
    for key, stage in pairs:
        found.setdefault(stage, set()).add(key)
    return found


CANARY = (WaveStep(Amount(1)), WaveStep(hold_s=600.0), WaveStep(Amount(50, is_percent=True)), WaveStep(promote=True))


@pytest.mark.parametrize(
    ("stages", "progress", "step"),
    [
        ("done up up up", {"steps_over": 0}, StepOver()),
        ("up down up up", {"steps_over": 0}, Begin((("a", "a0"),), (("a", "a0"),))),
        ("held up up up", {"steps_over": 0}, "waits for a0 (a)"),
        ("away up up up", {"steps_over": 0}, "waits for a0 (a)"),
        ("silent up up up", {"steps_over": 0}, Begin((("a", "a1"),), (("a", "a1"),))),
        ("gone up up up up up", {"steps_over": 0}, Begin((("a", "a1"),), (("a", "a1"),))),
        ("up done up up", {"steps_over": 0}, StepOver()),  # a1 was taken while a0 was silent
        ("up up up up", {"steps_over": 0, "ailing": frozenset({("a", "a0")})}, Begin((("a", "a1"),), (("a", "a1"),))),
        ("lost silent silent silent", {"steps_over": 0}, "waits for an instance that can show something: 1 whose"),
        ("silent unprepared silent silent", {"steps_over": 0}, "waits for a1 (a) to become installed"),
        ("done up up up", {"steps_over": 1}, "step 2 of 4 (hold: 600s) holds"),
        ("under-way up up up", {"steps_over": 1, "batch": (("a", "a0"),)}, "waits for a0 (a) to become ready"),
        ("done up up up", {"steps_over": 2}, Begin((("a", "a1"),), (("a", "a1"),))),
        ("done done up up", {"steps_over": 3}, "step 4 of 4 (promote: manual) waits for `nanny rollout promote"),
        ("done done up up", {"steps_over": 3, "promoted": 3}, "step 4 of 4 (promote: manual) waits for"),
        ("done done up up", {"steps_over": 3, "promoted": 4}, StepOver()),
        ("done done up up", {"steps_over": 4}, Begin((("a", "a2"),), (("a", "a2"),))),
    ],
)
def test_the_next_step_follows_from_the_stages_and_the_steps_so_far(
    stages: str, progress: dict[str, Any], step: Step | str
) -> None:
    seen = views(**{f"a{number}": one.replace("-", " ") for number, one in enumerate(stages.split())})
    found = next_step(ONE, seen, replace(PROVEN, steps=CANARY, **progress), 0)
    if isinstance(step, str):
        assert isinstance(found, Wait)
        assert step in found.why
    else:
        assert found == step


def test_a_hold_ends_after_its_time_a_check_is_asked_and_a_failure_counts_in_both() -> None:
    seen = views(a0="done", a1="up", a2="up")
    held = replace(PROVEN, steps=CANARY, steps_over=1)
    assert next_step(ONE, seen, held, LONG, LONG, 600.0) == StepOver()
    asked = replace(PROVEN, steps=(WaveStep(check="errors", hold_s=60.0),))
    nothing = views(a0="up", a1="up", a2="up")
    assert next_step(ONE, nothing, asked, 0, 0, 59.0) == AskCheck("errors", "step 1 of 1 (check: errors for 60s)")
    assert next_step(ONE, nothing, asked, 0, 0, 60.0) == StepOver()
    fallen = replace(held, fell=frozenset({("a", "a0"), ("a", "a1")}))
    assert isinstance(next_step(ONE, views(a0="done", a1="done", a2="up"), fallen, 0), Failed)


def test_instances_that_are_not_ready_go_first_and_cost_nothing() -> None:
    step = next_step(ONE, views(a1="up", a2="down", b1="down"), RolloutProgress(), 0)
    assert step == Begin((("a", "a2"), ("b", "b1")), ())


def test_changes_without_a_restart_are_one_batch_that_costs_nothing() -> None:
    step = next_step(ONE, views(a1="stale", a2="stale", a3="up", b1="stale"), PROVEN, 0)
    assert step == Begin((("a", "a1"), ("a", "a2"), ("b", "b1")), ())


def test_a_batch_takes_no_more_than_may_be_unavailable() -> None:
    policy = Policy(max_unavailable=Amount(2))
    step = next_step(policy, views(a1="up", a2="up", a3="up", a4="done"), PROVEN, 0)
    assert step == Begin((("a", "a1"), ("a", "a2")), (("a", "a1"), ("a", "a2")))


def test_ten_per_cent_of_three_is_one() -> None:
    step = next_step(Policy(), views(a1="up", a2="up", a3="up"), RolloutProgress(), 0)
    assert isinstance(step, Begin)
    assert len(step.batch) == 1


def test_neither_a_tolerated_failure_nor_an_instance_that_was_ailing_takes_room() -> None:
    policy = Policy(max_unavailable=Amount(2), max_failures=Amount(50, is_percent=True))
    a1 = frozenset({("a", "a1")})
    for progress in (replace(PROVEN, failed=a1), replace(PROVEN, fell=a1), replace(PROVEN, ailing=a1)):
        step = next_step(policy, views(a1="under way", a2="up", a3="up", a4="up"), progress, 0)
        assert step == Begin((("a", "a2"), ("a", "a3")), (("a", "a2"), ("a", "a3")))


def test_locations_go_in_the_order_given() -> None:
    policy = replace(ONE, locations=("b", "a"), max_unavailable=Amount(5))
    step = next_step(policy, views(a1="up", b1="up", b2="up", c1="up"), RolloutProgress(), 0)
    assert isinstance(step, Begin)
    assert step.batch == (("b", "b1"), ("b", "b2"))


def test_a_batch_whose_location_went_away_is_not_over_and_no_other_one_begins() -> None:
    under_way = RolloutProgress(batch=(("a", "a1"),))
    assert isinstance(next_step(ONE, views(a1="away", b1="up"), under_way, LONG), Wait)


def test_instances_that_are_held_silent_or_away_are_left_for_later_and_are_no_failures() -> None:
    assert isinstance(next_step(ONE, views(a1="done", a2="held", b1="away"), PROVEN, LONG, LONG), Wait)
    step = next_step(ONE, views(a1="done", a2="silent", a3="up"), PROVEN, 0)
    assert step == Begin((("a", "a3"),), (("a", "a3"),))
    step = next_step(ONE, views(a1="done", a2="silent"), PROVEN, 0)
    assert step == Begin((("a", "a2"),), (("a", "a2"),)), "last, and at the price of one that serves"
    done = Finished("1 whose agents have not reported", frozenset({("a", "a1")}))
    assert next_step(ONE, views(a1="done", a2="lost"), PROVEN, 0, LONG) == done


def test_the_first_batch_soaks_before_the_second_and_all_of_it_at_the_end() -> None:
    seen = views(a1="done", a2="up", a3="up")
    assert isinstance(next_step(ONE, seen, RolloutProgress(), 299, 299), Wait)
    assert next_step(ONE, seen, RolloutProgress(), 300, 300) == Prove(frozenset({("a", "a1")}))
    assert isinstance(next_step(ONE, seen, PROVEN, 0), Begin)
    assert isinstance(next_step(ONE, views(a1="done", a2="done"), PROVEN, 299, 299), Wait)
    assert isinstance(next_step(ONE, views(a1="done", a2="done"), PROVEN, 300, 300), Finished)


def test_a_batch_in_which_no_instance_proved_itself_is_followed_by_another_first_batch() -> None:
    step = next_step(ONE, views(a1="lost", a2="up", a3="up"), RolloutProgress(), 0)
    assert step == Begin((("a", "a2"),), (("a", "a2"),))
    flapping = RolloutProgress(fell=frozenset({("a", "a1")}))
    six = views(a1="done", a2="up", a3="up", a4="up", a5="up")
    assert isinstance(next_step(ONE, six, flapping, 899), Wait)
    assert isinstance(next_step(ONE, six, flapping, 900), Begin)


def test_an_instance_that_was_ailing_is_in_no_first_batch_and_comes_right_after_it() -> None:
    ailing = RolloutProgress(ailing=frozenset({("a", "a2")}))
    seen = views(a1="up", a2="down", a3="up")
    assert next_step(ONE, seen, ailing, 0) == Begin((("a", "a1"),), (("a", "a1"),))
    assert next_step(ONE, seen, replace(ailing, proven=True), 0) == Begin((("a", "a2"),), ())


def test_hosts_that_fall_silent_after_the_switch_hold_a_roll_out_but_not_a_roll_back() -> None:
    seen = views(a1="gone", a2="gone", a3="up")
    held = next_step(ONE, seen, PROVEN, LONG)
    assert isinstance(held, Wait)
    assert "a1 (a), a2 (a) fell silent after they were switched" in held.why
    assert isinstance(next_step(ONE, seen, replace(PROVEN, trusted=True), 0), Begin)


def test_an_instance_that_an_earlier_roll_out_was_taking_away_goes_first_and_alone() -> None:
    """Its old revision may still say ready: with another instance switched beside it, two would be away."""
    step = next_step(ONE, views(a1="up", a2="leaving", a3="up"), RolloutProgress(), 0)
    assert step == Begin((("a", "a2"),), (("a", "a2"),))


def test_an_instance_whose_agent_has_not_seen_the_newest_spec_leaves_less_room() -> None:
    assert isinstance(next_step(ONE, views(a1="up", a2="unseen"), PROVEN, 0), Wait)
    assert isinstance(next_step(ONE, views(a1="done", a2="unseen"), PROVEN, 0), Wait)
    two = replace(ONE, max_unavailable=Amount(2))
    assert next_step(two, views(a1="up", a2="unseen"), RolloutProgress(), 0) == Begin((("a", "a1"),), (("a", "a1"),))


def test_a_batch_whose_switch_was_broken_off_is_switched_first() -> None:
    progress = RolloutProgress(batch=(("a", "a1"), ("a", "a2")))
    assert next_step(ONE, views(a1="under way", a2="up"), progress, 0) == Switch((("a", "a2"),))


def test_a_batch_is_given_back_before_the_next_begins() -> None:
    progress = RolloutProgress(batch=(("a", "a1"),))
    assert isinstance(next_step(ONE, views(a1="settling", a2="up"), progress, 0), Wait)
    assert next_step(ONE, views(a1="done", a2="up"), progress, 0) == GiveBack()


def test_a_bad_revision_stops_at_the_first_batch() -> None:
    progress = RolloutProgress(batch=(("a", "a1"),))
    world = views(a1="under way", a2="up", a3="up")
    assert isinstance(next_step(ONE, world, progress, 599), Wait)
    step = next_step(ONE, world, progress, 600)
    assert isinstance(step, Failed)
    assert "a1 (a) did not become ready in the first batch within 600 s" in step.why


def test_a_later_batch_may_fail_in_part() -> None:
    progress = RolloutProgress(batch=(("a", "a2"),), batches_done=1, proven=True)
    step = next_step(ONE, views(a1="done", a2="under way", a3="up"), progress, 600)
    assert step == GiveBack((("a", "a2"),))


def test_a_service_where_nothing_becomes_ready_is_not_called_active() -> None:
    assert isinstance(next_step(ONE, views(a1="lost"), RolloutProgress(), 0), Wait)
    assert isinstance(next_step(ONE, views(a1="lost"), RolloutProgress(), LONG), Failed)


def test_a_service_without_instances_is_done_at_once() -> None:
    assert next_step(ONE, {}, RolloutProgress(), 0) == Finished("")


def test_an_instance_that_died_before_it_saw_the_switch_is_waited_for_once_and_takes_no_room() -> None:
    batch = RolloutProgress(batch=(("a", "a1"),))
    world = views(a1="unheard", a2="up", a3="up")
    assert isinstance(next_step(ONE, world, batch, 599), Wait)
    assert next_step(ONE, world, batch, 600) == GiveBack((("a", "a1"),))
    after = RolloutProgress(batches_done=1, failed=frozenset({("a", "a1")}), proven=True)
    assert next_step(ONE, world, after, 0) == Begin((("a", "a2"),), (("a", "a2"),))
    done = next_step(ONE, views(a1="unheard", a2="done", a3="done"), after, 0, LONG)
    assert done == Finished("1 whose agents have not reported", frozenset({("a", "a2"), ("a", "a3")}))


def test_an_agent_that_still_serves_and_has_not_seen_its_switch_is_waited_for_until_hq_calls_it_silent() -> None:
    batch = RolloutProgress(batch=(("a", "a1"),))
    assert isinstance(next_step(ONE, views(a1="untouched", a2="up"), batch, LONG), Wait)
    assert next_step(ONE, views(a1="lost", a2="up"), batch, LONG) == GiveBack()


def test_the_deadline_is_for_instances_not_ready_and_settling_has_its_time_on_top() -> None:
    batch = RolloutProgress(batch=(("a", "a1"),))
    assert isinstance(next_step(ONE, views(a1="settling", a2="up"), batch, 609), Wait)
    assert isinstance(next_step(ONE, views(a1="settling", a2="up"), batch, 610), Failed)


# The model: what the world may do, and what must hold whatever it does.


@dataclass(frozen=True)
class World:
    """Stages by instance, who serves, and the record; `by_itself` went down without our doing."""

    stages: tuple[tuple[Key, Stage], ...]
    serving: frozenset[Key]
    progress: RolloutProgress = field(default_factory=RolloutProgress)
    by_itself: frozenset[Key] = frozenset()
    trouble: int = 1  # how often something may still break by itself

    def with_stage(self, keys: Iterable[Key], stage: Stage) -> World:
        changed = set(keys)
        return replace(self, stages=tuple((key, stage if key in changed else old) for key, old in self.stages))

    def keys(self, *stages: Stage) -> list[Key]:
        return [key for key, stage in self.stages if stage in stages]


def start(up: int, down: int, locations: str = "ab") -> World:
    keys = [(locations[n % len(locations)], f"{n}") for n in range(up + down)]
    stages = tuple((key, Stage.UP if n < up else Stage.DOWN) for n, key in enumerate(keys))
    return World(stages, frozenset(keys[:up]))


def obeyed(world: World, step: Step) -> World:
    """What the process does; switching takes an instance away, whatever it was."""
    progress = world.progress
    match step:
        case Begin(batch):
            return replace(world, progress=replace(progress, batch=batch))
        case Switch(instances):
            dark = {key for key, stage in world.stages if key in instances and stage is Stage.SILENT}
            switched = world.with_stage(set(instances) - dark, Stage.UNDER_WAY).with_stage(dark, Stage.LOST)
            return replace(switched, serving=world.serving - set(instances))
        case GiveBack(failed):
            done = replace(progress, batch=(), batches_done=min(progress.batches_done + 1, 2))
            return replace(world, progress=replace(done, failed=progress.failed | set(failed)))
        case Prove():
            return replace(world, progress=replace(progress, proven=True))
    return world


def happenings(world: World) -> Iterable[World]:
    """What agents and the world may do of themselves."""
    for key in world.keys(Stage.UNDER_WAY):
        yield replace(world.with_stage([key], Stage.DONE), serving=world.serving | {key})
    if world.trouble:
        for key in world.keys(Stage.UP):
            broken = replace(world, serving=world.serving - {key}, by_itself=world.by_itself | {key}, trouble=0)
            yield broken.with_stage([key], Stage.DOWN)
            yield replace(broken, serving=world.serving).with_stage([key], Stage.SILENT)


@pytest.mark.parametrize("up", [0, 1, 2, 4])
@pytest.mark.parametrize("down", [0, 2])
@pytest.mark.parametrize("allowed", [1, 2])
def test_no_world_brings_a_roll_out_below_its_floor_or_to_a_standstill(up: int, down: int, allowed: int) -> None:
    policy = Policy(max_unavailable=Amount(allowed), max_failures=Amount(1))
    first = start(up, down)
    seen, waiting = {first}, deque([first])
    while waiting:
        world = waiting.popleft()
        _holds(first, world, allowed)
        seen_views = sorted_out(world.stages)
        nexts = list(happenings(world))
        steps = [next_step(policy, seen_views, world.progress, stalled_s, stalled_s) for stalled_s in (0.0, LONG)]
        nexts += [obeyed(world, step) for step in steps]
        for after in nexts:
            if after not in seen:
                seen.add(after)
                waiting.append(after)
        last = next_step(policy, seen_views, world.progress, LONG, LONG)
        assert not isinstance(last, Wait), f"{world} waits for ever: {last}"


def _holds(first: World, world: World, allowed: int) -> None:
    floor = len(first.serving) - allowed - len(world.progress.failed) - len(world.by_itself)
    assert len(world.serving & first.serving) + len(world.serving - first.serving) >= floor, world


def test_a_bad_revision_costs_one_batch_in_any_service() -> None:
    rng = random.Random(3)
    for _ in range(300):
        up, down, share = rng.randrange(1, 60), rng.randrange(3), rng.randrange(1, 60)
        policy = Policy(max_unavailable=Amount(share, is_percent=True))
        world = start(up, down, "abc")
        step: Step = Wait("")
        while not isinstance(step, Failed):
            step = next_step(policy, sorted_out(world.stages), world.progress, LONG)
            world = obeyed(world, step)
        assert len(world.serving) >= up - policy.unavailable(up)
        assert not world.progress.batches_done


def test_a_good_revision_reaches_every_instance_with_full_batches() -> None:
    policy = Policy(max_unavailable=Amount(25, is_percent=True))
    world, steps = start(40, 0, "a"), 0
    step: Step = Wait("")
    while not isinstance(step, Finished):
        step = next_step(policy, sorted_out(world.stages), world.progress, 0, LONG)
        world = obeyed(world, step)
        world = replace(world, serving=frozenset(key for key, _ in world.stages)).with_stage(
            world.keys(Stage.UNDER_WAY), Stage.DONE
        )
        steps += isinstance(step, Begin)
    assert steps == 4
    assert len(world.keys(Stage.DONE)) == 40
