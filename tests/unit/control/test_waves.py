"""Work in waves: no second wave ever follows a bad first one."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from control.amounts import Amount
from control.waves import (
    Part,
    PartEvidence,
    Progress,
    Step,
    WaveLimits,
    WaveStep,
    allowed_failures,
    find_step_faults,
    is_over,
    judge,
    list_problems,
    next_step,
    reach_in,
    weight_in,
)

SETTLE_MS, DEADLINE_MS = 300_000, 900_000


def parts_of(*progress: Progress, domain: str = "") -> list[Part]:
    return [Part(f"h{i}", one, domain, "ssh fails") for i, one in enumerate(progress)]


W, N, R, B, F, S, A = Progress  # in the order of their declaration; N: in work


def test_the_first_wave_begins_at_once() -> None:
    assert next_step(parts_of(W, W, W), WaveLimits(Amount(2))) == Step(begin=("h0", "h1"))


@pytest.mark.parametrize("progress", [N, R])
def test_the_next_wave_waits_until_all_of_the_one_before_are_back(progress: Progress) -> None:
    assert next_step(parts_of(B, progress, W), WaveLimits(Amount(2))) == Step()
    assert next_step(parts_of(B, B, W), WaveLimits(Amount(2))) == Step(begin=("h2",))


def test_one_failure_in_the_first_wave_stops_the_work_at_once() -> None:
    step = next_step(parts_of(F, N, W, W), WaveLimits(Amount(2)))
    assert step.stop == "1 of 2 failed: h0 (ssh fails)"
    assert not step.begin


def test_after_the_first_wave_a_tenth_may_fail() -> None:
    assert next_step(parts_of(*[B] * 9, F, W), WaveLimits(Amount(2))).begin == ("h10",)
    assert next_step(parts_of(*[B] * 8, F, F, W), WaveLimits(Amount(2))).stop
    assert next_step(parts_of(*[B] * 9, F, W), WaveLimits(Amount(10))).stop, "ten are the first wave"


@pytest.mark.parametrize(
    ("most", "begun", "allowed"), [(Amount(0), 50, 0), (Amount(3), 5, 3), (Amount(20, is_percent=True), 10, 2)]
)
def test_a_given_number_of_failures_holds_for_every_wave(most: Amount, begun: int, allowed: int) -> None:
    assert allowed_failures(begun, WaveLimits(Amount(5), max_failures=most), 100) == allowed


def test_skipped_and_accepted_parts_stop_nothing() -> None:
    assert next_step(parts_of(S, A, W), WaveLimits()).begin == ("h2",)


def test_work_is_done_once_nothing_waits_or_runs() -> None:
    assert next_step(parts_of(B, S, A), WaveLimits()).is_done
    assert next_step(parts_of(B, R), WaveLimits()) == Step()


def test_an_obstacle_stops_the_next_wave_but_not_running_or_finished_work() -> None:
    assert next_step(parts_of(B, W), WaveLimits(), "healing is off").stop == "healing is off"
    assert next_step(parts_of(N, W), WaveLimits(), "healing is off") == Step()
    assert next_step(parts_of(B, B), WaveLimits(), "healing is off").is_done


def test_a_wave_by_domain_is_of_one_domain() -> None:
    parts = [Part(f"h{i}", W, f"rack {i % 2}") for i in range(6)]
    assert next_step(parts, WaveLimits(Amount(10), by_domain=True)).begin == ("h0", "h2", "h4")


@pytest.mark.parametrize(("text", "size"), [("5", 5), ("10%", 20), ("0", 1), ("0%", 1), (" 100% ", 200)])
def test_sizes_are_numbers_or_per_cent_of_all(text: str, size: int) -> None:
    assert WaveLimits(Amount.parse(text)).size_in(200) == size


@pytest.mark.parametrize("text", ["", "%", "-1", "1.5", "101%", "٣", "9" * 10, "ten"])
def test_a_malformed_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"valid amount|over 100%"):
        Amount.parse(text)


def test_a_part_is_back_once_it_was_reported_well_for_the_settle_time() -> None:
    well = PartEvidence(ended_ms=0, quiet_since_ms=60_000)
    assert judge(well, 60_000 + SETTLE_MS - 1, SETTLE_MS, DEADLINE_MS) == (R, "")
    assert judge(well, 60_000 + SETTLE_MS, SETTLE_MS, DEADLINE_MS) == (B, "")
    unheard = replace(well, is_heard=False)
    assert judge(unheard, DEADLINE_MS - 1, SETTLE_MS, DEADLINE_MS)[0] is R
    assert judge(unheard, DEADLINE_MS, SETTLE_MS, DEADLINE_MS)[0] is F


def test_at_the_deadline_a_part_is_judged_as_it_is() -> None:
    late = PartEvidence(ended_ms=0, quiet_since_ms=DEADLINE_MS - 1)
    assert judge(late, DEADLINE_MS, SETTLE_MS, DEADLINE_MS) == (B, "")
    assert judge(replace(late, problem="ssh fails"), DEADLINE_MS, SETTLE_MS, DEADLINE_MS) == (F, "ssh fails")


def test_a_list_of_problems_names_ten_and_counts_the_rest() -> None:
    assert list_problems(parts_of(*[F] * 12)).endswith("h9 (ssh fails) and 2 more")


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_at_most_one_wave_is_in_work_and_none_follows_a_bad_first_one(seed: int) -> None:
    rng = random.Random(seed)
    limits = WaveLimits(Amount(rng.randint(1, 6)), by_domain=rng.random() < 0.5)
    parts = [Part(f"h{i}", W, f"rack {rng.randint(0, 3)}") for i in range(40)]
    begun: list[str] = []
    for _ in range(1000):
        step = next_step(parts, limits)
        if step.stop or step.is_done:
            break
        assert not (step.begin and any(part.progress in (N, R) for part in parts))
        begun += step.begin
        size = limits.size_in(len(parts))
        assert len(step.begin) <= size
        failed = sum(part.progress is F for part in parts)
        assert not step.begin or failed <= (0 if len(begun) <= 2 * size else len(begun) // 10)
        parts = [replace(part, progress=_live(part, step, rng)) for part in parts]
    assert len(begun) == len(set(begun))


def _live(part: Part, step: Step, rng: random.Random) -> Progress:
    if part.name in step.begin:
        return N
    after = {N: (N, R, S), R: (R, B, B, B, F)}
    return rng.choice(after.get(part.progress, (part.progress,)))


ONE_OF = "write instances, weight or both, or one of hold, promote and check"
CANARY = (
    WaveStep(Amount(1), 5),
    WaveStep(hold_s=600.0),
    WaveStep(Amount(10, is_percent=True)),
    WaveStep(weight=50),
    WaveStep(promote=True),
)


@pytest.mark.parametrize(
    ("over", "of_40", "of_3", "weight"),
    [(0, 1, 1, 5), (1, 1, 1, 5), (2, 4, 1, 5), (3, 4, 1, 50), (4, 4, 1, 50), (5, 40, 3, 100)],
)
def test_amounts_of_steps_add_up_and_a_weight_holds_until_the_next(
    over: int, of_40: int, of_3: int, weight: int
) -> None:
    assert (reach_in(CANARY, over, 40), reach_in(CANARY, over, 3)) == (of_40, of_3)
    assert weight_in(CANARY, over) == weight


def test_a_check_before_the_first_amount_reaches_no_instance() -> None:
    assert reach_in((WaveStep(check="errors", hold_s=60.0), WaveStep(Amount(1))), 0, 40) == 0


def test_a_step_is_over_after_its_hold_or_promotion() -> None:
    assert is_over(WaveStep(Amount(1)), 0.0, is_promoted=False)
    assert [is_over(WaveStep(hold_s=60.0), lasted_s, is_promoted=False) for lasted_s in (59.0, 60.0)] == [False, True]
    assert [is_over(WaveStep(promote=True), 1e9, is_promoted=one) for one in (False, True)] == [False, True]


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (CANARY, []),
        ((WaveStep(),), [(0, "", "write instances, weight or both, or one of hold, promote and check")]),
        (
            (WaveStep(Amount(1), hold_s=1.0),),
            [(0, "", "write instances, weight or both, or one of hold, promote and check")],
        ),
        ((WaveStep(Amount(0)),), [(0, "instances", "is 0: nothing would be switched, and nothing be seen")]),
        (
            (WaveStep(Amount(3)), WaveStep(Amount(2))),
            [(1, "instances", "2 is less than 3 before it: amounts include earlier steps")],
        ),
        ((WaveStep(check="x"),), [(0, "check", "there is no check 'x' in this policy; it has: errors")]),
    ],
)
def test_faults_of_steps_are_named_with_step_and_field(
    steps: tuple[WaveStep, ...], told: list[tuple[int, str, str]]
) -> None:
    assert list(find_step_faults(steps, ["errors"])) == told
