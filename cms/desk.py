"""The ledger at one process: kept in step with the store and with HQ; decides while this process acts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from cms.calendar_rules import rule_of
from cms.hqview.locations import HqFollower
from cms.journal import LedgerJournal
from cms.ledger.book import TaskLedger
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.calendar import Calendar, CalendarRule
from cms.ledger.decide import Decision, confirm, decide
from cms.ledger.decide import TaskChange as Happens
from cms.ledger.instances import InstanceKey
from cms.ledger.limits import DomainLimits
from cms.ledger.states import State, TaskEvent
from cms.ledger.tasks import Task
from cms.moves import MOST_AT_ONCE, count_fitting, first_part, next_part
from cms.orders import CmsOrders
from cms.permits import CmsAccessChecks
from cms.records import ALL, BUDGET, DECLARED, ENDED, LEDGER, TASK, WINDOWS, budget_of, move, rule_for, task_of
from cmspb.storage.v1 import ledger_pb2
from control import Change, Controller, RecordChanged, Unreadable
from serving.errors import InvalidRequest
from serving.rights.patterns import IdentityPattern

log = logging.getLogger(__name__)

_TICK_S: Final = 1.0
_KEPT_S: Final = 0.5
_GATHER_S: Final = 0.004  # changes within this time are decided together, as one decision may take longer than that
_MOVED_S: Final = 0.1  # changes in HQ are collected for this long


@dataclass(frozen=True, slots=True)
class CmsSettings:
    """The CMS's settings.

    Attributes:
        issuers: those that must declare their running work in a new epoch (no others may declare any); each with
            the identities that may speak for it.
        healers: issuers whose tasks may be repairs, each with its identities.
        rollout_issuers: issuers whose tasks may be roll-backs, each with its identities.
        fence_s: how long to wait for a location to prove that everything it acknowledged is known here.
        first_decision_s: how long the answer to a new task waits for the task's first decision.
    """

    issuers: Mapping[str, Collection[IdentityPattern]] = field(default_factory=dict)
    fence_s: float = 1.0
    healers: Mapping[str, Collection[IdentityPattern]] = field(default_factory=dict)
    rollout_issuers: Mapping[str, Collection[IdentityPattern]] = field(default_factory=dict)
    first_decision_s: float = 0.7

    def bound_issuers(self) -> dict[str, list[IdentityPattern]]:
        """All issuers that only some identities may speak for, each with these."""
        bound: dict[str, list[IdentityPattern]] = {}
        for names in (self.issuers, self.healers, self.rollout_issuers):
            for name, patterns in names.items():
                bound.setdefault(name, []).extend(patterns)
        return bound


class CmsController:
    """Reads of the ledger at any process; decisions at the acting one.

    Attributes:
        decision: the latest one made here, stored or not.
        decisions, grants: how many were stored here; for metrics.
    """

    def __init__(self, controller: Controller, book: TaskLedger, locations: HqFollower, settings: CmsSettings) -> None:
        self.controller, self.book, self.locations, self.settings = controller, book, locations, settings
        self.clock = controller.clock
        self.tasks, self.budgets = controller.records(TASK), controller.records(BUDGET)
        self.ended, self.declared = controller.records(ENDED), controller.records(DECLARED)
        self.windows = controller.records(WINDOWS)
        self._ledger = controller.records(LEDGER)
        self._reaches = self.reaches()
        self.orders = CmsOrders(controller, self._reaches)
        self.journal = LedgerJournal(book)
        book.barred = lambda task: self.journal.note_barred(task, self._missing_right(task))
        self._deciding = controller.reconcile("decide", self._decide, lambda: [ALL], workers=1)
        self._polls: dict[str, int] = {}
        self._confirming: dict[str, None] = {}  # tasks with a requested confirmation, oldest first
        self._strange: dict[str, str] = {}  # records that this version does not understand, and why
        self._budgets: dict[str, Budget] = {}
        self._rules: dict[str, CalendarRule] = {}
        self._epoch = ""
        self._decided_at = self._passed_at = float("-inf")
        self._is_outdated = True
        self._moved = asyncio.Event()
        self.decision = decide(book, self.clock.now())
        self.decisions = self.grants = 0
        self.tasks.listen(self._task_changed)
        self.budgets.listen(self._budget_changed)
        self.windows.listen(self._windows_changed)
        self.ended.listen(self._work_ended)
        locations.moved = lambda: self._deciding.trigger(ALL, _MOVED_S)

    # --- reading ------------------------------------------------------------------------------------------------------

    def reaches(self) -> CmsAccessChecks:
        """Return the checks of what calls reach, by this ledger."""
        return CmsAccessChecks(self.book, self.settings.bound_issuers(), self.tasks)

    def _missing_right(self, task: Task) -> str:
        """Why the owner of a stored task may no longer take down what the task names; empty: it may."""
        record = self.tasks.get(task.id)
        if record is None or not record.access:
            return ""
        check = self._reaches.check_task
        refusal = self.controller.rights.refusal(
            record.access, rule_for(record), lambda access: check(record, access, is_new=False)
        )
        return str(refusal) if refusal is not None else ""

    def why_closed(self) -> str:
        """Why nothing is granted; empty: granting is open."""
        frozen = self.controller.frozen
        if not self.controller.is_open:
            missing = self.missing_issuers()
            words = f"; not declared yet: {', '.join(missing)}" if missing else ""
            epoch = self.controller.epoch
            return (
                f"the CMS's store was restored or replaced (epoch {epoch}) and may lack running work{words}: nothing "
                "is granted until every issuer has declared its running work, or an operator "
                "runs `hqctl disruptions open`"
            )
        if self._strange:
            name, why = next(iter(self._strange.items()))
            return (
                f"nothing is granted: {name} cannot be read ({why}) and may hold instances; upgrade this process, or "
                "delete its key from etcd"
            )
        if frozen is not None:
            return f"frozen by {frozen.by}: {frozen.reason}; nothing is granted until `hqctl disruptions unfreeze`"
        return self.controller.stop.reason() or self.controller.why_unrecorded()

    def missing_issuers(self) -> list[str]:
        """Issuers that have not declared their running work in this epoch."""
        known = {name for name, record in self.declared.items() if record.epoch == self.controller.epoch}
        return [issuer for issuer in self.settings.issuers if issuer not in known]

    @property
    def is_deciding(self) -> bool:
        """Whether this process is the one that keeps deciding."""
        return self.controller.is_acting and self.controller.is_open

    def current(self) -> Decision:
        """The latest decision; if another process acts, a prediction of its decision from what is known here."""
        now = self.clock.now()
        if self._is_outdated or (not self.is_deciding and now - self._decided_at > _KEPT_S):
            if not self.is_deciding:
                self.locations.look()
            self._look_around(now)
            self._decide_at(now)
            self._decided_at = now
        return self.decision

    def _decide_at(self, now: float) -> None:
        """Decide on what is known, and tell recorders if this process is the one whose decisions count."""
        self.decision, self._is_outdated = decide(self.book, now), False
        if self.controller.is_acting:
            self.journal.add_decision(self.decision, now)
        else:
            self.journal.end()

    def look_around(self) -> None:
        """Bring up to date, for a new follower, what is noted before each decision."""
        self._look_around(self.clock.now())

    async def wait_for_decision(self, task_id: str, timeout_s: float) -> None:
        """Return when a task no longer waits or has been considered, at the latest after the timeout."""
        record = self.tasks.stored_record(task_id)
        seen_at = self.clock.now()
        try:
            async with asyncio.timeout(timeout_s):
                while record is not None and record.message.state == "waiting" and self._passed_at <= seen_at:
                    await self._moved.wait()
                    record = self.tasks.stored_record(task_id)
        except TimeoutError:
            pass

    async def wait_for_change(self, timeout_s: float) -> None:
        """Return when something changed, or after the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._moved.wait()

    def limit(self, limits: DomainLimits) -> None:
        """Put new sites and domain limits into force, for what is already held, too."""
        self.book.limit(limits)
        self._is_outdated = True
        self._look_again()

    # --- in step ------------------------------------------------------------------------------------------------------

    def _task_changed(self, task_id: str) -> None:
        with self._understanding(f"task {task_id}"):
            stored, now = self.tasks.stored_record(task_id), self.clock.now()
            if stored is not None and stored.message.confirming:
                self._confirming.setdefault(task_id)
            else:
                self._confirming.pop(task_id, None)
            if stored is None:
                self.book.drop_task(task_id, now)
                self._polls.pop(task_id, None)
            else:
                before, polls = self.book.tasks.get(task_id), self._polls.get(task_id, 0)
                self.book.put_task(task_of(stored, before, polls, now, self.clock.wall_ms()))
                self._polls[task_id] = stored.message.polls
        self._is_outdated = True
        self._look_again()

    def _budget_changed(self, name: str) -> None:
        with self._understanding(f"budget {name}"):
            stored, before = self.budgets.stored_record(name), self._budgets.get(name)
            now = budget_of(stored.message) if stored else None
            self._budgets.pop(name, None)
            if now is not None:
                self._budgets[name] = now
            changed = [one for one in (before, now) if one is not None]
            self.book.rule(Budgets(self._budgets.values(), self.book.picture.budgets.default), changed)
        self._look_again()

    def _windows_changed(self, name: str) -> None:
        with self._understanding(f"windows {name}"):
            stored = self.windows.stored_record(name)
            self._rules.pop(name, None)
            if stored is not None:
                self._rules[name] = rule_of(stored.message.windows)
            self.book.calendar = Calendar(tuple(rule for _, rule in sorted(self._rules.items())))
        self._is_outdated = True
        self._look_again()

    def _work_ended(self, task_id: str) -> None:
        record = self.ended.get(task_id)
        if record is not None:
            keys = tuple(_key(one) for one in record.instance)
            self.book.picture.work_ended(Task(task_id, 0, "reboot", tuple(record.host), keys), self.clock.now())

    @contextmanager
    def _understanding(self, name: str) -> Iterator[None]:
        """A record that this version cannot read keeps its last known state, and nothing is granted while it exists."""
        self._strange.pop(name, None)
        try:
            yield
        except (Unreadable, InvalidRequest, ValueError, KeyError) as error:
            self._strange[name] = str(error)
            log.error("%s cannot be read: %s", name, error)  # noqa: TRY400 # it says it all

    def _look_again(self) -> None:
        self._deciding.trigger(ALL, _GATHER_S)
        self._stir()

    def _stir(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _sync(self) -> None:
        """If the store has another history, drop what it does not contain."""
        if self._epoch != self.controller.epoch:
            self._epoch = self.controller.epoch
            for gone in self.book.tasks.keys() - self.tasks.keys():
                self._task_changed(gone)
            for gone in self._budgets.keys() - self.budgets.keys():
                self._budget_changed(gone)
            for gone in self._rules.keys() - self.windows.keys():
                self._windows_changed(gone)

    def _look_around(self, now: float) -> None:
        """Note what the ledger does not know by itself: whether it may grant, and the time of day."""
        self.book.closed = self.why_closed()
        self.book.wall_offset_s = self.clock.wall_ms() / 1000 - now

    # --- deciding -----------------------------------------------------------------------------------------------------

    async def _decide(self, _: str) -> float:
        """Decide once, behind a fence; store what changes, compared with the ledger as it was."""
        self._sync()
        if any(task.state in ("waiting", "provisional") for task in self.book.tasks.values()):
            await self.locations.fence(self.settings.fence_s)
        else:
            self.locations.look()
        change, now = self.controller.change(), self.clock.now()
        ledger = change.get(LEDGER, ALL) or ledger_pb2.Ledger()
        self._look_around(now)
        happens: Sequence[Happens] = ()
        answered = False
        is_letting_go = self._let_go(change)
        is_left = not is_letting_go and bool(ledger.moving) and ledger.epoch == self.controller.epoch
        if is_left:
            happens = next_part(ledger, self.book, self._size_of)
            self._move(change, happens)
        elif not is_letting_go and not (answered := self._confirm(change, ledger, now)):
            ledger.ClearField("moving")
            self._decide_at(now)
            happens = first_part(ledger, self.decision.changes, self.book, self.controller.epoch, self._size_of)
            self._move(change, happens)
        is_more = is_letting_go or is_left or answered or bool(happens or ledger.moving)
        tidied = not is_more and self._tidy(change, now)
        self._passed_at = self._decided_at = now
        if is_more or tidied:
            ledger.decisions += 1
            change.put(LEDGER, ALL, ledger)
            await change.commit()
            self._count(happens)
        self._stir()
        return _GATHER_S if is_more else _TICK_S

    def _move(self, change: Change, happens: Sequence[Happens]) -> None:
        for task_id, event in happens:
            record, version = change.get(TASK, task_id), self.tasks.version(task_id)
            if record is None:
                raise RecordChanged(f"task {task_id} is gone")
            move(record, event, self.clock.wall_ms(), version)
            if event in (TaskEvent.GRANT, TaskEvent.OFFER):
                for one in record.instance:
                    known = self.book.picture.instances.get(_key(one))
                    one.uid = known.uid if known is not None else 0
            change.put(TASK, task_id, record)

    def _size_of(self, task_id: str) -> int:
        record = self.tasks.get(task_id)
        return record.ByteSize() if record is not None else 0

    def _confirm(self, change: Change, ledger: ledger_pb2.Ledger, now: float) -> bool:
        """Answer one unit whose confirmation was asked for; return whether there was one."""
        asked = next((task_id for task_id in self._confirming if task_id in self.book.tasks), None)
        if asked is None:
            return False
        ledger.ClearField("moving")
        unit = self.book.tasks[asked].unit
        outcome = confirm(self.book, unit, now)
        self.journal.add_confirmation(asked, outcome, now)
        answered = [task.id for task in self.book.members(unit)]
        if not isinstance(outcome, str) and outcome:
            happens = first_part(ledger, outcome, self.book, self.controller.epoch, self._size_of)
            self._move(change, happens)
            # Tasks that have not moved are answered once all the group, or the withdrawals that go first, are stored.
            moved = {task_id for task_id, _ in happens}
            answered = [task_id for task_id in answered if task_id in moved]
        confirming = [task_id for task_id in answered if self.tasks[task_id].confirming]
        for task_id in confirming[: count_fitting(confirming, self._size_of)]:
            record = change.get(TASK, task_id)
            if record is not None:
                record.confirmed, record.confirming = record.confirming, ""
                change.put(TASK, task_id, record)
        return True

    def _tidy(self, change: Change, now: float) -> bool:
        """Forget waits of machines that have stopped asking, and work that ended long enough ago."""
        unasked, ended = self._waits_not_repeated(now)[: MOST_AT_ONCE // 2], self._ended_long_ago()[: MOST_AT_ONCE // 2]
        for task_id in unasked:
            change.compare(TASK, task_id)
            change.delete(TASK, task_id)
        for task_id in ended:
            change.compare(ENDED, task_id)
            change.delete(ENDED, task_id)
        return bool(unasked or ended)

    def _let_go(self, change: Change) -> bool:
        """Before anything is decided, end holds on instances that were deleted; return whether there were any.

        An instance that has such an id by now is another one.
        """
        verifiable = self.book.picture.verifiable()
        holders = sorted(filter(self._holds_gone, set().union(*verifiable.values())))
        for task_id in holders[: count_fitting(holders, self._size_of)]:
            record = change.get(TASK, task_id)
            if record is not None:
                for one in record.instance:
                    one.gone = one.gone or self._is_gone(one)
                change.put(TASK, task_id, record)
        if not holders:
            self.book.picture.unverified.difference_update(verifiable)
        return bool(holders)

    def _holds_gone(self, task_id: str) -> bool:
        return task_id in self.tasks and any(map(self._is_gone, self.tasks[task_id].instance))

    def _is_gone(self, one: ledger_pb2.Instance) -> bool:
        """Whether the instance that was held is surely not there."""
        known = self.book.picture.instances.get(_key(one))
        is_same = known is not None and (not one.uid or one.uid == known.uid)
        return one.location in self.book.picture.certain and not one.gone and not is_same

    def _waits_not_repeated(self, now: float) -> list[str]:
        """Tasks of machines that wait, and have not asked again in time."""
        waiting = (task for task in self.book.tasks.values() if task.state is State.WAITING)
        late = (task.id for task in waiting if task.polled_at + self.book.rules.unasked_s <= now)
        return [task_id for task_id in late if task_id in self.tasks and self.tasks[task_id].fleet_group]

    def _ended_long_ago(self) -> list[str]:
        """Ended work whose instances have all been heard from since, or are down."""
        if self.book.picture.certain != self.book.locations:
            return []  # it is unknown which instances are there
        return [task_id for task_id, record in self.ended.items() if not self._is_awaited(record)]

    def _is_awaited(self, record: ledger_pb2.Ended) -> bool:
        picture = self.book.picture
        task = Task("", 0, "reboot", tuple(record.host), tuple(_key(one) for one in record.instance))
        instances = [picture.instances[key] for key in picture.disrupted_by(task)]
        return any(instance.is_ready and picture.hearing.doubt(instance) for instance in instances)

    def _count(self, happens: Collection[Happens]) -> None:
        self.decisions += 1
        self.grants += sum(event in (TaskEvent.GRANT, TaskEvent.OFFER) for _, event in happens)
        for task_id, event in happens:
            log.info("task %s: %s", task_id, event)


def _key(one: ledger_pb2.Instance) -> InstanceKey:
    return InstanceKey(one.location, one.id)
