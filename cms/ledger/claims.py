"""Claims: the instances that a unit of tasks would take, and whether they fit beside the claims of others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from cms.ledger.instances import InstanceKey, Standing
from cms.ledger.limits import DomainLimits
from cms.ledger.picture import InstanceIndex
from cms.ledger.tally import BudgetTally, TallyPlace
from cms.ledger.tasks import Task

_NOBODY: Final[frozenset[InstanceKey]] = frozenset()


class WaitCause(StrEnum):
    """Why a unit waits. The least hopeful first."""

    IMPOSSIBLE = "impossible"  # it would not fit if everything were ready and nothing were held
    BROKEN = "broken"  # something broken, uncertain or overdue
    CLOSED = "closed"  # a window is closed, whatever else is in the way
    HOLDS = "holds"  # work of others, which ends


class Obstacle(NamedTuple):
    """Why a unit does not fit.

    Attributes:
        kind: "budget", "limit", "location", "rights" or "window".
        name: of the budget, limit, location or window; of rights: why the owner may not.
        needed: a budget's floor, or a limit's maximum of domains.
        left: of a budget, how many would be left available; of a limit, how many domains would be under work.
        text: of a window, why it is closed.
        retry_s: of a window, in how many seconds it opens.
        left_out: of a budget, how many instances are not counted on: lost ones, and those of locations left out.
    """

    kind: str
    name: str
    wait: WaitCause
    needed: int = 0
    left: int = 0
    text: str = ""
    retry_s: float = 0.0
    left_out: int = 0


@dataclass(slots=True)
class Claim:
    """The instances that a unit takes.

    Attributes:
        taken: by budget, instances that are not certainly down and that nobody else holds; an empty set for a budget
            that must keep its floor only because this work makes others' brief work longer.
        held: by budget, what others hold.
        away_s: by budget, for how long the work takes hosts away.
        ordinary: budgets that allow more for brief work, which this is not.
        all: by budget, how many it takes in total.
        domains: by limit.
        silent: locations that it depends on and that are not up to date.
        services, projects: of what it takes, ready or not.
        max_failures: at most so many lost instances of a budget are taken off its total.
        leave_out: locations in which it takes nothing; their unavailable instances are taken off the totals, too.
    """

    taken: dict[str, set[InstanceKey]] = field(default_factory=dict)
    held: dict[str, set[InstanceKey]] = field(default_factory=dict)
    away_s: dict[str, float] = field(default_factory=dict)
    ordinary: frozenset[str] = frozenset()
    all: dict[str, int] = field(default_factory=dict)
    domains: dict[str, set[str]] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    max_failures: int = 0
    leave_out: frozenset[str] = frozenset()


def claim_of(tasks: Sequence[Task], picture: InstanceIndex, limits: DomainLimits, locations: Collection[str]) -> Claim:
    """Return the claim of tasks that hold nothing yet. `locations`: all there are."""
    claim = Claim(max_failures=min((task.max_failures for task in tasks), default=0))
    hosts = {host for task in tasks for host in task.hosts}
    keys = _away_s(tasks, picture)
    left_out = frozenset.intersection(*(task.leave_out for task in tasks)) if tasks else frozenset()
    claim.leave_out = left_out - {key.location for key in keys}  # there the total would jump with each hold
    for key, away_s in keys.items():
        place, budgets = picture.budget_entry(key)
        for name in budgets:
            claim.away_s[name] = max(claim.away_s.get(name, 0.0), away_s)
            claim.all[name] = claim.all.get(name, 0) + 1
            if place is TallyPlace.HELD:
                claim.held.setdefault(name, set()).add(key)
            elif place is not TallyPlace.DOWN:
                claim.taken.setdefault(name, set()).add(key)
    _take_ordinary(claim, picture)
    for name, limit in limits.by_name.items():
        domains = limits.domains(limit, hosts)
        if domains:
            claim.domains[name] = domains
    # An unknown host may be in any location; an instance, known or not, is in the one that its key names.
    needed = {key.location for key in keys} | {key.location for task in tasks for key in task.instances}
    if any(not picture.instances_on(host) for host in hosts):
        needed |= set(locations)
    claim.silent = frozenset(needed - picture.certain)
    claim.services = frozenset(picture.instances[key].service for key in keys)
    claim.projects = frozenset(limits.sites[host].project for host in hosts if host in limits.sites)
    return claim


def _take_ordinary(claim: Claim, picture: InstanceIndex) -> None:
    """Note where the claim is not brief: the ordinary floor has to hold there, even if it only prolongs brief work."""
    touched = claim.taken.keys() | claim.held.keys()
    claim.ordinary = frozenset(name for name in touched if not _is_indifferent(picture.tallies[name], claim))
    for name in claim.ordinary & claim.held.keys():
        if lengthens_brief_work(picture, name, claim.held[name]):
            claim.taken.setdefault(name, set())


def _away_s(tasks: Sequence[Task], picture: InstanceIndex) -> dict[InstanceKey, float]:
    """The instances that tasks take down, and for how long."""
    keys: dict[InstanceKey, float] = {}
    for task in tasks:
        away_s = picture.action_away_s(task.action)
        for key in picture.disrupted_by(task):
            keys[key] = max(keys.get(key, 0.0), away_s)
    return keys


def is_brief(tally: BudgetTally, claim: Claim) -> bool:
    """Whether this work is brief for the budget, which allows more for it if nothing is in the way."""
    budget = tally.budget
    return budget.brief is not None and claim.away_s.get(budget.name, float("inf")) <= budget.within_s


def _is_indifferent(tally: BudgetTally, claim: Claim) -> bool:
    """Whether it does not matter to others in the budget whether this work is brief."""
    return tally.budget.brief is None or is_brief(tally, claim)


def lengthens_brief_work(
    picture: InstanceIndex, name: str, held: Collection[InstanceKey], but: Collection[str] = ()
) -> bool:
    """Whether only brief work holds one of these instances: longer work beside it keeps the instance away longer."""
    within_s = picture.tallies[name].budget.within_s
    return any(0 < picture.away_s(picture.instances[key], but) <= within_s for key in held)


def counted_total(tally: BudgetTally, claim: Claim, picture: InstanceIndex) -> int:
    """Return the total that shares and max_unavailable refer to: all instances that this work has to count on.

    What is available, or held by others, counts wherever it is.
    """
    apart = tally.apart[TallyPlace.DOWN] | tally.apart[TallyPlace.UNCERTAIN] if claim.leave_out else _NOBODY
    away = [key for key in apart if key.location in claim.leave_out]
    lost = sum(picture.is_lost(picture.instances[key]) for key in away)
    return tally.total_without_lost(claim.max_failures + lost) - (len(away) - lost)


def ordinary_floor(tally: BudgetTally, claim: Claim, picture: InstanceIndex) -> int:
    """Return how many must stay beside work that is not brief."""
    if claim.leave_out or (claim.max_failures and tally.lost):
        return tally.budget.floor(counted_total(tally, claim, picture))
    return tally.floor


def floor_for_claim(tally: BudgetTally, claim: Claim, picture: InstanceIndex, overdue: Set[str]) -> int:
    """Return how many must stay when a claim is granted; beside an overdue hold brief work gets the ordinary floor."""
    floor = ordinary_floor(tally, claim, picture)
    if not is_brief(tally, claim):
        return floor
    held = tally.apart[TallyPlace.HELD] if overdue else ()
    is_late = any(not overdue.isdisjoint(picture.holders(picture.instances[key])) for key in held)
    return floor if is_late else min(floor, tally.budget.brief_floor(tally.total))


class Round:
    """Claims granted, or reserved for earlier units, since the sums were computed."""

    def __init__(self, picture: InstanceIndex, limits: DomainLimits, overdue: frozenset[str]) -> None:
        """`overdue`: ids of tasks whose work should have ended."""
        self._picture, self._limits, self._overdue = picture, limits, overdue
        self._taken: dict[str, list[set[InstanceKey]]] = {}  # merged on demand: most budgets are never needed
        self._ordinary: set[str] = set()  # budgets of which ordinary work ahead needs the ordinary floor
        self._under_work = {name: set(busy) for name, busy in limits.busy.items()}
        self._stuck = {name: self._held_too_long(busy) for name, busy in limits.busy.items()}

    def expect(self, claim: Claim) -> None:
        """Keep the ordinary floor for an ordinary claim ahead: brief work below that floor could starve the claim."""
        self._ordinary |= claim.ordinary

    def floor(self, name: str, claim: Claim) -> int:
        """Return how many of a budget must stay when a claim is granted."""
        tally = self._picture.tallies[name]
        if name in self._ordinary:
            return ordinary_floor(tally, claim, self._picture)
        return floor_for_claim(tally, claim, self._picture, self._overdue)

    def take(self, claim: Claim) -> None:
        """Count a claim, granted or reserved."""
        if claim.ordinary:
            self.expect(claim)
        taken = self._taken
        for name, keys in claim.taken.items():
            parts = taken.get(name)
            if parts is None:
                taken[name] = [keys]
            else:
                parts.append(keys)
        for name, domains in claim.domains.items():
            self._under_work[name].update(domains)

    def obstacles(self, claim: Claim) -> list[Obstacle]:
        """Why the claim does not fit; empty: it fits."""
        return [*self.locations(claim), *self.budgets(claim), *self.limits(claim)]

    def locations(self, claim: Claim) -> list[Obstacle]:
        """The locations that are not known well enough for the claim."""
        return [Obstacle("location", name, WaitCause.BROKEN) for name in sorted(claim.silent)]

    def budgets(self, claim: Claim) -> list[Obstacle]:
        """The budgets that the claim does not fit into."""
        found = []
        for name, keys in claim.taken.items():
            tally = self._picture.tallies[name]
            taken = self._taken_of(name)
            left, floor = tally.available - len(taken) - len(keys - taken), self.floor(name, claim)
            if left < floor:
                wait = self._budget_wait(tally, claim, floor)
                left_out = tally.total - counted_total(tally, claim, self._picture)
                found.append(Obstacle("budget", name, wait, floor, left, left_out=left_out))
        return found

    def limits(self, claim: Claim) -> list[Obstacle]:
        """The domain limits that the claim does not fit into."""
        found = []
        for name, domains in claim.domains.items():
            obstacle = self._limit_obstacle(name, domains)
            if obstacle is not None:
                found.append(obstacle)
        return found

    def fits_without(self, claim: Claim, withdrawn: Set[str], freed: Mapping[str, Set[InstanceKey]]) -> bool:
        """Whether the claim would fit if these tasks held nothing. `freed`: what would be available then, by budget.

        If so, what they hold is added to `claim.taken`.
        """
        taken: dict[str, set[InstanceKey]] = {}
        for name in claim.all:
            shared = {key for key in claim.held.get(name, ()) if self._would_be_free(key, withdrawn)}
            taken[name] = claim.taken.get(name, set()) | shared
            tally, before = self._picture.tallies[name], self._taken_of(name)
            left = tally.available + len(freed.get(name, ())) - len(before | taken[name])
            if (taken[name] or name in claim.taken) and left < self.floor(name, claim):
                return False
        for name, domains in claim.domains.items():
            busy = self._limits.busy[name]
            staying = {domain for domain, holders in busy.items() if not holders <= withdrawn}
            under_work = staying | (self._under_work[name] - busy.keys())
            if not domains <= staying and len(under_work | domains) > self._limits.by_name[name].most:
                return False
        claim.taken = {name: keys for name, keys in taken.items() if keys}
        return True

    def _would_be_free(self, key: InstanceKey, withdrawn: Set[str]) -> bool:
        instance = self._picture.instances[key]
        is_down = self._picture.standing(instance)[0] is Standing.DOWN
        return not is_down and self._picture.holders(instance) <= withdrawn

    def _taken_of(self, name: str) -> Set[InstanceKey]:
        parts = self._taken.get(name)
        if parts is None:
            return _NOBODY
        if len(parts) > 1:
            parts[:] = [set().union(*parts)]
        return parts[0]

    def _budget_wait(self, tally: BudgetTally, claim: Claim, floor: int) -> WaitCause:
        name = tally.budget.name
        if tally.total - claim.all[name] < floor:
            return WaitCause.IMPOSSIBLE
        ending: Set[InstanceKey] = tally.apart[TallyPlace.HELD]
        if self._overdue:
            ending = {key for key in ending if not self._is_overdue(key)}
        left = tally.available + len(ending) - len(claim.taken[name]) - len(ending & claim.held.get(name, _NOBODY))
        return WaitCause.HOLDS if left >= floor else WaitCause.BROKEN

    def _is_overdue(self, key: InstanceKey) -> bool:
        return not self._overdue.isdisjoint(self._picture.holders(self._picture.instances[key]))

    def _held_too_long(self, busy: Mapping[str, set[str]]) -> set[str]:
        if not self._overdue:
            return set()
        return {domain for domain, holders in busy.items() if not self._overdue.isdisjoint(holders)}

    def _limit_obstacle(self, name: str, domains: set[str]) -> Obstacle | None:
        limit, under_work = self._limits.by_name[name], self._under_work[name]
        would_be = len(under_work) + len(domains - under_work)
        if would_be <= limit.most or domains <= self._limits.busy[name].keys():
            return None
        if len(domains) > limit.most:
            return Obstacle("limit", name, WaitCause.IMPOSSIBLE, limit.most, would_be)
        stuck = self._stuck[name]
        wait = WaitCause.BROKEN if stuck and len(domains | stuck) > limit.most else WaitCause.HOLDS
        return Obstacle("limit", name, wait, limit.most, would_be)
