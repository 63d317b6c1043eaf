"""Which locations a gateway asks, how long it waits, and when it sends a hedged request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated.locations.plan import HedgeBudget, Latencies, LocationStanding, patience_s, select_locations
from serving.errors import InvalidRequest


@given(st.lists(st.booleans(), max_size=400))
def test_hedged_requests_are_at_most_a_tenth_of_all(wishes: list[bool]) -> None:
    budget, spent = HedgeBudget(), 0
    for calls, wants in enumerate(wishes, start=1):
        budget.record_call()
        spent += wants and budget.spend()
        assert spent <= 1 + calls / 10 + 1e-9


@given(st.integers(0, 2_000), st.integers(1, 300))
def test_the_saved_budget_for_hedged_requests_is_bounded(quiet: int, storm: int) -> None:
    budget = HedgeBudget()
    for _ in range(quiet):
        budget.record_call()
    spent = 0
    for _ in range(storm):
        budget.record_call()
        spent += budget.spend()
    assert spent <= 10 + storm / 10 + 1e-9


def test_a_call_is_hedged_after_twice_the_time_of_nearly_all() -> None:
    latencies = Latencies()
    for n in range(100):
        latencies.record_latency(0.020 if n else 3.0)
    assert latencies.hedge_after_s() == pytest.approx(0.040)


def test_old_latencies_are_forgotten() -> None:
    latencies = Latencies()
    for seconds in [1.0] * 200 + [0.030] * 200:
        latencies.record_latency(seconds)
    assert latencies.hedge_after_s() == pytest.approx(0.060)


def test_the_default_hedge_delay_holds_after_too_few_calls() -> None:
    latencies = Latencies()
    latencies.record_latency(3.0)
    assert latencies.hedge_after_s() == 0.05


def test_a_location_that_timed_out_is_down_until_it_answers() -> None:
    standing = LocationStanding(0.0)
    standing.record_failure("no answer within 2 s", 2.0, 2.0, 10.0, at_once=False)
    assert not standing.is_up
    assert standing.since == 10.0
    standing.record_failure("still none", 2.0, 2.0, 20.0, at_once=False)
    assert standing.since == 10.0
    standing.record_answer(30.0)
    assert (standing.is_up, standing.error) == (True, "")


def test_a_short_deadline_does_not_mark_a_location_as_down() -> None:
    standing = LocationStanding(0.0)
    standing.record_failure("no answer within 0.05 s", 0.05, 2.0, 10.0, at_once=False)
    assert standing.is_up


def test_a_location_that_refuses_connections_is_down_at_once() -> None:
    standing = LocationStanding(0.0)
    standing.record_failure("refused", 0.001, 2.0, 10.0, at_once=True)
    assert not standing.is_up


def test_the_wait_for_a_location_ends_before_the_callers_deadline() -> None:
    assert patience_s(2.0, None) == 2.0
    assert patience_s(2.0, 10.0) == 2.0
    assert patience_s(2.0, 1.0) == pytest.approx(0.9)
    assert patience_s(2.0, -1.0) > 0


def test_an_unknown_location_is_refused_with_the_names_of_the_known_ones() -> None:
    assert select_locations(["west", "east"], [], "filter.cluster") == ["east", "west"]
    assert select_locations(["west", "east"], ["west"], "filter.cluster") == ["west"]
    with pytest.raises(InvalidRequest, match="known: east, west"):
        select_locations(["west", "east"], ["south"], "filter.cluster")
