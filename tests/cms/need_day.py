"""Hours of a ledger in virtual time, with more repairs than fit, planned and brief work, groups, a window and a freeze.

The ledger is the real one; clients ask, poll, confirm, work and give back. tests/checker/leave.py judges what they did.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from cms.ledger.actions import ACTIONS
from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.calendar import Calendar, CalendarRule, Freeze, Window
from cms.ledger.decide import TaskChange, confirm, decide, poll
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.limits import DomainLimits, Site
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
OPEN: Final = (5.0 * HOUR_S, 6.0 * HOUR_S)  # when work on mail may begin: until half an hour before its window ends
MOST: Final = 2
_HOSTS: Final = 10
_MOST_ROUNDS: Final = 40
_MAIL: Final = ("m0", "m1", "m2", "m3")
_NEVER: Final = float("inf")
_QUIET_HOSTS: Final = ("d0", "d1")  # nothing else is done there
_BRIEF: Final = "temporary-unreachable"


@dataclass
class Client:
    """One task and its client: `confirm_s` after the ok it confirms; then it works for `work_s`.

    Attributes:
        opens, patience_s: it may wait for so long, from when its calendar opens.
    """

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
    group: str = ""
    opens: float = 0.0
    patience_s: float = PATIENCE_S

    @property
    def is_judged(self) -> bool:
        """It has the least need, and the day is long enough to say that it waits for too long."""
        return self.need >= Need.ROLLOUT and max(self.asked, self.opens) + self.patience_s <= HOURS * HOUR_S


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
        mail = Budget("mail", "mail", max_unavailable=Amount(MOST))
        self.book = TaskLedger.empty(Rules(), ["ams"], Budgets([budget, quiet, mail]))
        self.book.limit(DomainLimits(sites=dict.fromkeys(_MAIL, Site(project="mail"))))
        window = Window(frozenset(range(7)), int(OPEN[0] / 60), int(OPEN[1] / 60) + 30)
        mornings = CalendarRule("mornings", project="mail", windows=(window,), margin_s=1800.0)
        self.book.calendar = Calendar((CalendarRule("all", freezes=(Freeze(*FREEZE, "quiet"),)), mornings))
        self.book.picture.believe(["ams"])
        for number in range(_HOSTS):
            self.book.picture.put_instance(Instance(InstanceKey("ams", f"i{number}"), "web", f"h{number}"))
        for service, hosts in (("db", _QUIET_HOSTS), ("mail", _MAIL)):
            for host in hosts:
                self.book.picture.put_instance(Instance(InstanceKey("ams", f"{service}-{host}"), service, host))
        # Its ok comes before the freeze, its confirmation afterwards.
        late = Client("late", Need.PLANNED, _QUIET_HOSTS[1:], FREEZE[0] - 60, confirm_s=120.0, patience_s=2400.0)
        # It asks for more than there ever is, and has the turns of all that planned work that comes every half hour.
        hopeless = Client("hopeless", Need.PLANNED, self._hosts(MOST + 1), 290.0, patience_s=_NEVER)
        self.clients = [
            hopeless,
            *self._repairs(),
            *self._planned(),
            *self._brief(),
            *self._groups(),
            *self._mail(),
            late,
        ]

    # --- who comes ----------------------------------------------------------------------------------------------------

    def _repairs(self) -> Iterator[Client]:
        """Five per cent more than the floor lets through, for six hours."""
        at, number = 0.0, 0
        while (at := at + self.rng.expovariate(1.05 * MOST / 610)) < 6 * HOUR_S:
            number += 1
            yield Client(f"repair-{number}", Need.REPAIR, self._hosts(1), at)

    def _planned(self) -> Iterator[Client]:
        for number in range(12):
            need, slow = (Need.ROLLOUT if number % 3 == 2 else Need.PLANNED), 40.0 + 60 * (number % 2)
            yield Client(f"planned-{number}", need, self._hosts(2), 300 + 1800.0 * number, confirm_s=slow)

    def _brief(self) -> Iterator[Client]:
        """In bursts; one of them stays away for far too long."""
        for burst in range(6):
            for number in range(4):
                at, name = 1800 + 4000.0 * burst, f"brief-{burst}-{number}"
                work_s = 1.5 * HOUR_S if (burst, number) == (2, 0) else 300.0
                yield Client(name, Need.PLANNED, self._hosts(1), at, _BRIEF, 20.0, work_s)

    def _groups(self) -> Iterator[Client]:
        """Each is confirmed by its first client. One waits for the window of mail, and has hosts of other services."""
        for number in range(4):
            hosts = self._hosts(2)
            for part in range(2):
                name = f"group-{number}-{part}"
                at, confirm_s = 600 + 4500.0 * number, _NEVER if part else 20.0
                yield Client(name, Need.PLANNED, hosts[part : part + 1], at, confirm_s=confirm_s, group=f"g{number}")
        for part, hosts in enumerate((_MAIL[:1], self._hosts(2), _QUIET_HOSTS[:1])):
            confirm_s = _NEVER if part else 20.0
            one = Client(f"morning-{part}", Need.PLANNED, hosts, 400.0, confirm_s=confirm_s, group="morning")
            yield replace(one, opens=OPEN[0], patience_s=OPEN[1] - OPEN[0])

    def _mail(self) -> Iterator[Client]:
        """Before the window, in it, and in the half hour in which nothing begins any more."""
        for host, at in zip(_MAIL[1:], (2 * HOUR_S, OPEN[0] + 600, OPEN[1] + 300), strict=True):
            patience_s = 1200.0 if at < OPEN[1] else _NEVER
            yield Client(f"mail-{host}", Need.PLANNED, (host,), at, opens=OPEN[0], patience_s=patience_s)

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
            group=client.group,
            added_at=self.now,
            asked_at=self.now,
            polled_at=self.now,
            since=self.now,
        )
        self.book.put_task(task)

    def _work(self, client: Client, task: Task) -> None:
        assert client.began is not None
        if self.now - client.began >= client.work_s:
            self.works.append(self._work_of(client, self.now))
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

    def _work_of(self, client: Client, ended: float) -> leave.Work:
        assert client.began is not None
        is_brief, is_exempt = client.action == _BRIEF, client.need <= Need.URGENT
        return leave.Work(client.task, client.hosts, client.began, ended, is_brief, is_exempt, client.group)

    # --- judging ------------------------------------------------------------------------------------------------------

    def broken(self) -> list[Violation]:
        names = {f"i{number}": f"h{number}" for number in range(_HOSTS)}
        bound_s = ACTIONS[_BRIEF].bound_s
        service = leave.Service("web", names, frozenset(), _HOSTS - MOST, _HOSTS // 2, bound_s)
        mail = leave.Service("mail", {f"mail-{host}": host for host in _MAIL}, frozenset(), len(_MAIL) - MOST)
        under_way = [self._work_of(one, self.now + 1) for one in self.clients if one.began and not one.is_over]
        works = [*self.works, *under_way]
        on_mail = [work for work in works if not {*_MAIL}.isdisjoint(work.hosts)]
        return [
            *self.endless,
            *leave.check(works, [service, mail]),
            *leave.check_calendar(works, [FREEZE]),
            *leave.check_calendar(on_mail, [(0.0, OPEN[0]), (OPEN[1], HOURS * HOUR_S)]),
            *leave.check_groups(works, Counter(one.group for one in self.clients)),
            *(violation for one in self.clients if one.is_judged for violation in self._waits_beyond_bound(one)),
        ]

    def _waits_beyond_bound(self, one: Client) -> Iterator[Violation]:
        ask = leave.Ask(one.task, max(one.asked, one.opens), one.began, one.taken_back)
        return leave.check_asks([ask], self.now, one.patience_s)
