"""A service's policy for its roll-outs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from control.amounts import Amount, allowed_unavailable

TEN_PERCENT: Final = Amount(10, is_percent=True)
DEADLINE_S: Final = 600.0
_SOAK_S: Final = 300.0
_MIN_READY_S: Final = 10.0
_FORGIVES_ONE_FROM: Final = 5


@dataclass(frozen=True, slots=True)
class Policy:
    """How a roll-out goes.

    Attributes:
        service: whose roll-outs these are.
        max_unavailable: of the serving instances; a share is at least 1 unless it is 0.
        max_failures: instances that may fail in the whole roll-out; at least 1 of five and more, unless it is 0.
        progress_deadline_s: a batch in which nothing becomes ready for this long has failed.
        min_ready_s: an instance is done once it has been ready for this long without interruption.
        soak_s: the first batch, and at the end all instances, must stay done for this long.
        locations: these first, in this order; others follow by name.
        leave_out: locations that no roll-out touches or waits for.
        rolls_back: a failed roll-out is rolled back, once; False: it stops and reports that.
    """

    max_unavailable: Amount = TEN_PERCENT
    max_failures: Amount = TEN_PERCENT
    progress_deadline_s: float = DEADLINE_S
    min_ready_s: float = _MIN_READY_S
    soak_s: float = _SOAK_S
    locations: tuple[str, ...] = ()
    leave_out: frozenset[str] = frozenset()
    rolls_back: bool = False
    service: str = "SERVICE"

    def go_on_without(self, locations: Iterable[str]) -> str:
        """The advice for people who do not want to wait for these."""
        left_out = sorted({*self.leave_out, *locations})
        return f"to continue without it: nanny service leave-out {self.service} {' '.join(left_out)}"

    def unavailable(self, total: int) -> int:
        """How many of `total` serving instances a roll-out may have away at once."""
        return allowed_unavailable(total, self.max_unavailable)

    def failures(self, total: int) -> int:
        """How many of `total` instances may fail. One bad host in five says nothing about a revision."""
        least = 1 if total >= _FORGIVES_ONE_FROM and self.max_failures.value else 0
        return max(least, self.max_failures.of(total))

    def order(self, location: str) -> tuple[int, str]:
        """The key that sorts locations."""
        return (self.locations.index(location) if location in self.locations else len(self.locations), location)


def default_soak_s(progress_deadline_s: float) -> float:
    """Soak time of a policy without one: five minutes, or half a shorter deadline."""
    return min(_SOAK_S, progress_deadline_s / 2)


def default_min_ready_s(progress_deadline_s: float) -> float:
    """min_ready of a policy without one: ten seconds, or half a shorter deadline."""
    return min(_MIN_READY_S, progress_deadline_s / 2)
