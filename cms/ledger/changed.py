"""What changed since the last decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cms.ledger.instances import InstanceKey


@dataclass(slots=True)
class Changed:
    """Attributes:
    budgets: their sums.
    hosts, instances: what a claim on them comes to.
    everything: all of these may have.
    """

    budgets: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    instances: set[InstanceKey] = field(default_factory=set)
    everything: bool = True

    def instance(self, key: InstanceKey, host: str, budgets: Iterable[str]) -> None:
        """An instance on a host is entered otherwise than before into these budgets."""
        self.instances.add(key)
        self.hosts.add(host)
        self.budgets.update(budgets)
