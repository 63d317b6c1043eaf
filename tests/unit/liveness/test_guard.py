"""The guard: a table of cases, and random histories for its bound."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hq.liveness.guard import Census, ExpiryGuard, ExpiryPace, GuardCommand, GuardRules

RULES = GuardRules(max_silent_share=0.2, hold_s=600, settle_s=190, expiries_per_s=50, expiries_share_per_s=0.01)


@pytest.fixture
def guard() -> ExpiryGuard:
    return ExpiryGuard(RULES)


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
def test_the_guard_holds_above_the_share_if_there_are_enough_agents_and_nodes(
    guard: ExpiryGuard, census: Census, holds: bool
) -> None:
    verdict = guard.judge(0, census)
    assert verdict.hold is holds
    assert f"{census.silent} of {census.expected}" in verdict.words


def test_the_guard_holds_for_its_time_and_then_lets_expiries_go_at_a_bounded_rate(guard: ExpiryGuard) -> None:
    assert guard.judge(0, Census(100, 30, 10)).until == 600
    assert guard.judge(599.9, Census(100, 30, 10)).hold
    verdict = guard.judge(600, Census(100, 30, 10))
    assert not verdict.hold
    assert verdict.limited
    assert "held for 600 s already" in verdict.words
    assert guard.judge(100_000, Census(100, 30, 10)).limited


def test_after_a_hold_the_guard_does_not_hold_again_before_the_share_has_fallen(guard: ExpiryGuard) -> None:
    guard.judge(0, Census(100, 30, 10))
    guard.judge(600, Census(100, 30, 10))
    assert not guard.judge(700, Census(100, 90, 10)).hold
    calm = guard.judge(800, Census(100, 10, 10))
    assert not calm.limited
    assert not calm.hold
    assert guard.judge(1_300, Census(100, 30, 10)).hold
    assert guard.holds == 2


def test_a_spent_hold_is_not_available_again_within_its_time(guard: ExpiryGuard) -> None:
    guard.judge(0, Census(100, 30, 10))
    guard.judge(600, Census(100, 30, 10))
    guard.judge(700, Census(100, 10, 10))
    again = guard.judge(900, Census(100, 30, 10))
    assert not again.hold
    assert again.limited


def test_interrupted_holds_together_last_no_longer_than_one(guard: ExpiryGuard) -> None:
    guard.judge(0, Census(100, 30, 10))
    guard.judge(300, Census(100, 10, 10))
    assert not guard.judge(490, Census(100, 10, 10)).hold
    assert guard.judge(500, Census(100, 30, 10)).until == 610
    assert not guard.judge(610, Census(100, 30, 10)).hold


def test_a_release_lets_expiries_go_ahead_at_a_bounded_rate_and_its_end_holds_again(guard: ExpiryGuard) -> None:
    guard.judge(0, Census(100, 30, 10))
    released = guard.judge(10, Census(100, 30, 10), GuardCommand.RELEASE)
    assert not released.hold
    assert released.limited
    assert "operator" in released.words
    assert guard.judge(20, Census(100, 30, 10)).hold


def test_a_force_holds_at_any_share_until_the_order_ends(guard: ExpiryGuard) -> None:
    forced = guard.judge(0, Census(5, 1, 1), GuardCommand.FORCE)
    assert forced.hold
    assert forced.until is None
    assert "operator" in forced.words
    assert not guard.judge(1, Census(5, 1, 1)).hold


def test_the_rate_of_expiries_is_the_greater_of_a_number_and_a_share(guard: ExpiryGuard) -> None:
    assert guard.expiries_per_s(100) == 50
    assert guard.expiries_per_s(1_000_000) == 10_000


def test_after_the_share_falls_the_hold_lasts_for_others_to_come_back(guard: ExpiryGuard) -> None:
    guard.judge(0, Census(100, 30, 10))
    fallen = guard.judge(100, Census(100, 19, 10))
    assert fallen.hold
    assert fallen.until == 290
    assert "no longer over" in fallen.words
    assert guard.judge(289, Census(100, 19, 10)).hold
    calm = guard.judge(290, Census(100, 19, 10))
    assert not calm.hold
    assert not calm.limited


def test_if_the_share_rises_again_the_same_hold_continues(guard: ExpiryGuard) -> None:
    guard.judge(0, Census(100, 30, 10))
    guard.judge(100, Census(100, 19, 10))
    assert guard.judge(250, Census(100, 30, 10)).until == 600
    assert guard.judge(550, Census(100, 19, 10)).until == 600
    assert not guard.judge(600, Census(100, 19, 10)).hold
    assert guard.holds == 1


looks = st.lists(st.tuples(st.floats(0.1, 100), st.integers(0, 100), st.integers(1, 6)), max_size=80)


@given(looks)
@settings(deadline=None)
def test_without_an_order_no_hold_lasts_longer_than_its_time(history: list[tuple[float, int, int]]) -> None:
    guard, now, held_since = ExpiryGuard(RULES), 0.0, None
    for seconds, silent, nodes in history:
        now += seconds
        verdict = guard.judge(now, Census(100, silent, nodes))
        if verdict.hold:
            held_since = now if held_since is None else held_since
            assert now - held_since < RULES.hold_s
            assert verdict.since == held_since
            assert verdict.until is not None
            assert now < verdict.until <= held_since + RULES.hold_s
        else:
            held_since = None
            assert verdict.limited == (silent > 20 and nodes >= 3)
        assert not (verdict.hold and verdict.limited)


@given(looks)
@settings(deadline=None)
def test_expiries_are_held_or_limited_above_the_share_and_right_after_it(
    history: list[tuple[float, int, int]],
) -> None:
    guard, now, over_at = ExpiryGuard(RULES), 0.0, float("-inf")
    for seconds, silent, nodes in history:
        now += seconds
        verdict = guard.judge(now, Census(100, silent, nodes))
        if silent > 20 and nodes >= 3:
            over_at = now
        if not verdict.hold and not verdict.limited:
            assert now - over_at > 0
            is_spent = now >= guard._ends
            assert is_spent or now - over_at >= RULES.settle_s


@given(looks)
@settings(deadline=None)
def test_until_the_guard_was_idle_for_a_hold_time_its_holds_last_one_hold_time_in_all(
    history: list[tuple[float, int, int]],
) -> None:
    guard, now, held_s, free_s = ExpiryGuard(RULES), 0.0, 0.0, 0.0
    was_held = False
    for seconds, silent, nodes in history:
        now += seconds
        is_held = guard.judge(now, Census(100, silent, nodes)).hold
        held_s += seconds if was_held and is_held else 0.0
        free_s = 0.0 if is_held else free_s + seconds
        held_s = 0.0 if free_s >= RULES.hold_s else held_s
        was_held = is_held
        assert held_s <= RULES.hold_s


def test_the_pace_allows_one_seconds_worth_at_once_and_then_the_rate() -> None:
    pace, expiries = ExpiryPace(), 0
    assert pace.allowance(0, 50, expiries) == 0
    assert pace.allowance(60, 50, expiries) == 50
    expiries += 50
    assert pace.allowance(60, 50, expiries) == 0
    assert pace.allowance(60.5, 50, expiries) == 25


def test_expiries_of_other_replicas_count_towards_the_pace() -> None:
    pace = ExpiryPace()
    pace.allowance(0, 50, 1_000)
    assert pace.allowance(1, 50, 1_040) == 10
    assert pace.allowance(2, 50, 2_000) == 0
    assert pace.allowance(3, 50, 2_000) == 0
    assert pace.allowance(4, 50, 2_000) == 50


@given(st.lists(st.floats(0, 5), min_size=1, max_size=60), st.floats(0.5, 1_000))
@settings(deadline=None)
def test_expiries_that_use_every_allowance_keep_to_the_rate(pauses: list[float], rate: float) -> None:
    pace, now, expiries = ExpiryPace(), 0.0, 0
    for pause_s in pauses:
        now += pause_s
        expiries += pace.allowance(now, rate, expiries)
    assert expiries <= rate * now + max(1.0, rate)
