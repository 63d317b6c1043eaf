"""One budget's instances, counted."""

from __future__ import annotations

from enum import StrEnum

from cms.ledger.budgets import Budget
from cms.ledger.instances import InstanceKey


class Place(StrEnum):
    """Where an instance stands in the sums of its budgets."""

    AVAILABLE = "available"
    HELD = "held"
    DOWN = "down"
    UNCERTAIN = "uncertain"


class Tally:
    """The instances of a budget that count, by where they stand.

    Attributes:
        available: how many can be counted on, and nobody holds.
        apart: the others, by place.
    """

    __slots__ = ("apart", "available", "budget")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.available = 0
        self.apart: dict[Place, set[InstanceKey]] = {
            Place.HELD: set(),
            Place.DOWN: set(),
            Place.UNCERTAIN: set(),
        }

    @property
    def total(self) -> int:
        """All of them."""
        return self.available + sum(map(len, self.apart.values()))

    @property
    def floor(self) -> int:
        """How many must stay available."""
        return self.budget.floor(self.total)

    def add(self, key: InstanceKey, place: Place) -> None:
        if place is Place.AVAILABLE:
            self.available += 1
        else:
            self.apart[place].add(key)

    def remove(self, key: InstanceKey, place: Place) -> None:
        if place is Place.AVAILABLE:
            self.available -= 1
        else:
            self.apart[place].discard(key)
