"""A small model of the ledger's order of need: classes of outage, ageing, preemption, groups and windows, in counts.

Made before the code, to find the rules. `RULES` names each of them; a run without one of them breaks a promise
(test_need_model.py). Instances have no names here and HQ is always known: that is the business of oracle.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

REPAIR, URGENT, ROLLOUT, PLANNED = range(4)

RULES = frozenset(
    {
        "need orders the queue",  # repair, urgent, roll-out, planned; then creation
        "who waited long takes turns with repairs",
        "who waited long is not taken back",
        "a turn ends after ten minutes",
        "waiting time outlives the task",  # asked again by the same issuer for the same hosts
        "taken back only if the repair is granted at once",
        "taken back by whole groups",
        "brief work leaves the ordinary floor to those before it",
        "a hold past its bound ends the brief allowance",
        "a closed window reserves nothing",
        "an ok ends with its window",
        "an earlier wait keeps its place",
    }
)

STEP_S, AGE_S, TURN_S, LAPSE_S, PASS_S, BOUND_S = 20, 3600, 600, 120, 600, 3600


class PromiseBroken(AssertionError):
    """A promise of the ledger does not hold."""


@dataclass
class Service:
    """Instances, and how many must stay for ordinary and for brief work. `down` ones are held by nobody."""

    total: int
    floor: int
    brief_floor: int
    down: int = 0


@dataclass
class Unit:
    """One task, or one of a group.

    Attributes:
        takes: instances, by service.
        confirm_s: how long its client takes to confirm; None: it never does, and lapses.
        again_s: a waiting task is deleted and asked for anew after this time.
        window: (period, begin, end) in seconds: open when begin <= now % period < end.
    """

    name: str
    need: int
    takes: dict[str, int]
    asked_at: float = 0.0
    work_s: float = 600.0
    confirm_s: float | None = 20.0
    is_brief: bool = False
    group: str = ""
    again_s: float | None = None
    window: tuple[int, int, int] | None = None
    state: str = "later"
    since: float = 0.0
    first_asked: float = 0.0
    order: float = 0.0
    stuck_since: float | None = None
    takes_back: int = 0

    def is_open(self, now: float) -> bool:
        return self.window is None or self.window[1] <= now % self.window[0] < self.window[2]

    def has_aged(self, now: float) -> bool:
        return now - self.first_asked >= AGE_S

    def has_turn(self, now: float, rules: frozenset[str]) -> bool:
        """Every other ten minutes of its age it goes before repairs."""
        if not self.has_aged(now) or "who waited long takes turns with repairs" not in rules:
            return False
        return "a turn ends after ten minutes" not in rules or int((now - self.first_asked - AGE_S) / TURN_S) % 2 == 0


@dataclass
class Model:
    """The ledger, its clients and time."""

    services: dict[str, Service]
    units: list[Unit]
    rules: frozenset[str] = RULES
    now: float = 0.0
    events: Counter[str] = field(default_factory=Counter)
    live: list[Unit] = field(default_factory=list)  # those that a step may concern

    # --- sums ---------------------------------------------------------------------------------------------------------

    def available(self, name: str) -> int:
        held = sum(unit.takes.get(name, 0) for unit in self.live if unit.state in ("offered", "granted"))
        return self.services[name].total - self.services[name].down - held

    def floor(self, name: str, group: Sequence[Unit], reserved: set[str]) -> int:
        """`reserved`: services of which ordinary work ahead keeps what it needs."""
        service = self.services[name]
        if not all(unit.is_brief for unit in group if name in unit.takes):
            return service.floor
        late = [u for u in self.live if u.state == "granted" and u.is_brief and self.now - u.since >= BOUND_S]
        if "a hold past its bound ends the brief allowance" in self.rules and any(name in u.takes for u in late):
            return service.floor
        return service.floor if name in reserved else service.brief_floor

    def fits(self, group: Sequence[Unit], taken: Counter[str], reserved: set[str], freed: Counter[str]) -> bool:
        takes = _sum(group)
        return all(
            self.available(name) + freed[name] - taken[name] - count >= self.floor(name, group, reserved)
            for name, count in takes.items()
        )

    # --- deciding -----------------------------------------------------------------------------------------------------

    def groups(self, *states: str) -> list[list[Unit]]:
        found: dict[str, list[Unit]] = {}
        for unit in sorted((u for u in self.live if u.state in states), key=lambda u: u.order):
            found.setdefault(unit.group or unit.name, []).append(unit)
        return [*found.values()]

    def rank(self, group: Sequence[Unit]) -> tuple[int, float]:
        need = group[0].need if "need orders the queue" in self.rules else PLANNED
        return (-1 if group[0].has_turn(self.now, self.rules) else need, group[0].order)

    def decide(self) -> None:
        self._withdraw()
        taken: Counter[str] = Counter()
        reserved = {n for u in self.live if u.state == "offered" and not u.is_brief for n in u.takes}
        if "brief work leaves the ordinary floor to those before it" not in self.rules:
            reserved = set()
        turns: set[str] = set()
        for group in sorted(self.groups("waiting"), key=self.rank):
            has_turn = group[0].has_turn(self.now, self.rules)
            if has_turn and not turns.isdisjoint(_sum(group)):
                continue  # one at a time in each service
            keeps_place = self._decide_group(group, taken, reserved)
            if keeps_place:
                turns |= set(_sum(group)) if has_turn else set()
                taken += _sum(group)
            is_ahead = keeps_place or group[0].state == "offered"
            if is_ahead and "brief work leaves the ordinary floor to those before it" in self.rules:
                reserved |= {n for u in group if not u.is_brief for n in u.takes}

    def _decide_group(self, group: list[Unit], taken: Counter[str], reserved: set[str]) -> bool:
        """Whether those behind must leave it what it takes."""
        if not all(unit.is_open(self.now) for unit in group):
            return "a closed window reserves nothing" not in self.rules
        if self.fits(group, taken, reserved, Counter()):
            self._offer(group)
            return False  # counted by available() from now on
        if group[0].need == REPAIR and self._take_back(group, taken, reserved):
            return False
        if "an earlier wait keeps its place" not in self.rules:
            return False
        hoped = all(
            self.services[n].total - self.services[n].down - c >= self.services[n].floor for n, c in _sum(group).items()
        )
        group[0].stuck_since = None if hoped else (group[0].stuck_since or self.now)
        return group[0].stuck_since is None or self.now - group[0].stuck_since < PASS_S

    def _withdraw(self) -> None:
        for group in reversed(self.groups("offered")):
            is_over = "an ok ends with its window" in self.rules and not all(u.is_open(self.now) for u in group)
            if is_over or not self.fits(group, Counter(), set(), _sum(group)):
                self._back_to_waiting(group)

    def _take_back(self, group: list[Unit], taken: Counter[str], reserved: set[str]) -> bool:
        """Give a repair what provisional work holds: the latest first, and only if that is enough."""
        freed: Counter[str] = Counter()
        backs: list[Unit] = []
        candidates = [g for g in self.groups("offered") if g[0].need in (ROLLOUT, PLANNED)]
        for other in reversed(candidates):
            if "who waited long is not taken back" in self.rules and other[0].has_aged(self.now):
                continue
            if set(_sum(other)).isdisjoint(_sum(group)):
                continue
            for part in [other] if "taken back by whole groups" in self.rules else [[unit] for unit in other]:
                backs, freed = backs + part, freed + _sum(part)
                if self.fits(group, taken, reserved - set(_sum(backs)), freed):
                    self._back_to_waiting(backs)
                    self._offer(group)
                    return True
        if backs and "taken back only if the repair is granted at once" not in self.rules:
            self._back_to_waiting(backs)
        return False

    def _offer(self, group: Sequence[Unit]) -> None:
        for unit in group:
            unit.state, unit.since, unit.stuck_since = "offered", self.now, None
            self.events["offer"] += 1

    def _back_to_waiting(self, group: Sequence[Unit]) -> None:
        for unit in group:
            unit.state, unit.since, unit.takes_back = "waiting", self.now, unit.takes_back + 1
            self.events["withdraw"] += 1

    # --- clients ------------------------------------------------------------------------------------------------------

    def run(self, until_s: float, each: Callable[[Model], None] = lambda _: None) -> Model:
        while self.now < until_s:
            self.now += STEP_S
            each(self)
            self.live = [u for u in self.units if u.state != "done" and u.asked_at <= self.now]
            for unit in self.live:
                self._client(unit)
            if any(unit.state in ("waiting", "offered") for unit in self.live):
                self.decide()
                self._check()
        return self

    def _client(self, unit: Unit) -> None:
        age = self.now - unit.since
        if unit.state == "later" and unit.asked_at <= self.now:
            unit.state, unit.since, unit.order, unit.first_asked = "waiting", self.now, self.now, self.now
        elif unit.state == "waiting" and unit.again_s is not None and age >= unit.again_s:
            unit.since = unit.order = self.now
            if "waiting time outlives the task" not in self.rules:
                unit.first_asked = self.now
        elif unit.state == "offered" and unit.confirm_s is None and age >= LAPSE_S:
            unit.state, unit.since = "lapsed", self.now
        elif unit.state == "lapsed" and age >= 60:
            unit.state, unit.since = "waiting", self.now
        elif unit.state == "offered" and unit.confirm_s is not None and age >= unit.confirm_s:
            self._confirm(unit)
        elif unit.state == "granted" and age >= unit.work_s:
            unit.state, unit.since = "done", self.now

    def _confirm(self, unit: Unit) -> None:
        group = next(g for g in self.groups("offered") if unit in g)
        if any(self.now - one.since < (one.confirm_s or 0) for one in group):
            return
        self._withdraw()
        if unit.state != "offered":
            return
        if not all(one.is_open(self.now) for one in group):
            raise PromiseBroken(f"{unit.name} is confirmed at {self.now} outside its window")
        for name in _sum(group):
            if self.available(name) < self.floor(name, group, set()):
                raise PromiseBroken(f"{unit.name} is confirmed at {self.now} below the floor of {name}")
        for one in group:
            one.state, one.since = "granted", self.now
            self.events["confirm"] += 1

    def _check(self) -> None:
        for name in self.services:
            if self.available(name) < 0:
                raise PromiseBroken(f"more than all of {name} are held at {self.now}")
        by_group: dict[str, set[str]] = {}
        for unit in self.live:
            by_group.setdefault(unit.group or unit.name, set()).add(unit.state)
            if unit.takes_back > 20:
                raise PromiseBroken(f"the ok of {unit.name} was taken back {unit.takes_back} times")
        for group, states in by_group.items():
            if len(states) > 1 and states & {"offered", "granted"} and states & {"waiting", "later"}:
                raise PromiseBroken(f"half of group {group} holds at {self.now}: {sorted(states)}")

    def expect(self, unit: Unit, within_s: float) -> None:
        """It was confirmed in time after it was asked for."""
        began = unit.since - (unit.work_s if unit.state == "done" else 0)
        if unit.state not in ("granted", "done") or began - unit.asked_at > within_s:
            raise PromiseBroken(
                f"{unit.name}, asked for at {unit.asked_at:.0f}, is {unit.state} since {unit.since:.0f}"
            )


def _sum(units: Sequence[Unit]) -> Counter[str]:
    total: Counter[str] = Counter()
    for unit in units:
        total.update(unit.takes)
    return total


def stream(first: Unit, every_s: float, until_s: float) -> Iterator[Unit]:
    """The same again and again."""
    for number in range(int((until_s - first.asked_at) / every_s)):
        yield replace(
            first, name=f"{first.name}-{number}", takes=dict(first.takes), asked_at=first.asked_at + number * every_s
        )
