"""One budget's instances, counted."""

from __future__ import annotations

from enum import StrEnum

from cms.ledger.budgets import Budget
from cms.ledger.instances import InstanceKey


class TallyPlace(StrEnum):
    """Where an instance stands in the sums of its budgets."""

    AVAILABLE = "available"
    HELD = "held"
    DOWN = "down"
    UNCERTAIN = "uncertain"


class BudgetTally:
    """The instances of a budget that count, by where they stand.

    Attributes:
        available: how many can be counted on and are not held.
        apart: the others, by place.
        total: all of them.
        lost: those of them that a roll-out may take off the total.
        floor: how many must stay available.
    """

    __slots__ = ("apart", "available", "budget", "floor", "lost", "total")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.available = self.total = self.lost = 0
        self.floor = budget.floor(0)
        self.apart: dict[TallyPlace, set[InstanceKey]] = {
            TallyPlace.HELD: set(),
            TallyPlace.DOWN: set(),
            TallyPlace.UNCERTAIN: set(),
        }

    def total_without_lost(self, most: int) -> int:
        """Return the total of shares and max_unavailable for work that may leave out at most so many of the lost."""
        return self.total - min(self.lost, most)

    def add(self, key: InstanceKey, place: TallyPlace, *, is_lost: bool = False) -> None:
        self._grow(1)
        self.lost += is_lost
        if place is TallyPlace.AVAILABLE:
            self.available += 1
        else:
            self.apart[place].add(key)

    def remove(self, key: InstanceKey, place: TallyPlace, *, is_lost: bool = False) -> None:
        """Take out an instance, which must have been added with the same arguments."""
        self._grow(-1)
        self.lost -= is_lost
        if place is TallyPlace.AVAILABLE:
            self.available -= 1
        else:
            self.apart[place].remove(key)

    def _grow(self, by: int) -> None:
        self.total += by
        self.floor = self.budget.floor(self.total)
