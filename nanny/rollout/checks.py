"""The verdict of a check on the values that its query found. Pure."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class NoDataMeans(enum.StrEnum):
    """The meaning of a query without values."""

    WAIT = "wait"
    FAIL = "fail"
    PASS = "pass"


@dataclass(frozen=True, slots=True)
class Bound:
    """Every value is less than `below`, and more than `above`; None: as may be."""

    below: float | None = None
    above: float | None = None

    def violations(self, values: Sequence[float]) -> list[float]:
        """Measurements that are beyond their limit."""
        return [value for value in values if not self._holds(value)]

    def _holds(self, value: float) -> bool:
        return (self.below is None or value < self.below) and (self.above is None or value > self.above)

    def __str__(self) -> str:
        parts = [f"below {self.below:g}" if self.below is not None else ""]
        parts.append(f"above {self.above:g}" if self.above is not None else "")
        return " and ".join(filter(None, parts))


class CheckVerdict(NamedTuple):
    """`is_within` None: that is not known, so its time stands still. `words` are for people."""

    is_within: bool | None
    words: str


def judge_values(values: Sequence[float], bound: Bound, no_data: NoDataMeans) -> CheckVerdict:
    """The verdict on what one query found. What is not a number, as 0/0, is no value."""
    numbers = [value for value in values if not math.isnan(value)]
    if not numbers:
        is_within = {NoDataMeans.WAIT: None, NoDataMeans.FAIL: False, NoDataMeans.PASS: True}[no_data]
        return CheckVerdict(is_within, f"the query found no value, which means {no_data}")
    if beyond := bound.violations(numbers):
        more = f" ({len(beyond)} of {len(numbers)} values)" if len(numbers) > 1 else ""
        return CheckVerdict(False, f"{beyond[0]:g} is not {bound}{more}")
    shown = ", ".join(f"{value:g}" for value in numbers[:3])
    return CheckVerdict(True, f"{shown}{' ...' if len(numbers) > 3 else ''}, {bound}")
