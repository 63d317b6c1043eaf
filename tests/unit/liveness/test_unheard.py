"""How long ago a report came, not counting what HQ itself writes."""

import pytest

from hq.liveness.deadlines import Deadlines, LivenessTimes, RevisionKey
from serving.clock import ManualClock

A = RevisionKey("a", "r1")


@pytest.fixture
def clock() -> ManualClock:
    clock = ManualClock()
    clock.advance(1000)
    return clock


@pytest.fixture
def deadlines() -> Deadlines[RevisionKey]:
    return Deadlines(LivenessTimes())


def test_a_report_is_as_old_as_the_clock_says(clock: ManualClock, deadlines: Deadlines[RevisionKey]) -> None:
    deadlines.record_contact(A, clock.now())
    clock.advance(30)
    assert deadlines.unheard_s(A, clock.now()) == 30


def test_after_a_start_nobody_was_heard_until_a_report_comes(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    deadlines.record_contact(A, clock.now())  # as a start does, so that everyone has a full timeout
    deadlines.restart(clock.now(), "started")
    clock.advance(1)
    assert deadlines.unheard_s(A, clock.now()) is None
    deadlines.record_contact(A, clock.now())
    assert deadlines.unheard_s(A, clock.now()) == 0


def test_the_end_of_planned_work_is_no_report(clock: ManualClock, deadlines: Deadlines[RevisionKey]) -> None:
    deadlines.record_contact(A, clock.now())
    deadlines.assume(clock.now())
    assert deadlines.unheard_s(A, clock.now()) is None


def test_a_report_seen_during_a_gap_counts_from_the_gaps_beginning(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    clock.advance(50)
    deadlines.record_contact(A, clock.now())
    deadlines.gap(clock.now() - 50, clock.now(), "away")
    clock.advance(5)
    assert deadlines.unheard_s(A, clock.now()) == 55


def test_time_without_hq_counts_in_the_age_of_a_report_but_not_towards_an_expiry(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    deadlines.record_contact(A, clock.now())
    clock.advance(10)
    deadlines.gap(clock.now() - 8, clock.now(), "away")
    assert deadlines.unheard_s(A, clock.now()) == 10
    assert deadlines.silence_s(A, clock.now()) == pytest.approx(2)


def test_a_hundred_gaps_are_kept_as_a_few_and_never_make_a_report_younger(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    deadlines.record_contact(A, clock.now())
    for _ in range(100):
        clock.advance(10)
        deadlines.gap(clock.now() - 1, clock.now(), "away")
    assert deadlines.unheard_s(A, clock.now()) in (None, 1000)
