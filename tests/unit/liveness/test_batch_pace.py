"""How often heartbeats are stored: at once while there are few, in five batches a second while there are many."""

from __future__ import annotations

from hq.liveness.heartbeats import BUSY_INTERVAL_S, BatchPace

QUICK_S = 0.02


def test_few_heartbeats_are_stored_at_most_fifty_times_a_second() -> None:
    pace = BatchPace(50.0)
    assert {pace.interval_s(n * QUICK_S, 64) for n in range(500)} == {QUICK_S}


def test_from_five_thousand_a_second_on_there_are_five_batches() -> None:
    pace = BatchPace(50.0)
    intervals = [pace.interval_s(n * QUICK_S, 1_000) for n in range(6)]
    assert intervals == [QUICK_S] * 4 + [BUSY_INTERVAL_S] * 2
    assert {pace.interval_s(0.3 + n * BUSY_INTERVAL_S, 1_000) for n in range(20)} == {BUSY_INTERVAL_S}


def test_the_pace_becomes_quick_again_below_half_of_the_busy_rate() -> None:
    pace = BatchPace(50.0)
    assert pace.interval_s(0.0, 6_000) == BUSY_INTERVAL_S
    assert pace.interval_s(0.9, 0) == BUSY_INTERVAL_S
    assert pace.interval_s(1.9, 2_400) == QUICK_S


def test_a_lower_limit_of_batches_is_kept() -> None:
    assert BatchPace(2.0).interval_s(0.0, 1) == 0.5
    assert BatchPace(2.0).interval_s(0.0, 50_000) == 0.5
