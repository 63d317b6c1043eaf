"""The guard: a table of cases, and random histories for its bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hq.liveness.guard import Census, Guard, GuardRules, Order
from hq.liveness.pace import Pace

RULES = GuardRules(max_silent_share=0.2, hold_s=600, flips_per_s=50, flips_share_per_s=0.01)


@pytest.fixture
def guard() -> Guard:
    return Guard(RULES)


@pytest.mark.parametrize(
    ("census", "holds"),
    [
        (Census(100, 20, 10), False),
        (Census(100, 21, 10), True),
        (Census(20, 5, 3), True),
        (Census(19, 19, 3), False),
        (Census(1_000, 1_000, 2), False),
        (Census(0, 0, 0), False),
        (Census(1_000_000, 200_001, 10_000), True),
    ],
)
def test_it_holds_above_the_share_where_there_is_a_statistic_to_trust(
    guard: Guard, census: Census, holds: bool
) -> None:
    verdict = guard.judge(0, census)
    assert verdict.hold is holds
    assert f"{census.silent} of {census.expected}" in verdict.words


def test_it_holds_for_its_time_then_goes_ahead_at_a_bounded_rate(guard: Guard) -> None:
    assert guard.judge(0, Census(100, 30, 10)).until == 600
    assert guard.judge(599.9, Census(100, 30, 10)).hold
    verdict = guard.judge(600, Census(100, 30, 10))
    assert not verdict.hold
    assert verdict.limited
    assert "held for 600 s already" in verdict.words
    assert guard.judge(100_000, Census(100, 30, 10)).limited


def test_having_held_it_does_not_hold_again_before_the_share_has_fallen(guard: Guard) -> None:
    guard.judge(0, Census(100, 30, 10))
    guard.judge(600, Census(100, 30, 10))
    assert not guard.judge(700, Census(100, 90, 10)).hold
    assert not guard.judge(800, Census(100, 10, 10)).limited
    assert guard.judge(900, Census(100, 30, 10)).hold
    assert guard.holds == 2


def test_a_release_lets_flips_go_ahead_at_a_bounded_rate_and_its_end_holds_again(guard: Guard) -> None:
    guard.judge(0, Census(100, 30, 10))
    released = guard.judge(10, Census(100, 30, 10), Order.RELEASE)
    assert not released.hold
    assert released.limited
    assert "operator" in released.words
    assert guard.judge(20, Census(100, 30, 10)).hold


def test_a_force_holds_whatever_the_share_and_has_no_end_of_its_own(guard: Guard) -> None:
    forced = guard.judge(0, Census(5, 1, 1), Order.FORCE)
    assert forced.hold
    assert forced.until is None
    assert "operator" in forced.words
    assert not guard.judge(1, Census(5, 1, 1)).hold


def test_the_rate_is_the_greater_of_a_number_and_a_share(guard: Guard) -> None:
    assert guard.flips_per_s(100) == 50
    assert guard.flips_per_s(1_000_000) == 10_000


looks = st.lists(st.tuples(st.floats(0.1, 100), st.integers(0, 100), st.integers(1, 6)), max_size=80)


@given(looks)
def test_without_an_order_no_hold_lasts_longer_than_its_time(history: list[tuple[float, int, int]]) -> None:
    guard, now, held_since = Guard(RULES), 0.0, None
    for seconds, silent, nodes in history:
        now += seconds
        verdict = guard.judge(now, Census(100, silent, nodes))
        if verdict.hold:
            held_since = now if held_since is None else held_since
            assert now - held_since < RULES.hold_s
            assert verdict.since == held_since
            assert verdict.until == held_since + RULES.hold_s
        else:
            held_since = None
        assert not (verdict.hold and verdict.limited)
        assert verdict.hold is False or silent > 20


def test_a_hold_may_outlast_nothing_by_flapping_for_every_calm_moment_lets_the_due_flips_go(guard: Guard) -> None:
    for n in range(50):
        assert guard.judge(n * 300, Census(100, 30, 10)).hold
        assert not guard.judge(n * 300 + 150, Census(100, 20, 10)).hold


def test_the_pace_is_one_second_s_worth_at_once_and_then_the_rate() -> None:
    pace, flips = Pace(), 0
    assert pace.allowed(0, 50, flips) == 0
    assert pace.allowed(60, 50, flips) == 50
    flips += 50
    assert pace.allowed(60, 50, flips) == 0
    assert pace.allowed(60.5, 50, flips) == 25


def test_flips_of_other_replicas_use_the_pace_up() -> None:
    pace = Pace()
    pace.allowed(0, 50, 1_000)
    assert pace.allowed(1, 50, 1_040) == 10
    assert pace.allowed(2, 50, 2_000) == 0
    assert pace.allowed(3, 50, 2_000) == 0
    assert pace.allowed(4, 50, 2_000) == 50


@given(st.lists(st.floats(0, 5), min_size=1, max_size=60), st.floats(0.5, 1_000))
def test_whoever_takes_all_that_is_allowed_keeps_to_the_rate(pauses: list[float], rate: float) -> None:
    pace, now, flips = Pace(), 0.0, 0
    for pause_s in pauses:
        now += pause_s
        flips += pace.allowed(now, rate, flips)
    assert flips <= rate * now + max(1.0, rate)
