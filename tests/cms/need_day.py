"""Hours of a ledger in virtual time, with more repairs than fit, planned, brief and urgent work, and a freeze.

The ledger is the real one; clients ask, poll, confirm, work and give back. tests/checker/leave.py judges what they did.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from cms.ledger.actions import ACTIONS
from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.calendar import Calendar, CalendarRule, Freeze
from cms.ledger.decide import TaskChange, confirm, decide, poll
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.states import State, TaskEvent
from cms.ledger.tasks import Need, Task
from control.amounts import Amount
from tests.checker import leave
from tests.checker.violation import Violation

STEP_S: Final = 20.0
POLL_S: Final = 60.0
HOUR_S: Final = 3600.0
HOURS: Final = 8
PATIENCE_S: Final = 4 * HOUR_S
FREEZE: Final = (3.0 * HOUR_S, 3.5 * HOUR_S)
MOST: Final = 2
_HOSTS: Final = 10
_MOST_ROUNDS: Final = 40
_QUIET_HOST: Final = "db-host"  # nothing else is done there
_BRIEF: Final = "temporary-unreachable"


@dataclass
class Client:
    """One task and its client: `confirm_s` after the ok it confirms; then it works for `work_s`."""

    task: str
    need: Need
    hosts: tuple[str, ...]
    asked: float
    action: str = "redeploy"
    confirm_s: float = 20.0
    work_s: float = 600.0
    offered: float | None = None
    began: float | None = None
    is_over: bool = False
    taken_back: int = 0
    polled: float = 0.0


@dataclass
class NeedDay:
    """`live` is the day; `broken` what does not hold."""

    seed: int = 1
    now: float = 0.0
    works: list[leave.Work] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    endless: list[Violation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        budget = Budget(
            "web",
            "web",
            max_unavailable=Amount(MOST),
            brief=Amount(50, is_percent=True),
            within_s=ACTIONS[_BRIEF].away_s,
        )
        quiet = Budget("db", "db", max_unavailable=Amount(1))
        self.book = TaskLedger.empty(Rules(), ["ams"], Budgets([budget, quiet]))
        self.book.calendar = Calendar((CalendarRule("all", freezes=(Freeze(*FREEZE, "quiet"),)),))
        self.book.picture.believe(["ams"])
        for number in range(_HOSTS):
            self.book.picture.put_instance(Instance(InstanceKey("ams", f"i{number}"), "web", f"h{number}"))
        self.book.picture.put_instance(Instance(InstanceKey("ams", "db"), "db", _QUIET_HOST))
        # Its ok comes before the freeze, its confirmation afterwards.
        late = Client("late", Need.PLANNED, (_QUIET_HOST,), FREEZE[0] - 60, confirm_s=120.0)
        self.clients = [*self._repairs(), *self._planned(), *self._brief(), late]

    # --- who comes ----------------------------------------------------------------------------------------------------

    def _repairs(self) -> Iterator[Client]:
        """Five per cent more than the floor lets through, for six hours."""
        at, number = 0.0, 0
        while (at := at + self.rng.expovariate(1.05 * MOST / 610)) < 6 * HOUR_S:
            number += 1
            yield Client(f"repair-{number}", Need.REPAIR, self._hosts(1), at)

    def _planned(self) -> Iterator[Client]:
        for number in range(18):
            need, slow = (Need.ROLLOUT if number % 3 == 2 else Need.PLANNED), 40.0 + 60 * (number % 2)
            yield Client(f"planned-{number}", need, self._hosts(2), 300 + 1200.0 * number, confirm_s=slow)

    def _brief(self) -> Iterator[Client]:
        """In bursts; one of them stays away for far too long."""
        for burst in range(6):
            for number in range(4):
                at, name = 1800 + 4000.0 * burst, f"brief-{burst}-{number}"
                work_s = 1.5 * HOUR_S if (burst, number) == (2, 0) else 300.0
                yield Client(name, Need.PLANNED, self._hosts(1), at, _BRIEF, 20.0, work_s)

    def _hosts(self, count: int) -> tuple[str, ...]:
        return tuple(f"h{number}" for number in self.rng.sample(range(_HOSTS), count))

    # --- the day ------------------------------------------------------------------------------------------------------

    def live(self) -> NeedDay:
        for order, client in enumerate(sorted(self.clients, key=lambda one: one.asked)):
            client.task = f"{client.task}#{order}"
        while self.now < HOURS * HOUR_S and not self.endless:
            self.now += STEP_S
            for key in self.book.picture.instances:
                self.book.picture.record_report(key, self.now)
            for client in self.clients:
                if not client.is_over and client.asked <= self.now:
                    self._act(client)
            self._decide()
        return self

    def _decide(self) -> None:
        rounds = 0
        while changes := decide(self.book, self.now).changes:
            self._apply(changes)
            rounds += 1
            if rounds > _MOST_ROUNDS:
                endless = f"{changes[0].task_id}: offered and withdrawn in one moment, again and again"
                self.endless.append(leave.BOUNCE.broken(endless, *changes))
                return

    def _act(self, client: Client) -> None:
        task = self.book.tasks.get(client.task)
        if task is None:
            self._ask(client)
        elif client.began is not None:
            self._work(client, task)
        elif task.state is State.PROVISIONAL and client.offered is not None:
            if self.now - client.offered >= client.confirm_s:
                answer = confirm(self.book, task.unit, self.now)
                self._apply([] if isinstance(answer, str) else answer)
        elif self.now - client.polled >= POLL_S:
            client.polled = self.now
            self._apply(poll(self.book, task.id))

    def _ask(self, client: Client) -> None:
        order = int(client.task.rpartition("#")[2])
        task = Task(
            client.task,
            order,
            client.action,
            client.hosts,
            need=client.need,
            confirm=True,
            added_at=self.now,
            asked_at=self.now,
            polled_at=self.now,
            since=self.now,
        )
        self.book.put_task(task)

    def _work(self, client: Client, task: Task) -> None:
        assert client.began is not None
        if self.now - client.began >= client.work_s:
            is_brief, is_exempt = client.action == _BRIEF, client.need <= Need.URGENT
            self.works.append(leave.Work(task.id, client.hosts, client.began, self.now, is_brief, is_exempt))
            self.book.drop_task(task.id, self.now)
            client.is_over = True

    def _apply(self, changes: list[TaskChange]) -> None:
        by_task = {client.task: client for client in self.clients}
        for change in changes:
            self.events[str(change.event)] += 1
            self.book.put_task(self.book.tasks[change.task_id].after_event(change.event, self.now))
            client = by_task[change.task_id]
            if change.event is TaskEvent.OFFER:
                client.offered = self.now
            elif change.event is TaskEvent.WITHDRAW:
                client.taken_back += 1
            elif change.event in (TaskEvent.CONFIRM, TaskEvent.GRANT):
                client.began = self.now

    # --- judging ------------------------------------------------------------------------------------------------------

    def broken(self) -> list[Violation]:
        names = {f"i{number}": f"h{number}" for number in range(_HOSTS)}
        bound_s = ACTIONS[_BRIEF].bound_s
        service = leave.Service("web", names, frozenset(), _HOSTS - MOST, _HOSTS // 2, bound_s)
        under_way = [
            leave.Work(one.task, one.hosts, one.began, self.now + 1, one.action == _BRIEF, one.need <= Need.URGENT)
            for one in self.clients
            if one.began is not None and not one.is_over
        ]
        works = [*self.works, *under_way]
        asks = [
            leave.Ask(one.task, one.asked, one.began, one.taken_back)
            for one in self.clients
            if one.need >= Need.ROLLOUT and one.asked < 3 * HOUR_S
        ]
        return [
            *self.endless,
            *leave.check(works, [service]),
            *leave.check_calendar(works, [FREEZE]),
            *leave.check_asks(asks, self.now, PATIENCE_S),
        ]
