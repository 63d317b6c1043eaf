"""Budgets: what must remain of a service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cms.ledger.instances import Instance
from control.amounts import Amount, floor_for

DEFAULT_PREFIX = "default:"
"""Names of budgets that nobody made begin so; names of others cannot have a colon."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How many of the instances that it selects must remain available.

    Attributes:
        service: of the instances; empty: any, selected by labels.
        labels: instances have all of them.
        clusters: instances are in one of these; empty: in any.
        brief: max_unavailable while all work on them is brief: at most `within_s` each.
        rejects: a task that is impossible now is rejected instead of waiting.
    """

    name: str
    service: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    clusters: frozenset[str] = frozenset()
    min_ready: Amount | None = None
    max_unavailable: Amount | None = None
    rejects: bool = False
    brief: Amount | None = None
    within_s: float = 0.0

    def selects(self, instance: Instance) -> bool:
        """Whether an instance comes under this budget, also one that does not count yet."""
        if self.service and self.service != instance.service:
            return False
        if self.clusters and instance.cluster not in self.clusters:
            return False
        return all(instance.labels.get(key) == value for key, value in self.labels.items())

    def floor(self, total: int) -> int:
        """How many of `total` instances must stay available."""
        return floor_for(total, min_ready=self.min_ready, max_unavailable=self.max_unavailable)

    def brief_floor(self, total: int) -> int:
        """How many of `total` instances must stay available beside brief work."""
        return floor_for(total, max_unavailable=self.brief) if self.brief is not None else self.floor(total)

    def words(self) -> str:
        """The rule as people write it."""
        brief = f", brief {self.brief} within {self.within_s / 60:g}m" if self.brief is not None else ""
        if self.min_ready is not None:
            return f"min_ready {self.min_ready}{brief}"
        return f"max_unavailable {self.max_unavailable}{brief}"


class Budgets:
    """All budgets; finds those of an instance.

    An instance that no budget names by its service comes under the default of that service, also where a budget by
    labels selects it.
    """

    def __init__(self, budgets: Iterable[Budget] = (), default: Amount | None = None) -> None:
        """`default`: max_unavailable of services without a budget."""
        self.by_name: dict[str, Budget] = {}
        self._by_service: dict[str, list[Budget]] = {}
        self._by_labels: list[Budget] = []
        self.default = default or Amount(10, is_percent=True)
        for budget in budgets:
            self.by_name[budget.name] = budget
            if budget.service:
                self._by_service.setdefault(budget.service, []).append(budget)
            else:
                self._by_labels.append(budget)

    def budget_named(self, name: str) -> Budget:
        """The budget, or the default of a service. Raises KeyError."""
        if name.startswith(DEFAULT_PREFIX):
            return Budget(name, name.removeprefix(DEFAULT_PREFIX), max_unavailable=self.default)
        return self.by_name[name]

    def names_selecting(self, instance: Instance) -> tuple[str, ...]:
        """Names of the budgets of an instance; never none."""
        by_service = [b.name for b in self._by_service.get(instance.service, ()) if b.selects(instance)]
        by_labels = [b.name for b in self._by_labels if b.selects(instance)]
        return (*(by_service or [DEFAULT_PREFIX + instance.service]), *by_labels)
