"""The judge over a model of hosts, in steps: no bad revision becomes ACTIVE, every good one does, nothing is stuck."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from control.amounts import Amount
from control.waves import WaveStep, reach_in
from nanny.rollout import moves, plan
from nanny.rollout.policy import Policy
from tests.nanny.judge_world import OLD, Order, World
from tests.nanny.test_judge import BAD, GOOD, Scenario

CANARY = (
    WaveStep(Amount(1), 5),
    WaveStep(hold_s=600.0),
    WaveStep(check="errors", hold_s=120.0),
    WaveStep(Amount(50, is_percent=True), 20),
    WaveStep(promote=True),
)
TWO_HOURS_S = 7_200.0
SIX, THIRTY = pytest.param(6, id="6"), pytest.param(30, id="30", marks=pytest.mark.long)


def in_steps(scenario: Scenario, size: int, check: Callable[[World], bool | None] = lambda _: True) -> Order:
    order = Order(scenario(size), Policy(), check=check).begin()
    order.progress = replace(order.progress, steps=CANARY)
    return order


def goes_back(order: Order) -> None:
    back = Order(order.world, order.policy, OLD).begin(order.progress.ailing)
    assert isinstance(back.run(), moves.Finished), back.end
    assert all(host.wanted == OLD for host in order.world.hosts)


@pytest.mark.parametrize("size", [SIX, THIRTY])
@pytest.mark.parametrize("what", GOOD)
def test_every_good_revision_waits_for_people_and_becomes_active(what: str, size: int) -> None:
    order = in_steps(GOOD[what], size)
    waits = order.run(TWO_HOURS_S)
    assert isinstance(waits, moves.Wait), waits
    assert order.progress.steps_over == len(CANARY) - 1, waits
    order.promotes_at_s = order.world.now_s
    end = order.run()
    assert isinstance(end, moves.Finished), end
    policy = order.policy
    assert order.world.lowest >= size - policy.unavailable(size) - policy.failures(size)
    for over, most in order.most_switched.items():
        # One that failed within the limits has another one in its place.
        assert most <= reach_in(CANARY, over, size) + policy.failures(size), (over, most)


@pytest.mark.parametrize("size", [SIX, THIRTY])
@pytest.mark.parametrize("what", BAD)
def test_no_bad_revision_becomes_active_whoever_promotes_it(what: str, size: int) -> None:
    order = in_steps(BAD[what], size)
    order.promotes_at_s = 0.0
    end = order.run()
    killer = order.world.kills_after_s is not None
    assert isinstance(end, moves.Failed) or (killer and "holds" in getattr(end, "why", "")), end
    goes_back(order)


@pytest.mark.parametrize("what", ["crashes every 25 s", "crashes every 2 min", "crashes every 4 min", "never ready"])
def test_a_bad_revision_costs_only_its_canary_and_the_instance_that_takes_its_place(what: str) -> None:
    order = in_steps(BAD[what], 30)
    assert isinstance(order.run(), moves.Failed)
    assert order.switched <= 1 + order.policy.failures(30)


def test_a_check_alone_tells_a_revision_that_stays_ready_but_serves_errors() -> None:
    order = in_steps(GOOD["good"], 30, check=lambda world: world.now_s < 800.0)
    assert isinstance(order.run(), moves.Failed)
    assert order.switched == 1
    goes_back(order)


@pytest.mark.parametrize("answer", [None, True])
def test_a_check_without_an_answer_is_waited_for(answer: bool | None) -> None:
    """Without an answer nothing is switched, however long it takes; with one the roll-out goes on."""
    order = in_steps(GOOD["good"], 6, check=lambda world: answer if world.now_s > TWO_HOURS_S else None)
    assert isinstance(order.run(TWO_HOURS_S), moves.AskCheck)
    assert order.switched == 1
    order.run(1_800.0)
    assert order.progress.steps_over == (4 if answer else 2)


@pytest.mark.parametrize("at_s", range(5, 1_500, 145))
def test_people_may_abort_at_any_moment_and_roll_back(at_s: int) -> None:
    order = in_steps(GOOD["good"], 6)
    order.aborts_at_s = float(at_s)
    assert order.run() == moves.Failed("aborted")
    goes_back(order)


def test_time_while_a_location_is_away_does_not_count_for_a_hold() -> None:
    def begin(one: World) -> None:
        one.away.add("c")

    away = in_steps(lambda size: World(size, events={500.0: begin, 2_500.0: lambda one: one.away.clear()}), 6)
    away.run(2_495.0)
    assert away.progress.steps_over == 1
    away.run(1_200.0)
    assert away.progress.steps_over > 1


def test_without_canaries_a_bad_revision_costs_a_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def switched() -> int:
        order = in_steps(BAD["never ready"], 30)
        order.run()
        return order.switched

    assert switched() == 1
    monkeypatch.setattr(plan, "canaries", lambda _policy, stages, _progress: set().union(*stages.values()))
    assert switched() == 3
