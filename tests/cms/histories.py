"""Random small clouds, three clients and everything that goes wrong, step by step over a ledger in memory.

Each decision is compared with the oracle's. When the trouble ends, everything that can be granted must be.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.claim_cache import ClaimCache
from cms.ledger.decide import TaskChange, confirm, decide, poll, withdrawals
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.limits import DomainLimit, DomainLimits, Site
from cms.ledger.states import State, TaskEvent
from cms.ledger.tasks import Task
from control.amounts import Amount
from tests.cms import oracle
from tests.cms.oracle import Facts

LOCATIONS = ("ams", "fra")
RULES = Rules()
IMPATIENT = Rules(age_s=120.0, turn_s=60.0)  # tasks age within a history
_NOWHERE = InstanceKey("ams", "nowhere")
_ACTIONS = ("reboot", "reboot", "reboot", "redeploy", "deactivate", "prepare", "temporary-unreachable")


@dataclass
class Client:
    """Who asks for leave. One that has died does nothing any more; its orders remain."""

    name: str
    is_dead: bool = False
    confirms: bool = False


@dataclass
class History:
    """One run. `run` raises AssertionError with the seed's number where a promise is broken.

    Attributes:
        has_rollouts: some tasks are roll-outs, and some instances are lost.
    """

    seed: int
    has_rollouts: bool = False
    rules: Rules = RULES
    steps: int = 60
    now: float = 1000.0
    grants: int = 0
    events: Counter[str] = field(default_factory=Counter)
    orders: int = 0

    def __post_init__(self) -> None:
        rng = self.rng = random.Random(self.seed)
        self.lot = random.Random(f"roll-outs of {self.seed}")  # apart: the others' histories stay as they are
        self.out_lot = random.Random(f"leave-out of {self.seed}")
        self.heard: dict[InstanceKey, float] = {}
        self.work_ended: list[tuple[tuple[str, ...], tuple[InstanceKey, ...], float]] = []
        self.stuck: dict[tuple[str, str, str], float] = {}
        self.book = TaskLedger.empty(self.rules, LOCATIONS)
        self.clients = [Client(f"client-{n}", confirms=rng.random() < 0.5) for n in range(3)]
        self.hosts = [f"h{n}" for n in range(rng.randint(2, 8))]
        self.sites = {h: Site(rack=f"r{n // 2}") for n, h in enumerate(self.hosts) if rng.random() < 0.9}
        self.limits: list[DomainLimit] = []
        self.budgets: list[Budget] = []
        self.book.picture.believe(LOCATIONS)
        for n in range(rng.randint(1, 14)):
            self._put(self._random_instance(InstanceKey(rng.choice(LOCATIONS), f"i{n}")))
        for _ in range(rng.randint(0, 2)):
            self._change_budget()
        if rng.random() < 0.5:
            self._change_limits()

    # --- the course of things -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Trouble, then calm."""
        for _ in range(self.steps):
            self._step()
            self._decide()
        self._calm_down()
        waiting = [t for t in self.book.tasks.values() if t.state in (State.WAITING, State.LAPSED)]
        assert not [t for t in waiting if not self._is_impossible(t)], f"seed {self.seed}: {waiting} wait for nothing"

    def _step(self) -> None:
        self.now += self.rng.choice((0.5, 1.0, 3.0, 10.0, 60.0))
        for action, weight in (
            (self._client_acts, 10),
            (self._report, 12),
            (self._break_something, 2),
            (self._repair_something, 3),
            (self._change_world, 1),
            (self._change_rules, 0.7),
        ):
            if self.rng.random() < weight / 14:
                action()

    def _decide(self) -> None:
        """Decide until nothing changes; each time the oracle must agree."""
        for _ in range(40):
            facts = self._facts()
            facts.stuck_since = self.stuck
            expected = oracle.expected(facts)
            changes = self._decide_once()
            decided = {(c.task_id, str(c.event)) for c in changes}
            assert decided == expected, f"seed {self.seed} at {self.now}: {decided} is not {expected}"
            if not changes:
                return
            self._check_floors(facts, changes)
            self._apply(changes)
        raise AssertionError(f"seed {self.seed}: decisions do not come to an end")

    def _decide_once(self) -> list[TaskChange]:
        """What is kept between decisions changes none of them."""
        decision, kept = decide(self.book, self.now), self.book.claims
        self.book.claims = ClaimCache()
        anew = decide(self.book, self.now)
        self.book.claims = kept
        assert decision.changes == anew.changes, f"seed {self.seed} at {self.now}: the cache decides"
        assert decision.waiting == anew.waiting, f"seed {self.seed} at {self.now}: the cache says why"
        return decision.changes

    def _check_floors(self, facts: Facts, changes: list[TaskChange]) -> None:
        """No grant of one round, all together, takes a floor with it."""
        granted = [self.book.tasks[c.task_id] for c in changes if c.event in (TaskEvent.GRANT, TaskEvent.OFFER)]
        working = [t for t in granted if t.action != "prepare"]
        for allowed in {(t.max_failures, t.leave_out) for t in working}:
            unit = [t for t in working if (t.max_failures, t.leave_out) == allowed]
            assert not facts.breaks(unit, facts.all_touched(unit)), f"seed {self.seed}"

    def _apply(self, changes: list[TaskChange]) -> None:
        for change in changes:
            self.events[str(change.event)] += 1
            self.grants += change.event in (TaskEvent.GRANT, TaskEvent.OFFER)
            self.book.put_task(self.book.tasks[change.task_id].after_event(change.event, self.now))

    # --- clients ------------------------------------------------------------------------------------------------------

    def _client_acts(self) -> None:
        client = self.rng.choice(self.clients)
        if client.is_dead:
            return
        own = [t for t in self.book.tasks.values() if t.owner == client.name]
        chance = self.rng.random()
        if not own or (chance < 0.4 and len(self.book.tasks) < 8):
            self._ask(client)
        elif chance < 0.7:
            self._apply(poll(self.book, self.rng.choice(own).id))
            self._confirm(self.rng.choice(own))
        elif chance < 0.97:
            self._end(self.rng.choice(own))
        else:
            client.is_dead = True

    def _ask(self, client: Client) -> None:
        rng = self.rng
        if self.has_rollouts and self.lot.random() < 0.4:
            self._ask_for_rollout(client)
            return
        group = rng.choice(("", "", "g1", "g2"))
        for _ in range(rng.randint(1, 3) if group else 1):
            self.orders += 1
            hosts = tuple(rng.sample(self.hosts, rng.randint(1, min(3, len(self.hosts)))))
            instances: tuple[InstanceKey, ...] = ()
            if rng.random() < 0.2 and self.book.picture.instances:
                hosts, instances = (), (rng.choice(list(self.book.picture.instances)),)
            self.book.put_task(
                Task(
                    f"t{self.orders}",
                    self.orders,
                    rng.choice(_ACTIONS),
                    hosts=hosts,
                    instances=instances,
                    owner=client.name,
                    group=group,
                    confirm=client.confirms,
                    added_at=self.now,
                    asked_at=self.now,
                    polled_at=self.now,
                )
            )

    def _ask_for_rollout(self, client: Client) -> None:
        keys = sorted(self.book.picture.instances)
        self.orders += 1
        self.book.put_task(
            Task(
                f"t{self.orders}",
                self.orders,
                "roll-out",
                instances=tuple(self.lot.sample(keys, min(len(keys), self.lot.randint(1, 3)))) or (_NOWHERE,),
                owner=client.name,
                confirm=client.confirms,
                added_at=self.now,
                asked_at=self.now,
                polled_at=self.now,
                max_failures=self.lot.randint(0, 2),
                leave_out=frozenset(self.out_lot.choice(((), (), ("fra",), LOCATIONS))),
            )
        )

    def _confirm(self, task: Task) -> None:
        if task.state is not State.PROVISIONAL:
            return
        self.book.picture.age(self.now)
        facts = self._facts()
        unit = [t for t in self.book.members(task.unit) if t.state is State.PROVISIONAL]
        answer = confirm(self.book, task.unit, self.now)
        if isinstance(answer, str):
            assert facts.closed or facts.certain != facts.locations, f"seed {self.seed}: {answer}"
            return
        if any(change.event is TaskEvent.CONFIRM for change in answer):
            gone = {c.task_id for c in withdrawals(self.book, self.now)}
            later = [t for u in oracle.units(facts, "provisional") for t in u if t.order > unit[0].order]
            without = replace(facts, tasks=[t for t in facts.tasks if t not in unit and t.id not in gone])
            broken = oracle.still_breaks(facts, without, unit, [t for t in later if t.id not in gone])
            assert not broken, f"seed {self.seed}: confirmed below a floor"
        self._apply(answer)

    def _end(self, task: Task) -> None:
        if task.state is State.GRANTED and task.action not in ("prepare", "roll-out"):
            self.work_ended.append((task.hosts, task.instances, self.now))
        self.book.drop_task(task.id, self.now)

    # --- the cloud ----------------------------------------------------------------------------------------------------

    def _random_instance(self, key: InstanceKey) -> Instance:
        rng = self.rng
        is_ready = rng.choice((True, True, True, True, False, None))
        return Instance(
            key,
            rng.choice(("web", "web", "db", "lonely")),
            rng.choice(self.hosts),
            is_wanted=rng.random() < 0.95,
            is_ready=is_ready,
            was_ready=is_ready is not None,
            cluster=key.location,
            labels={"tier": rng.choice("ab")},
        )

    def _put(self, instance: Instance) -> None:
        self.book.picture.put_instance(instance)
        self._hear(instance)

    def _hear(self, instance: Instance) -> None:
        self.heard[instance.key] = self.now
        self.book.picture.record_report(instance.key, self.now)

    def _some(self) -> Instance | None:
        instances = list(self.book.picture.instances.values())
        return self.rng.choice(instances) if instances else None

    def _report(self) -> None:
        for instance in list(self.book.picture.instances.values()):
            if self.rng.random() < 0.8:
                self._hear(instance)

    def _break_something(self) -> None:
        if self.rng.random() < 0.2:
            self.book.picture.believe(self.rng.sample(LOCATIONS, self.rng.randint(0, 1)))
        elif (some := self._some()) is not None:
            is_silent = self.has_rollouts and self.lot.random() < 0.7
            self.book.picture.put_instance(replace(some, is_ready=False, is_silent=is_silent))

    def _repair_something(self) -> None:
        self.book.picture.believe(LOCATIONS)
        if (some := self._some()) is not None:
            self._put(replace(some, is_ready=True, was_ready=True, is_silent=False))

    def _change_world(self) -> None:
        some = self._some()
        if some is None or self.rng.random() < 0.4:
            self._put(self._random_instance(InstanceKey(self.rng.choice(LOCATIONS), f"n{self.rng.randint(0, 5)}")))
        elif self.rng.random() < 0.6:
            self.book.picture.put_instance(replace(some, host=self.rng.choice(self.hosts)))
        else:
            self.book.picture.drop_instance(some.key)
            self.heard.pop(some.key, None)

    def _change_rules(self) -> None:
        chance = self.rng.random()
        if chance < 0.5:
            self._change_budget()
        elif chance < 0.8:
            self._change_limits()
        else:
            self.book.closed = "" if self.book.closed else "frozen"

    def _change_budget(self) -> None:
        rng = self.rng
        name = rng.choice(("b1", "b2"))
        changed = [b for b in self.budgets if b.name == name]
        self.budgets = [b for b in self.budgets if b.name != name]
        if not changed or rng.random() < 0.7:
            amount = rng.choice(
                (Amount(0), Amount(1), Amount(2), Amount(50, is_percent=True), Amount(90, is_percent=True))
            )
            by_service = rng.random() < 0.7
            budget = Budget(
                name,
                rng.choice(("web", "db")) if by_service else "",
                {} if by_service else {"tier": "a"},
                frozenset(rng.sample(LOCATIONS, 1)) if rng.random() < 0.2 else frozenset(),
                **{rng.choice(("min_ready", "max_unavailable")): amount},  # type: ignore[arg-type]
                rejects=rng.random() < 0.2,
            )
            self.budgets.append(budget)
            changed.append(budget)
        self.book.rule(Budgets(self.budgets), changed)

    def _change_limits(self) -> None:
        kinds = self.rng.sample(("host", "rack"), self.rng.randint(0, 2))
        self.limits = [DomainLimit(kind, kind, self.rng.randint(1, 3)) for kind in kinds]
        self.book.limit(DomainLimits(self.limits, self.sites))

    def _facts(self) -> Facts:
        return Facts(
            self.now,
            self.rules,
            list(self.book.picture.instances.values()),
            self.heard,
            self.work_ended,
            set(self.book.picture.certain),
            set(LOCATIONS),
            list(self.book.tasks.values()),
            self.budgets,
            self.limits,
            self.sites,
            bool(self.book.closed),
        )

    # --- the end ------------------------------------------------------------------------------------------------------

    def _calm_down(self) -> None:
        """Everything recovers, clients end what they were granted, operators end what the dead left behind."""
        self.book.closed = ""
        for _ in range(60):
            if not self.book.tasks:
                return
            self.now += 30.0
            self.book.picture.believe(LOCATIONS)
            for instance in list(self.book.picture.instances.values()):
                self._put(replace(instance, is_ready=True, was_ready=True, is_silent=False))
            self._decide()
            for task in list(self.book.tasks.values()):
                self._finish(task)

    def _finish(self, task: Task) -> None:
        owner = next(c for c in self.clients if c.name == task.owner)
        if task.id not in self.book.tasks:
            return
        if task.state is State.GRANTED or owner.is_dead:
            if not owner.is_dead or task.state is State.GRANTED or self.now - task.added_at > 600:
                self._end(task)
            return
        self._apply(poll(self.book, task.id))
        self._confirm(self.book.tasks[task.id])

    def _is_impossible(self, task: Task) -> bool:
        """It would break a floor or a limit even on a perfect day."""
        unit = [t for t in self.book.members(task.unit) if t.state is not State.REJECTED]
        facts = replace(self._facts(), tasks=[])
        hosts = {h for t in unit for h in t.hosts}
        over = [limit for limit in self.limits if len(oracle.domains(facts, limit, hosts)) > limit.most]
        return bool(facts.breaks(unit, facts.all_touched(unit)) or over)
