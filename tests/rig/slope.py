"""A straight line through measurements, and how sure its slope is. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_BLOCKS = 20
_SURE = 2.88  # standard errors on either side: 99 %, with twenty blocks; a soak looks at eight lines at once


class Slope(NamedTuple):
    """Change per hour, and by how much it may be off with 99 % confidence. `mean`: of the values."""

    per_hour: float
    plus_minus: float
    mean: float

    @property
    def is_flat(self) -> bool:
        """Whether zero lies within the confidence, or the drift is under five percent of the mean per hour."""
        return abs(self.per_hour) <= max(self.plus_minus, 0.05 * abs(self.mean))


def slope(times_s: Sequence[float], values: Sequence[float]) -> Slope:
    """By least squares through the means of twenty blocks of measurements.

    Neighbouring measurements resemble each other: so blocks, and the error is widened by how much those still do.
    """
    times_s, values = _means(times_s), _means(values)
    count = len(times_s)
    if count < 3:
        return Slope(0.0, math.inf, values[0] if values else 0.0)
    middle, mean = sum(times_s) / count, sum(values) / count
    spread = sum((t - middle) ** 2 for t in times_s)
    rise = sum((t - middle) * (v - mean) for t, v in zip(times_s, values, strict=True)) / spread
    residuals = [v - mean - rise * (t - middle) for t, v in zip(times_s, values, strict=True)]
    square = sum(r * r for r in residuals)
    kinship = sum(a * b for a, b in pairwise(residuals)) / square if square else 0.0
    widened = math.sqrt((1 + max(0.0, kinship)) / max(0.05, 1 - max(0.0, kinship)))
    error = math.sqrt(square / (count - 2) / spread) * widened
    return Slope(rise * 3600, _SURE * error * 3600, mean)


def _means(values: Sequence[float]) -> list[float]:
    """Means of blocks of equal size; a rest at the end is dropped."""
    size = max(1, len(values) // _BLOCKS)
    return [sum(values[at : at + size]) / size for at in range(0, len(values) - size + 1, size)]
