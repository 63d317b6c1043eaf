"""HQ's data and the holds on it, kept as sums: a decision over 100,000 instances looks at only a few."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from cms.ledger.actions import ACTIONS, REBOOT
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.hearing import Hearing
from cms.ledger.instances import Instance, InstanceKey, Standing
from cms.ledger.tally import BudgetTally, TallyPlace
from cms.ledger.tasks import Need, Task

_PLACES: Final = {
    Standing.AVAILABLE: TallyPlace.AVAILABLE,
    Standing.DOWN: TallyPlace.DOWN,
    Standing.UNCERTAIN: TallyPlace.UNCERTAIN,
}


class _Entered(NamedTuple):
    """How an instance was entered into the sums. `away_s`: for how long its holders take it away."""

    place: TallyPlace
    budgets: tuple[str, ...]
    is_lost: bool = False
    away_s: float = 0.0


@dataclass(slots=True)
class Changed:
    """Changes since the last decision.

    Attributes:
        budgets: those whose sums have changed.
        hosts, instances: claims on these may have changed.
        everything: all of the above may have changed.
    """

    budgets: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    instances: set[InstanceKey] = field(default_factory=set)
    everything: bool = True

    def instance(self, key: InstanceKey, host: str, budgets: Iterable[str]) -> None:
        """The entry of an instance on a host has changed in these budgets."""
        self.instances.add(key)
        self.hosts.add(host)
        self.budgets.update(budgets)


class InstanceIndex:
    """Instances, holds and sums.

    Attributes:
        certain: locations that are known to be up to date.
        unrecorded: instances whose present state a record of the ledger may lack; None: nobody records.
        unverified: instances that tasks hold by their own keys, not by a host, and that were deleted or are not there:
            the one with the key now may be another.
    """

    def __init__(self, budgets: Budgets, patience_s: float, reboot_away_s: float) -> None:
        self.budgets, self.hearing, self._reboot_away_s = budgets, Hearing(patience_s), reboot_away_s
        self.instances: dict[InstanceKey, Instance] = {}
        self.certain: frozenset[str] = frozenset()
        self.tallies: dict[str, BudgetTally] = {}
        self.unrecorded: set[InstanceKey] | None = None
        self.unverified: set[InstanceKey] = set()
        self._changed = Changed()
        self._on: dict[str, set[InstanceKey]] = {}
        self._entered: dict[InstanceKey, _Entered] = {}
        self._needs: dict[str, Need] = {}  # of each task that holds something
        self._away_s: dict[str, float] = {}  # likewise: how long it takes a host away
        self._host_holders: dict[str, set[str]] = {}
        self._own_holders: dict[InstanceKey, set[str]] = {}

    # --- what HQ says -------------------------------------------------------------------------------------------------

    def put_instance(self, instance: Instance) -> None:
        """Update an instance."""
        before = self.instances.get(instance.key)
        if before is not None and before.host != instance.host:
            self._on[before.host].discard(instance.key)
            self._changed.hosts |= {before.host, instance.host}
        self.instances[instance.key] = instance
        self._on.setdefault(instance.host, set()).add(instance.key)
        self._assess(instance)

    def drop_instance(self, key: InstanceKey) -> None:
        """Remove an instance, if it is known."""
        instance = self.instances.pop(key, None)
        if instance is not None:
            self._leave(instance)
            self._on[instance.host].discard(key)
            self.hearing.forget(key)
            if self.unrecorded is not None:
                self.unrecorded.add(key)
            if self._own_holders.get(key):
                self.unverified.add(key)

    def record_report(self, key: InstanceKey, at: float, interval_s: float = 0.0) -> None:
        """HQ received an instance's report at `at` or later; `interval_s`: its own report interval, if any."""
        if key in self.instances and self.hearing.record_report(key, at, interval_s):
            self._assess(self.instances[key])

    def suspend(self, key: InstanceKey, is_suspended: bool) -> None:
        """Note whether HQ has suspended an instance's node: HQ does not say then when it was heard from."""
        if key in self.instances and self.hearing.suspend(key, is_suspended):
            self._changed.instance(key, self.instances[key].host, self._entered[key].budgets)

    def forget_hearing(self, key: InstanceKey) -> None:
        """Forget when an instance was last heard from."""
        self.hearing.forget(key)
        if key in self.instances:
            self._assess(self.instances[key])

    def uncertain_ids(self, location: str, most: int) -> list[str]:
        """Ids of a location's instances that might be available once heard from; at most `most`."""
        found = (key for tally in self.tallies.values() for key in tally.apart[TallyPlace.UNCERTAIN])
        return list(islice((key.id for key in found if key.location == location), most))

    def believe(self, certain: Iterable[str]) -> None:
        """Set the locations that are up to date."""
        before, self.certain = self.certain, frozenset(certain)
        changed = before ^ self.certain
        if changed:
            self._changed.everything = True
            for instance in [i for i in self.instances.values() if i.key.location in changed]:
                self._assess(instance)

    def age(self, now: float) -> None:
        """Time has passed: instances that were silent for too long are no longer counted on."""
        for key in self.hearing.too_old(now):
            if key in self.instances:
                self._assess(self.instances[key])

    # --- what is held -------------------------------------------------------------------------------------------------

    def hold(self, task: Task) -> None:
        """Take the task's hosts and instances out of the budgets."""
        self._needs[task.id], self._away_s[task.id] = task.need, self.action_away_s(task.action)
        for host in task.hosts:
            self._host_holders.setdefault(host, set()).add(task.id)
        for key in task.instances:
            self._own_holders.setdefault(key, set()).add(task.id)
            if key not in self.instances:
                self.unverified.add(key)
        self._assess_all(self.disrupted_by(task))

    def release(self, task: Task) -> None:
        """Give the task's hosts and instances back."""
        self._needs.pop(task.id, None)
        self._away_s.pop(task.id, None)
        for host in task.hosts:
            self._host_holders.get(host, set()).discard(task.id)
        for key in task.instances:
            self._own_holders.get(key, set()).discard(task.id)
            if not self._own_holders.get(key):
                self.unverified.discard(key)
        self._assess_all(self.disrupted_by(task))

    def work_ended(self, task: Task, now: float) -> None:
        """Note that a task's work ended: reports of its instances from before `now` prove nothing."""
        self.hearing.work_ended(task.hosts, task.instances, now)
        self._assess_all(self.disrupted_by(task))

    def holders(self, instance: Instance) -> set[str]:
        """Ids of the tasks that hold an instance, by its host or by its own key."""
        none: set[str] = set()
        by_host = self._host_holders.get(instance.host, none)
        return by_host | self._own_holders.get(instance.key, none)

    def verifiable(self) -> dict[InstanceKey, set[str]]:
        """Unverified instances in locations that are up to date, each with the ids of the tasks that hold it."""
        return {key: self._own_holders[key] for key in self.unverified if key.location in self.certain}

    def action_away_s(self, action: str) -> float:
        """For how long work of this kind takes a host away, when all goes well; for a reboot, as set."""
        return self._reboot_away_s if action == REBOOT else ACTIONS[action].away_s

    def away_s(self, instance: Instance, but: Collection[str] = ()) -> float:
        """For how long the longest work that holds an instance takes it away; 0: none does. `but`: tasks left out."""
        return max((self._away_s[holder] for holder in self.holders(instance) if holder not in but), default=0.0)

    # --- budgets ------------------------------------------------------------------------------------------------------

    def rule(self, budgets: Budgets, changed: Collection[Budget]) -> None:
        """Put new budgets into force; `changed`: old and new versions of those that differ."""
        services = {budget.service for budget in changed}
        concerned = [i for i in self.instances.values() if "" in services or i.service in services]
        for instance in concerned:
            self._leave(instance)
        self.budgets = budgets
        for budget in changed:
            self.tallies.pop(budget.name, None)
        for instance in concerned:
            self._assess(instance)

    # --- looking ------------------------------------------------------------------------------------------------------

    def instances_on(self, host: str) -> Collection[InstanceKey]:
        """The instances on a host."""
        return self._on.get(host, ())

    def disrupted_by(self, task: Task) -> set[InstanceKey]:
        """Return the instances that a task would take down at present."""
        keys = {key for key in task.instances if key in self.instances}
        return keys.union(*(self.instances_on(host) for host in task.hosts))

    def standing(self, instance: Instance) -> tuple[Standing, str]:
        """Whether it can be counted on, whoever holds it, and why not."""
        if instance.key.location not in self.certain:
            return Standing.UNCERTAIN, f"location {instance.key.location} is silent"
        if not instance.is_ready:
            return Standing.DOWN, instance.reason or "not ready"
        doubt = self.hearing.doubt(instance)
        return (Standing.UNCERTAIN, doubt) if doubt else (Standing.AVAILABLE, "")

    def budget_entry(self, key: InstanceKey) -> tuple[TallyPlace, tuple[str, ...]]:
        """Where an instance stands, and in which budgets; none: it does not count."""
        entered = self._entered[key]
        return entered.place, entered.budgets

    def is_lost(self, instance: Instance) -> bool:
        """Whether HQ surely hears no agent of it and only repairs, if any, hold it: a roll-out need not count on it."""
        is_known = instance.key.location in self.certain
        is_gone = is_known and instance.is_silent and not instance.is_ready
        return is_gone and all(self._needs[holder] is Need.REPAIR for holder in self.holders(instance))

    def changes(self) -> Changed:
        """Take the changes since the last call."""
        changed, self._changed = self._changed, Changed(everything=False)
        return changed

    # --- sums ---------------------------------------------------------------------------------------------------------

    def _assess_all(self, keys: Iterable[InstanceKey]) -> None:
        for key in keys:
            self._assess(self.instances[key])

    def _assess(self, instance: Instance) -> None:
        """Enter an instance into the sums as it stands now."""
        if self.unrecorded is not None:
            self.unrecorded.add(instance.key)
        place = TallyPlace.HELD if self.holders(instance) else _PLACES[self.standing(instance)[0]]
        names = self.budgets.names_selecting(instance) if instance.counts else ()
        entered = _Entered(place, names, self.is_lost(instance), self.away_s(instance))
        if self._entered.get(instance.key) == entered:
            return
        self._leave(instance)
        self._entered[instance.key] = entered
        self._changed.instance(instance.key, instance.host, entered.budgets)
        for name in entered.budgets:
            tally = self.tallies.get(name)
            if tally is None:
                tally = self.tallies[name] = BudgetTally(self.budgets.budget_named(name))
            tally.add(instance.key, place, is_lost=entered.is_lost)

    def _leave(self, instance: Instance) -> None:
        place, names, is_lost, _ = self._entered.pop(instance.key, _Entered(TallyPlace.DOWN, ()))
        self._changed.instance(instance.key, instance.host, names)
        for name in names:
            tally = self.tallies.get(name)
            if tally is not None:
                tally.remove(instance.key, place, is_lost=is_lost)
