"""When silence is too long: the table of cases, on a clock that only the test moves."""

import pytest

from hq.liveness.deadlines import Deadlines, LivenessTimes, RevisionKey
from serving.clock import ManualClock

TIMES = LivenessTimes(timeout_s=600, report_interval_s=180, retry_s=10, flush_s=0.5)
A, B, C = (RevisionKey(name, "r1") for name in ("a", "b", "c"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def deadlines() -> Deadlines[RevisionKey]:
    return Deadlines(TIMES)


def expired(deadlines: Deadlines[RevisionKey], clock: ManualClock) -> list[RevisionKey]:
    return list(deadlines.expired_keys(clock.now()))


def left_s(deadlines: Deadlines[RevisionKey], key: RevisionKey, clock: ManualClock) -> float:
    deadline = deadlines.deadline(key)
    assert deadline is not None
    return deadline - clock.now()


def test_silence_expires_after_the_timeout_and_a_flush_and_not_before(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    deadlines.record_contact(A, clock.now())
    clock.advance(600.49)
    assert expired(deadlines, clock) == []
    clock.advance(0.02)
    assert expired(deadlines, clock) == [A]


def test_a_revision_renewed_at_its_deadline_survives(clock: ManualClock, deadlines: Deadlines[RevisionKey]) -> None:
    deadlines.record_contact(A, clock.now())
    clock.advance(600)
    deadlines.record_contact(A, clock.now())
    clock.advance(600)
    assert expired(deadlines, clock) == []


def test_a_late_sweep_spares_an_agent_heard_after_its_deadline(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    deadlines.record_contact(A, clock.now())
    clock.advance(5_000)
    deadlines.record_contact(A, clock.now())
    assert expired(deadlines, clock) == []


def test_the_longest_silence_comes_first(clock: ManualClock, deadlines: Deadlines[RevisionKey]) -> None:
    for key in (A, B, C):
        deadlines.record_contact(key, clock.now())
        clock.advance(1)
    deadlines.record_contact(A, clock.now())
    clock.advance(700)
    assert expired(deadlines, clock) == [B, C, A]


def test_a_forgotten_revision_never_expires(clock: ManualClock, deadlines: Deadlines[RevisionKey]) -> None:
    deadlines.record_contact(A, clock.now())
    deadlines.forget(A)
    deadlines.forget(A)
    clock.advance(700)
    assert expired(deadlines, clock) == []
    assert deadlines.deadline(A) is None
    assert A not in deadlines
    assert len(deadlines) == 0


@pytest.mark.parametrize("gap_s", [1.0, 6.0, 60.0, 179.0])
def test_a_gap_long_before_a_deadline_moves_it_by_the_gap(
    clock: ManualClock, deadlines: Deadlines[RevisionKey], gap_s: float
) -> None:
    deadlines.record_contact(A, clock.now())
    clock.advance(100)
    began = clock.now()
    clock.advance(gap_s)
    deadlines.gap(began, clock.now(), "away")
    assert left_s(deadlines, A, clock) == pytest.approx(500)


@pytest.mark.parametrize(("gap_s", "chance_s"), [(1.0, 11.0), (60.0, 70.0), (180.0, 190.0), (1_800.0, 190.0)])
def test_after_a_gap_every_agent_has_as_long_as_the_gap_up_to_an_interval_and_a_retry_to_report(
    clock: ManualClock, deadlines: Deadlines[RevisionKey], gap_s: float, chance_s: float
) -> None:
    deadlines.record_contact(A, clock.now())
    clock.advance(599)
    began = clock.now()
    clock.advance(gap_s)
    deadlines.gap(began, clock.now(), "away")
    assert left_s(deadlines, A, clock) == pytest.approx(max(1, chance_s))
    clock.advance(chance_s + 0.49)
    assert expired(deadlines, clock) == []
    clock.advance(0.02)
    assert expired(deadlines, clock) == [A]


def test_a_heartbeat_during_a_gap_extends_the_deadline_by_one_timeout_at_most(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    """Heartbeats replayed at the end of an outage must not move a deadline by the outage a second time."""
    deadlines.record_contact(A, clock.now())
    began = clock.now()
    clock.advance(1_799)
    deadlines.record_contact(A, clock.now())
    clock.advance(1)
    deadlines.gap(began, clock.now(), "away")
    assert left_s(deadlines, A, clock) == pytest.approx(600)
    clock.advance(10)
    deadlines.record_contact(B, clock.now())
    assert left_s(deadlines, B, clock) == pytest.approx(600)


def test_gaps_that_overlap_count_once(clock: ManualClock, deadlines: Deadlines[RevisionKey]) -> None:
    deadlines.record_contact(A, clock.now())
    began = clock.now()
    clock.advance(100)
    deadlines.gap(began, clock.now(), "away")
    deadlines.gap(began + 50, clock.now(), "away")
    assert left_s(deadlines, A, clock) == pytest.approx(600)


def test_while_hq_is_away_silence_does_not_grow(clock: ManualClock, deadlines: Deadlines[RevisionKey]) -> None:
    deadlines.record_contact(A, clock.now())
    clock.advance(400)
    deadlines.away(clock.now())
    clock.advance(10_000)
    assert deadlines.silence_s(A, clock.now()) == pytest.approx(400)
    assert deadlines.silent(clock.now()) == 1
    assert expired(deadlines, clock) == []


def test_after_a_restart_every_revision_has_a_full_timeout_and_none_counts_as_silent(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    deadlines.record_contact(A, clock.now())
    clock.advance(599)
    deadlines.restart(clock.now(), "started")
    assert deadlines.silent(clock.now()) == 0
    assert left_s(deadlines, A, clock) == pytest.approx(600)
    assert deadlines.postponed_because == "started"
    clock.advance(600.6)
    assert expired(deadlines, clock) == [A]


def test_a_gap_after_a_restart_counts_from_the_restart_only(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    deadlines.record_contact(A, clock.now())
    began = clock.now()
    clock.advance(100)
    deadlines.restart(clock.now(), "started")
    clock.advance(50)
    deadlines.gap(began, clock.now(), "away")
    assert left_s(deadlines, A, clock) == pytest.approx(600)


def test_the_guard_counts_revisions_silent_for_two_intervals_to_within_a_tick(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    for n in range(100):
        deadlines.record_contact(RevisionKey(f"i{n}", "r1"), clock.now())
        clock.advance(1)
    clock.advance(320)  # the oldest was heard 420 s ago
    assert 59 <= deadlines.silent(clock.now()) <= 61
    assert deadlines.expired_count(clock.now()) == 0
    clock.advance(300)
    assert deadlines.silent(clock.now()) == 100
    assert deadlines.expired_count(clock.now()) == len(expired(deadlines, clock)) == 100


def test_the_memory_for_counting_grows_with_ticks_not_revisions(
    clock: ManualClock, deadlines: Deadlines[RevisionKey]
) -> None:
    for n in range(30_000):
        deadlines.record_contact(RevisionKey(f"i{n % 20_000}", "r1"), clock.now())
        clock.advance(0.02)
    assert len(deadlines._counts) <= 602
    assert sum(deadlines._counts.values()) == len(deadlines) == 20_000
