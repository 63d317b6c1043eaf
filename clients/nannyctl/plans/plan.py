"""A plan: what is to be done in one installation. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nannyctl.plans.actions import Action, Intent, Kind
from nannyctl.plans.held import Held


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions of one intent, by instance, in order of ids. `service` is for people."""

    service: str
    intent: Intent
    actions: tuple[Action, ...]

    @property
    def writes(self) -> list[Action]:
        """What is to be sent."""
        return [action for action in self.actions if action.writes]

    @property
    def refused(self) -> list[Action]:
        """What cannot be done."""
        return [action for action in self.actions if action.kind is Kind.REFUSED]

    @property
    def is_empty(self) -> bool:
        """Nothing would change and nothing is refused."""
        return all(action.kind is Kind.UNCHANGED for action in self.actions)

    def counts(self) -> dict[str, int]:
        """Actions by kind, all kinds."""
        found = Counter(action.kind.value for action in self.actions)
        return {kind.value: found[kind.value] for kind in Kind}


def make_plan(service: str, intent: Intent, ids: Iterable[str], holdings: Mapping[str, Held]) -> Plan:
    """The plan for these instances and for all that are held."""
    every = sorted({*ids, *holdings})
    return Plan(service, intent, tuple(intent.action(one, holdings.get(one)) for one in every))
