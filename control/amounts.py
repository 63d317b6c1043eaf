"""Amounts of instances, as a number or a share. The only place that rounds, always to the safe side."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WRITTEN = re.compile(r"(0|[1-9][0-9]{0,8})(%?)")


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of instances, or a percentage of them."""

    value: int
    is_percent: bool = False

    @classmethod
    def parse(cls, text: str) -> Amount:
        """Parse `3` or `25%`. Raises ValueError, which says what to write."""
        found = _WRITTEN.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text[:40]!r} is not a valid amount: write a number as 3, or a share as 25%")
        value, is_percent = int(found[1]), bool(found[2])
        if is_percent and value > 100:
            raise ValueError(f"{text[:40]!r} is over 100%")
        return cls(value, is_percent)

    def __str__(self) -> str:
        return f"{self.value}%" if self.is_percent else str(self.value)

    def of(self, total: int) -> int:
        """The amount of `total`, rounded down."""
        return total * self.value // 100 if self.is_percent else self.value


def allowed_unavailable(total: int, amount: Amount) -> int:
    """How many of `total` may be unavailable: a share rounds down, but to no less than 1 unless it is 0.

    A service of three with 10% could otherwise never be touched.
    """
    return max(1, amount.of(total)) if amount.is_percent and amount.value else amount.value


def floor_for(total: int, *, min_ready: Amount | None = None, max_unavailable: Amount | None = None) -> int:
    """How many of `total` must stay available. Exactly one of the two amounts is given.

    A share of `min_ready` rounds up. With a number, the floor may exceed the total.
    """
    if min_ready is not None:
        return -(-total * min_ready.value // 100) if min_ready.is_percent else min_ready.value
    assert max_unavailable is not None
    return max(0, total - allowed_unavailable(total, max_unavailable))
