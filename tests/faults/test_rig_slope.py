"""The soak's verdict: what grows is found, what only wavers is not."""

from __future__ import annotations

import math
import random

from tests.rig.slope import slope

HOUR_S = 3600.0


def measured(per_hour: float, noise: float, seed: int = 1) -> tuple[list[float], list[float]]:
    """Twenty minutes, every five seconds, around 100."""
    rng = random.Random(seed)
    times_s = [5.0 * n for n in range(240)]
    return times_s, [100.0 + per_hour * t / HOUR_S + rng.gauss(0, noise) for t in times_s]


def test_the_slope_of_a_straight_line_is_found_exactly() -> None:
    found = slope(*measured(30.0, 0.0))
    assert math.isclose(found.per_hour, 30.0, rel_tol=1e-9)
    assert not found.is_flat


def test_growth_is_told_from_noise() -> None:
    assert not slope(*measured(30.0, 2.0)).is_flat
    assert sum(slope(*measured(0.0, 5.0, seed)).is_flat for seed in range(50)) >= 45


def test_the_true_slope_lies_within_the_confidence_nearly_always() -> None:
    found = [slope(*measured(12.0, 3.0, seed)) for seed in range(100)]
    assert sum(abs(each.per_hour - 12.0) <= each.plus_minus for each in found) >= 88


def test_too_few_measurements_say_nothing() -> None:
    assert slope([1.0, 2.0], [5.0, 6.0]).plus_minus == math.inf
