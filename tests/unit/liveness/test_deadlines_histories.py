"""Random histories of hearing, gaps, restarts and looks, against a model that adds up seconds one by one."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from hq.liveness.absences import DowntimeLog
from hq.liveness.deadlines import Deadlines, LivenessTimes, RevisionKey

TIMES = LivenessTimes(timeout_s=60, report_interval_s=18, retry_s=5, flush_s=1)
KEYS = [RevisionKey(name, "r1") for name in "abcd"]


class Step(NamedTuple):
    """`what` happens after `seconds`, during which HQ was there, or away if `what` is "gap"."""

    what: str
    seconds: int
    key: int = 0


steps = st.lists(
    st.one_of(
        st.builds(Step, st.just("hear"), st.integers(0, 40), st.integers(0, 3)),
        st.builds(Step, st.just("refuse"), st.integers(0, 40), st.integers(0, 3)),
        st.builds(Step, st.just("wait"), st.integers(0, 90)),
        st.builds(Step, st.just("gap"), st.integers(1, 120)),
        st.builds(Step, st.just("restart"), st.integers(0, 5)),
    ),
    max_size=40,
)


class Model:
    """Notes for each whole second whether HQ was there.

    `heard` is the last report, or the last one refused that may count; `taken` is the last that was not refused;
    `spent` are those refused for longer than may count.
    """

    def __init__(self) -> None:
        self.now = 0
        self.present: list[bool] = []
        self.heard: dict[RevisionKey, int] = {}
        self.taken: dict[RevisionKey, int] = {}
        self.spent: set[RevisionKey] = set()
        self.gaps: list[tuple[int, int]] = []
        self.restarted = 0

    def pass_time(self, seconds: int, *, present: bool) -> None:
        self.now += seconds
        self.present += [present] * seconds

    def hear(self, key: RevisionKey) -> None:
        self.heard.pop(key, None)
        self.heard[key] = self.taken[key] = self.now
        self.spent.discard(key)

    def refuse(self, key: RevisionKey) -> None:
        if key in self.taken and self.untaken(key) > TIMES.timeout_s:
            self.spent.add(key)
        elif key in self.taken:
            self.heard.pop(key)
            self.heard[key] = self.now

    def silence(self, key: RevisionKey) -> int:
        return sum(self.present[max(self.heard[key], self.restarted) :])

    def untaken(self, key: RevisionKey) -> int:
        return sum(self.present[max(self.taken[key], self.restarted) :])

    def over(self, key: RevisionKey) -> float:
        """By how many seconds the silence of `key` exceeds its limit."""
        over = self.silence(key) - TIMES.timeout_s
        return min(over, self.untaken(key) - 2 * TIMES.timeout_s) if key in self.spent else over

    def chance_until(self) -> float:
        ends = (end + min(end - began, TIMES.report_interval_s) + TIMES.retry_s for began, end in self.gaps)
        return max(ends, default=0)


def play(history: list[Step]) -> tuple[Deadlines[RevisionKey], Model]:
    deadlines, model = Deadlines[RevisionKey](TIMES), Model()
    for step in history:
        began = model.now
        model.pass_time(step.seconds, present=step.what != "gap")
        if step.what == "hear":
            deadlines.record_contact(KEYS[step.key], model.now)
            model.hear(KEYS[step.key])
        elif step.what == "refuse":
            deadlines.record_refusal(KEYS[step.key], model.now)
            model.refuse(KEYS[step.key])
        elif step.what == "gap":
            deadlines.gap(began, model.now, "away")
            model.gaps.append((began, model.now))
        elif step.what == "restart":
            deadlines.restart(model.now, "listed again")
            model.restarted, model.gaps = model.now, []
    return deadlines, model


@given(steps)
@settings(deadline=None)
def test_silence_is_exactly_the_time_at_which_hq_was_there_and_heard_nothing(history: list[Step]) -> None:
    deadlines, model = play(history)
    for key in model.heard:
        assert deadlines.silence_s(key, model.now) == model.untaken(key)


@given(steps)
@settings(deadline=None)
def test_nothing_expires_before_a_timeout_of_silence_and_a_chance_after_the_last_gap(
    history: list[Step],
) -> None:
    deadlines, model = play(history)
    for key in deadlines.expired_keys(model.now):
        assert model.over(key) > 0
        spent = model.over(key) > TIMES.grace_s
        assert spent or model.now > model.chance_until()


@given(steps)
@settings(deadline=None)
def test_a_silent_revision_expires_within_a_grace_period_of_presence_after_its_timeout(history: list[Step]) -> None:
    deadlines, model = play(history)
    found = set(deadlines.expired_keys(model.now))
    for key in model.heard:
        if model.over(key) > TIMES.grace_s + TIMES.flush_s or (
            model.over(key) > TIMES.flush_s and model.now > model.chance_until() + 1
        ):
            assert key in found


@given(steps)
@settings(deadline=None)
def test_refused_reports_postpone_an_expiry_by_at_most_one_timeout(history: list[Step]) -> None:
    deadlines, model = play(history)
    found = set(deadlines.expired_keys(model.now))
    for key in model.taken:
        if model.untaken(key) > 2 * TIMES.timeout_s + TIMES.grace_s + TIMES.flush_s:
            assert key in found


@given(st.lists(st.integers(1, 18), min_size=20, max_size=40))
@settings(deadline=None)
def test_refused_agents_that_keep_trying_expire_after_exactly_two_timeouts(pauses: list[int]) -> None:
    deadlines, now = Deadlines[RevisionKey](TIMES), 0.0
    deadlines.record_contact(KEYS[0], now)
    for pause_s in [*pauses, *[18] * 10]:
        now += pause_s
        assert bool(list(deadlines.expired_keys(now))) == (now >= 2 * TIMES.timeout_s + TIMES.flush_s)
        deadlines.record_refusal(KEYS[0], now)


@given(steps)
@settings(deadline=None)
def test_expiry_follows_the_order_of_hearing_and_the_announced_deadline(history: list[Step]) -> None:
    deadlines, model = play(history)
    found = list(deadlines.expired_keys(model.now))
    assert found == [key for key in model.heard if key in found]
    for key in model.heard:
        deadline = deadlines.deadline(key)
        assert deadline is not None
        assert (key in found) == (model.now >= deadline + TIMES.flush_s)


@given(steps)
@settings(deadline=None)
def test_the_quick_count_is_exact_to_within_one_tick(history: list[Step]) -> None:
    deadlines, model = play(history)
    exact = len(list(deadlines.expired_keys(model.now)))
    assert deadlines.expired_count(model.now) <= exact + len(model.spent)
    later = len([k for k in model.heard if model.silence(k) >= TIMES.silent_after_s + 1])
    assert later <= deadlines.silent(model.now) <= len(model.heard)


@given(gap_s=st.floats(0.5, 30), up_s=st.floats(0.5, 30))
def test_endless_gaps_do_not_postpone_an_expiry_for_ever(gap_s: float, up_s: float) -> None:
    deadlines, now, present_s = Deadlines[RevisionKey](TIMES), 0.0, 0.0
    deadlines.record_contact(KEYS[0], now)
    while not list(deadlines.expired_keys(now)):
        assert present_s <= TIMES.timeout_s + TIMES.grace_s + TIMES.flush_s + 1e-6
        began = now
        now += gap_s
        deadlines.gap(began, now, "away")
        now += up_s
        present_s += up_s
    assert present_s > TIMES.timeout_s


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), max_size=60), st.floats(0, 400))
@settings(deadline=None)
def test_at_the_latest_contact_for_a_given_silence_the_silence_is_exactly_that(
    gaps: list[tuple[float, float]], silence_s: float
) -> None:
    absences, now = DowntimeLog(), 0.0
    absences.restart(0.0)
    for up_s, away_s in gaps:
        absences.add(now + up_s, now + up_s + away_s)
        now += up_s + away_s
    latest = absences.heard_before(silence_s, now)
    if latest >= 0:
        assert absences.silence_s(latest, now) >= silence_s - 1e-6
        assert absences.silence_s(latest + 1e-3, now) <= silence_s + 1e-6
    else:
        assert absences.silence_s(0.0, now) <= silence_s + 1e-6


def test_very_many_gaps_are_kept_in_bounded_memory_and_their_sum_is_exact() -> None:
    absences = DowntimeLog()
    for n in range(5_000):
        absences.add(n * 10.0, n * 10.0 + 4)
    assert len(absences._gaps) <= 1_000
    assert absences.silence_s(-1.0, 50_000.0) == 1 + 5_000 * 6
