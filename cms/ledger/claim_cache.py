"""Claims of waiting units, kept from one decision to the next: only what a change has touched is recomputed.

It changes how long a decision takes, never what is decided: it may be emptied at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cms.ledger.claims import Claim, Obstacle, Round
from cms.ledger.instances import InstanceKey
from cms.ledger.picture import Changed
from cms.ledger.tasks import Task, UnitKey


@dataclass(slots=True)
class CachedClaim:
    """A unit as it was decided last.

    Attributes:
        in_the_way: the budgets that its claim did not fit into.
        has_taken: it was granted or kept its place, which left less to others.
    """

    tasks: Sequence[Task]
    claim: Claim
    in_the_way: list[Obstacle] = field(default_factory=list)
    has_taken: bool = False
    hosts: frozenset[str] = frozenset()
    instances: frozenset[InstanceKey] = frozenset()

    def is_touched(self, changed: Changed) -> bool:
        """Whether its claim may have changed."""
        return not (changed.hosts.isdisjoint(self.hosts) and changed.instances.isdisjoint(self.instances))


class ClaimCache:
    """Used by one decision after the other: `begin`, then for each unit in order `claim`, `budgets` and `took`."""

    def __init__(self) -> None:
        self._units: dict[UnitKey, CachedClaim] = {}
        self._overdue: frozenset[str] = frozenset()
        self._order: dict[UnitKey, int] = {}
        # Budgets whose answer to the units that follow may differ from their answer in the last decision.
        self._budgets: set[str] = set()

    def begin(self, waiting: Mapping[UnitKey, Sequence[Task]], changed: Changed, overdue: frozenset[str]) -> None:
        """Drop what is no longer valid. `changed`: since the previous decision."""
        if changed.everything or overdue != self._overdue:
            self._units.clear()
        self._overdue, self._budgets = overdue, set(changed.budgets)
        for unit, kept in list(self._units.items()):
            if waiting.get(unit) != kept.tasks or kept.is_touched(changed):
                self._budgets |= kept.claim.taken.keys()
                del self._units[unit]

    def arrange(self, units: Sequence[UnitKey]) -> None:
        """Set the order in which units are decided; after `begin`. If known units changed places, no answer is kept."""
        places = [self._order[unit] for unit in units if unit in self._order and unit in self._units]
        if places != sorted(places):
            for kept in self._units.values():
                kept.has_taken = False
                self._budgets |= kept.claim.taken.keys()
        self._order = {unit: place for place, unit in enumerate(units)}

    def claim(self, unit: UnitKey, tasks: Sequence[Task], working: Sequence[Task], make: Callable[[], Claim]) -> Claim:
        """Return the claim of a unit. `working`: those of its tasks that take something."""
        kept = self._units.get(unit)
        if kept is None:
            hosts = frozenset(host for task in working for host in task.hosts)
            instances = frozenset(key for task in working for key in task.instances)
            kept = self._units[unit] = CachedClaim(tasks, make(), hosts=hosts, instances=instances)
            self._budgets |= kept.claim.taken.keys()
        return kept.claim

    def budgets(self, unit: UnitKey, round_: Round) -> list[Obstacle]:
        """The budgets that a unit's claim does not fit into, given what the round granted before."""
        kept = self._units[unit]
        if not self._budgets.isdisjoint(kept.claim.taken):
            kept.in_the_way = round_.budgets(kept.claim)
        return kept.in_the_way

    def took(self, unit: UnitKey, *, has_taken: bool) -> None:
        """Record whether a unit has taken its claim."""
        kept = self._units[unit]
        if kept.has_taken != has_taken:
            kept.has_taken = has_taken
            self._budgets |= kept.claim.taken.keys()
