"""What a service allows its roll-outs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from control.amounts import Amount, allowed_unavailable

TEN_PERCENT: Final = Amount(10, is_percent=True)


@dataclass(frozen=True, slots=True)
class Policy:
    """How a roll-out goes.

    Attributes:
        service: whose roll-outs these are.
        max_unavailable: of the serving instances; a share is at least 1 unless it is 0.
        max_failures: instances that may fail after the first batch, which may have none: they cannot be prepared, stay
            not ready, or break after they were done.
        progress_deadline_s: a batch in which nothing becomes ready for this long has failed.
        min_ready_s: an instance is done once it has been ready for this long without interruption.
        locations: these first, in this order; others follow by name.
        leave_out: locations that no roll-out touches or waits for.
        rolls_back: a failed roll-out is rolled back, once; False: it stops and reports that.
    """

    max_unavailable: Amount = TEN_PERCENT
    max_failures: Amount = TEN_PERCENT
    progress_deadline_s: float = 600.0
    min_ready_s: float = 10.0
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

    def failures(self, total: int, batches_done: int) -> int:
        """How many of the instances that were switched may fail."""
        return self.max_failures.of(total) if batches_done else 0

    def order(self, location: str) -> tuple[int, str]:
        """Sorts locations."""
        return (self.locations.index(location) if location in self.locations else len(self.locations), location)
