"""The same decisions by the plainest code there is: every sum is made anew from lists. Nothing of `cms.ledger` decides
here; only its records are read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from cms.ledger.book import Rules
from cms.ledger.budgets import Budget
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.limits import DomainLimit, Site
from cms.ledger.tasks import Task
from control.amounts import Amount

Stuck = dict[tuple[str, str, str], float]


@dataclass
class Facts:
    """All there is to know, as lists."""

    now: float
    rules: Rules
    instances: list[Instance]
    heard: dict[InstanceKey, float]
    work_ended: list[tuple[tuple[str, ...], tuple[InstanceKey, ...], float]]
    certain: set[str]
    locations: set[str]
    tasks: list[Task]
    budgets: list[Budget]
    limits: list[DomainLimit]
    sites: dict[str, Site]
    closed: bool
    stuck_since: Stuck = field(default_factory=dict)
    _members: dict[str, list[Instance]] = field(default_factory=dict)  # replace() keeps it: only tasks are replaced
    _holders: dict[InstanceKey, list[Task]] = field(default_factory=dict, init=False)

    # --- instances ----------------------------------------------------------------------------------------------------

    def holders(self, instance: Instance) -> list[Task]:
        if instance.key not in self._holders:  # facts do not change
            holding = [t for t in self.tasks if is_holding(t)]
            self._holders[instance.key] = [
                t for t in holding if instance.host in t.hosts or instance.key in t.instances
            ]
        return self._holders[instance.key]

    def is_down(self, instance: Instance) -> bool:
        return instance.key.location in self.certain and not instance.is_ready

    def is_good(self, instance: Instance) -> bool:
        """Known to be ready, whoever holds it."""
        heard = self.heard.get(instance.key)
        if instance.key.location not in self.certain or not instance.is_ready or heard is None:
            return False
        ends = [at for hosts, keys, at in self.work_ended if instance.host in hosts or instance.key in keys]
        # To a tick, as the ledger keeps it: early rather than late.
        return not any(heard <= end for end in ends) and int(heard / 0.1) >= (self.now - self.rules.patience_s) / 0.1

    def members(self, budget: Budget) -> list[Instance]:
        if budget.name not in self._members:
            counting = [i for i in self.instances if i.is_wanted and i.was_ready]
            self._members[budget.name] = [i for i in counting if budget.name in self.names(i)]
        return self._members[budget.name]

    def names(self, instance: Instance) -> list[str]:
        named = [b.name for b in self.budgets if b.service == instance.service and matches(b, instance)]
        return (named or [f"default:{instance.service}"]) + [
            b.name for b in self.budgets if not b.service and matches(b, instance)
        ]

    def all_budgets(self) -> list[Budget]:
        services = {i.service for i in self.instances}
        ten = Amount(10, is_percent=True)
        return self.budgets + [Budget(f"default:{s}", s, max_unavailable=ten) for s in sorted(services)]

    # --- floors -------------------------------------------------------------------------------------------------------

    def left(self, budget: Budget, out: Iterable[Instance]) -> int:
        """How many could be counted on if these went down, too; a doubtful one that goes counts as a good one."""
        out = list(out)
        free = [i for i in self.members(budget) if not self.holders(i)]
        stay = [i for i in free if self.is_good(i) and i not in out]
        doubtful = [i for i in free if not self.is_good(i) and not self.is_down(i) and i in out]
        return len(stay) - len(doubtful)

    def is_lost(self, instance: Instance) -> bool:
        """Whether nobody is heard there, and nobody holds it."""
        return instance.is_silent and self.is_down(instance) and not self.holders(instance)

    def floor(self, budget: Budget, unit: list[Task]) -> int:
        """What the unit must leave.

        A roll-out need not count on lost instances, up to so many, nor on what is not good where it leaves out.
        """
        out = {name for name in self.locations if unit and all(name in t.leave_out for t in unit)}
        out -= {i.key.location for i in self.all_touched(unit)}
        away = [
            i for i in self.members(budget) if i.key.location in out and not self.is_good(i) and not self.holders(i)
        ]
        lost = len([i for i in self.members(budget) if self.is_lost(i) and i not in away])
        total = len(self.members(budget)) - len(away) - min([lost, *(t.max_failures for t in unit)])
        if budget.min_ready is not None:
            part = budget.min_ready
            return math.ceil(total * part.value / 100) if part.is_percent else part.value
        most = budget.max_unavailable
        assert most is not None
        if not most.is_percent:
            return max(0, total - most.value)
        return total if not most.value else max(0, total - max(1, math.floor(total * most.value / 100)))

    def breaks(self, unit: list[Task], out: list[Instance]) -> list[Budget]:
        """The budgets that break if `out` goes down, of those in which the unit takes anything."""
        takes = [i for i in self.all_touched(unit) if not self.holders(i) and not self.is_down(i)]
        return [
            budget
            for budget in self.all_budgets()
            if [i for i in takes if i in self.members(budget)] and self.left(budget, out) < self.floor(budget, unit)
        ]

    def all_touched(self, unit: list[Task]) -> list[Instance]:
        return [i for i in self.instances if any(i.host in t.hosts or i.key in t.instances for t in unit)]

    def overdue(self) -> list[Task]:
        return [t for t in self.tasks if is_holding(t) and t.overdue_at <= self.now]


def is_holding(task: Task) -> bool:
    return task.state in ("provisional", "granted") and task.action != "prepare"


def matches(budget: Budget, instance: Instance) -> bool:
    if budget.clusters and instance.cluster not in budget.clusters:
        return False
    return all(instance.labels.get(k) == v for k, v in budget.labels.items())


def domains(facts: Facts, limit: DomainLimit, hosts: Iterable[str]) -> set[str]:
    found = set()
    for host in hosts:
        site = facts.sites.get(host, Site())
        if any(getattr(site, k) != v for k, v in limit.within.items()):
            continue
        found.add({"host": host, "rack": site.rack, "switch": site.switch, "dc": site.dc}[limit.kind] or f"host {host}")
    return found


def expected(facts: Facts) -> set[tuple[str, str]]:
    """What must happen now: (task, event)."""
    lapsing = {
        (t.id, "lapse")
        for unit in units(facts, "provisional")
        if all(t.polled_at + facts.rules.lapse_s <= facts.now for t in unit)
        for t in unit
    }
    leaving = lapsing or _withdrawn(facts)
    return leaving | _of_waiting(facts, may_grant=not leaving and not facts.closed)


def units(facts: Facts, state: str) -> list[list[Task]]:
    found: list[list[Task]] = []
    for task in sorted((t for t in facts.tasks if t.state == state), key=lambda t: t.order):
        for unit in found:
            if task.group and unit[0].group == task.group and unit[0].owner == task.owner:
                unit.append(task)
                break
        else:
            found.append([task])
    return found


def _withdrawn(facts: Facts) -> set[tuple[str, str]]:
    """Without each unit, could it be offered? If not it goes, the latest first."""
    gone: set[tuple[str, str]] = set()
    left, later = facts, list[Task]()
    for unit in reversed(units(facts, "provisional")):
        if still_breaks(facts, _without(left, unit), unit, later):
            gone |= {(t.id, "withdraw") for t in unit}
            left = _without(left, unit)
        else:
            later = later + unit
    return gone


def still_breaks(facts: Facts, without: Facts, unit: list[Task], later: list[Task]) -> bool:
    """A unit is charged for all that nobody before it holds; what those after it hold is no help to it.

    `facts`: with all holds, which say what is lost.
    """
    before = _without(without, later)
    takes = [i for i in before.all_touched(unit) if not before.holders(i) and not before.is_down(i)]
    for budget in before.all_budgets():
        members = before.members(budget)
        charged = [i for i in takes if i in members]
        stay = [i for i in members if before.is_good(i) and i not in takes and not without.holders(i)]
        doubtful = [i for i in charged if not before.is_good(i)]
        if charged and len(stay) - len(doubtful) < facts.floor(budget, unit):
            return True
    return False


def _without(facts: Facts, unit: list[Task]) -> Facts:
    return replace(facts, tasks=[t for t in facts.tasks if t not in unit])


def _of_waiting(facts: Facts, *, may_grant: bool) -> set[tuple[str, str]]:
    events: set[tuple[str, str]] = set()
    ahead: list[list[Task]] = []
    stuck: Stuck = {}
    for everything in _in_order(facts, units(facts, "waiting")):
        events |= {(t.id, "grant") for t in everything if t.action == "prepare"}
        unit = [t for t in everything if t.action != "prepare"]
        if unit:
            happens, keeps_place = _of_unit(facts, unit, ahead, stuck, may_grant=may_grant)
            events |= {(t.id, happens or ("offer" if t.confirm else "grant")) for t in unit if happens is not None}
            ahead += [unit] * keeps_place
    facts.stuck_since.clear()
    facts.stuck_since.update(stuck)
    return events


def _in_order(facts: Facts, waiting: list[list[Task]]) -> list[list[Task]]:
    """Let those go first whose turn it is: one in each budget, and one in each limit of those that need no budget."""
    first: list[list[Task]] = []
    taken: set[str] = set()
    for everything in waiting:
        unit = [t for t in everything if t.action != "prepare"]
        if unit and _is_its_time(facts, everything):
            names = _queues(facts, unit)
            if not names & taken and _may_use_turn(facts, unit):
                first.append(everything)
                taken |= names
    return first + [unit for unit in waiting if unit not in first]


def _is_its_time(facts: Facts, unit: list[Task]) -> bool:
    aged_s = facts.now - min(t.asked_at for t in unit) - facts.rules.age_s
    return aged_s >= 0 and aged_s % (2 * facts.rules.turn_s) < facts.rules.turn_s


def _may_use_turn(facts: Facts, unit: list[Task]) -> bool:
    waits, _ = _waits_for(facts, unit, [])
    lets_pass = "broken" in waits and facts.now - facts.stuck_since.get(_key(unit), facts.now) >= facts.rules.pass_s
    return "impossible" not in waits and not lets_pass


def _key(unit: list[Task]) -> tuple[str, str, str]:
    return unit[0].owner, unit[0].group, "" if unit[0].group else unit[0].id


def _queues(facts: Facts, unit: list[Task]) -> set[str]:
    takes = [i for i in facts.all_touched(unit) if not facts.holders(i) and not facts.is_down(i)]
    budgets = {b.name for b in facts.all_budgets() if any(i in facts.members(b) for i in takes)}
    return budgets or {
        limit.name for limit in facts.limits if domains(facts, limit, [h for t in unit for h in t.hosts])
    }


def _of_unit(
    facts: Facts, unit: list[Task], ahead: list[list[Task]], stuck: Stuck, *, may_grant: bool
) -> tuple[str | None, bool]:
    """What happens ("": it is granted; None: nothing), and whether those behind must leave it its place."""
    key = _key(unit)
    stuck_before = {key: facts.stuck_since[key]} if key in facts.stuck_since else {}
    if unit[0].group and facts.now < _settled_at(facts, unit):
        stuck.update(stuck_before)
        return None, True
    waits, rejects = _waits_for(facts, unit, ahead)
    if not waits and may_grant:
        return "", True
    if not waits or "impossible" in waits:
        stuck.update(stuck_before)
        return ("reject" if rejects else None), not waits
    if "broken" in waits:
        stuck[key] = facts.stuck_since.get(key, facts.now)
        return None, facts.now - stuck[key] < facts.rules.pass_s
    return None, True


def _settled_at(facts: Facts, unit: list[Task]) -> float:
    added = [t.added_at for t in unit]
    return min(max(added) + facts.rules.settle_s, min(added) + facts.rules.settle_most_s)


def _waits_for(facts: Facts, unit: list[Task], ahead: list[list[Task]]) -> tuple[set[str], bool]:
    waits, rejects = set(), False
    touched = facts.all_touched(unit)
    hosts = {h for t in unit for h in t.hosts}
    needed = {i.key.location for i in touched} | {k.location for t in unit for k in t.instances}
    if any(all(i.host != h for i in facts.instances) for h in hosts):
        needed |= facts.locations
    if needed - facts.certain:
        waits.add("broken")
    others = [i for u in ahead for i in facts.all_touched(u) if not facts.is_down(i) and not facts.holders(i)]
    takes = [i for i in touched if not facts.is_down(i) and not facts.holders(i)]
    for budget in facts.breaks(unit, others + takes):
        wait = _budget_wait(facts, budget, unit, touched)
        waits.add(wait)
        rejects = rejects or (wait == "impossible" and budget.rejects)
    for limit in facts.limits:
        waits |= _limit_wait(facts, limit, hosts, [t for u in ahead for t in u])
    return waits, rejects


def _budget_wait(facts: Facts, budget: Budget, unit: list[Task], touched: list[Instance]) -> str:
    members, floor = facts.members(budget), facts.floor(budget, unit)
    if len([m for m in members if m not in touched]) < floor:
        return "impossible"
    late = facts.overdue()
    hoped = 0
    for member in members:
        holders = facts.holders(member)
        if holders:
            hoped += member not in touched and not any(h in late for h in holders)
        elif facts.is_good(member):
            hoped += member not in touched
        elif not facts.is_down(member):
            hoped -= member in touched
    return "holds" if hoped >= floor else "broken"


def _limit_wait(facts: Facts, limit: DomainLimit, hosts: set[str], ahead: list[Task]) -> set[str]:
    own = domains(facts, limit, hosts)
    busy = {d for t in facts.tasks if is_holding(t) for d in domains(facts, limit, t.hosts)}
    kept = {d for t in ahead for d in domains(facts, limit, t.hosts)}
    if not own or own <= busy or len(own | busy | kept) <= limit.most:
        return set()
    if len(own) > limit.most:
        return {"impossible"}
    late = {d for t in facts.overdue() for d in domains(facts, limit, t.hosts)}
    return {"broken"} if len(own | late) > limit.most else {"holds"}
