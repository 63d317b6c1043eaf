"""Times of a roll-out count while a process acts, and what was counted outlives the process."""

from __future__ import annotations

import pytest

from nanny.actions.progress_clock import ProgressClock
from nannypb.v1.records_pb2 import ActionRecord

MINUTE_S = 60.0


class _Hand:
    """A clock that is set by hand, in seconds."""

    def __init__(self) -> None:
        self.at_s = 1_000.0

    def now(self) -> float:
        return self.at_s

    def wall_ms(self) -> int:
        return int(self.at_s * 1_000)


def hold(hand: _Hand, clock: ProgressClock, record: ActionRecord, seconds: float, *, look_s: float = 1.0) -> float:
    """Look so often while it holds; how long it has held."""
    clock.meter("web", record)
    for _ in range(int(seconds / look_s)):
        hand.at_s += look_s
        meter = clock.meter("web", record)
        meter.note_held()
        meter.save(record)
    return clock.meter_of("web", record).step_s


def test_a_hold_of_ten_minutes_ends_although_nanny_restarts_every_nine() -> None:
    hand, record, processes = _Hand(), ActionRecord(number=1), 0
    while hold(hand, ProgressClock(hand), record, 9 * MINUTE_S) < 10 * MINUTE_S:
        hand.at_s += 5 * MINUTE_S  # nobody acts
        processes += 1
    assert processes == 1


def test_the_time_of_a_step_is_saved_every_thirty_seconds_and_not_at_every_look() -> None:
    hand, record, saved = _Hand(), ActionRecord(number=1), set()
    clock = ProgressClock(hand)
    for _ in range(90):
        hold(hand, clock, record, 1.0)
        saved.add(record.step_ms)
    assert saved == {0, 30_000, 60_000, 90_000}


def test_sleep_and_pause_do_not_count() -> None:
    hand, record = _Hand(), ActionRecord(number=1)
    clock = ProgressClock(hand)
    assert hold(hand, clock, record, 2 * MINUTE_S) == 2 * MINUTE_S
    assert hold(hand, clock, record, 10 * MINUTE_S, look_s=10 * MINUTE_S) <= 2 * MINUTE_S + 10.0, "it was asleep"
    before = clock.meter_of("web", record).step_s
    clock.pause("web")
    hand.at_s += 10 * MINUTE_S
    assert hold(hand, clock, record, 1.0) <= before + 1.0


@pytest.mark.parametrize(("over", "ms", "held_s"), [(0, 0, 120.0), (0, 200_000, 200.0), (1, 0, 0.0), (1, 5_000, 5.0)])
def test_a_process_that_acts_again_goes_on_with_the_times_that_the_other_one_stored(
    over: int, ms: int, held_s: float
) -> None:
    hand = _Hand()
    clock = ProgressClock(hand)
    hold(hand, clock, ActionRecord(number=1), 2 * MINUTE_S)
    assert clock.meter_of("web", ActionRecord(number=1, steps_over=over, step_ms=ms)).step_s == held_s
