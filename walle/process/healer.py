"""Reconciles one host: considers it, asks CMSs, does the work, and stores every step before the next."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from walle.executors.port import Executor, ExecutorFailure, PollResult, Unfit, WorkProgress
from walle.fuses.fuse import Automation, Moment
from walle.healing.backoff import Backoff, pause_ms
from walle.healing.operation import MAX_FAILURES, UNSEEN_MS, Do, effects, effects_when_stopped, is_confirmed
from walle.process.lanes import DnsLane
from walle.process.leave import REFUSED, HostApprovals
from walle.process.ports import MayBegin, Providers, TransactionStore
from walle.work.book import World
from walle.work.repairs import consider, settle, start_work, stop_waiting
from walle.work.results import take_attempt, take_handle, take_seen, take_work_failure
from wallepb.v1.host_pb2 import STAGE_REQUESTED, STAGE_RUNNING, Host

LOOK_S: Final = (1.0, 10.0)  # between looks at an operation: short after it moved on, then growing


class Healer:
    """`reconcile` may be called for a host at any time, but for one host by one task at a time."""

    def __init__(
        self,
        store: TransactionStore,
        parts: Providers,
        world: World,
        now: Callable[[], Moment],
        rng: random.Random,
        lane: Automation = Automation.HEALING,
    ) -> None:
        """`lane`: DNS has a healer of its own, over a store that swaps the hosts' lanes."""
        self._lane = lane
        self._store, self._parts, self._world = (DnsLane(store) if lane is Automation.DNS else store), parts, world
        self._now, self._backoff = now, Backoff(rng)
        self._leave = HostApprovals(self._store, parts, world, now, rng, self._backoff)

    async def reconcile(self, name: str) -> float | None:
        """Do what there is to do now. Returns after how many seconds to look again; None: when something changes."""
        if stopped := self._world.why_stopped():
            await self._store.decide(lambda book: stop_waiting(book, name, stopped, self._now()))
        if not self._store.why_nothing_begins():
            await self._consider(name)
        if _is_busy(self._store.host(name)):  # most failing hosts only wait, for people or for time
            await self._settle(name)
        host = self._store.host(name)
        if host is None or not host.HasField("operation"):
            is_failing = host is not None and any(check.failing for check in host.check)
            self._backoff.forget(name, but=REFUSED if is_failing else "")
            return _within_bounds(self._world.settle_ms / 1000) if is_failing else None
        await self._drive(host)
        await self._settle(name)
        return _within_bounds((self._now().ms - host.operation.since_ms) / 2000)

    async def _consider(self, name: str) -> None:
        """Consider a host, after those that broke before it: limits and credits are used up in that order."""
        host = self._store.host(name)
        if self._lane is Automation.HEALING and host is not None and not host.HasField("operation"):
            for other in self._world.hosts_ahead(host):
                await self._begin_due(other, is_agreed=False)
        await self._begin_due(name, is_agreed=await self._leave.ask_again(name))

    async def _begin_due(self, name: str, *, is_agreed: bool) -> None:
        now = self._now()
        await self._store.decide(
            lambda book: consider(book, name, self._world, now, lane=self._lane, is_agreed=is_agreed)
        )

    async def _settle(self, name: str) -> None:
        await self._store.decide(lambda book: settle(book, name, self._world, self._now()))

    async def _drive(self, host: Host) -> None:
        if host.operation.stage == STAGE_REQUESTED:
            await self._request(host)
            return
        is_stopped, now_ms = bool(self._world.why_stopped()), self._now().ms
        for effect in effects_when_stopped(host.operation) if is_stopped else effects(host.operation, now_ms):
            if effect.do is not Do.EXECUTE:
                await self._leave.ask(host, effect)
        fresh = self._store.host(host.name)
        if fresh is None or fresh.operation.id != host.operation.id:
            return
        if is_confirmed(fresh.operation):
            await self._start(fresh)
        elif fresh.operation.stage == STAGE_RUNNING and not fresh.operation.intent.done:
            await self._work(fresh)

    async def _request(self, host: Host) -> None:
        """Ask for dry runs, unless no executor can do the work."""
        try:
            self._parts.executor(host.operation.kind)
        except ExecutorFailure as error:
            await self._record_failure(host, error)
        else:
            await self._leave.dry_run(host)

    # --- work -------------------------------------------------------------------------------------------------------

    async def _start(self, host: Host) -> None:
        """Store the intent with what the machine shows, then begin the work at once."""
        what = f"{host.operation.id} before"
        if not self._backoff.may_try(host.name, what, self._now().ms):
            return
        try:
            executor = self._parts.executor(host.operation.kind)
            before = await executor.progress_marker(host)
        except ExecutorFailure as error:
            self._note(host, what, failed=True)
            await self._record_failure(host, error)
            return
        self._note(host, what, failed=False)
        self._world.look_near(host)  # since approval was asked for, the whole switch may have failed
        now = self._now()
        may = await self._store.intend(
            lambda book: start_work(book, host.name, executor.name, before, self._world, now)
        )
        if may is not None:
            await self._begin(host.name, executor, may)

    async def _work(self, host: Host) -> None:
        """Look at work that a process has begun, perhaps one that died, before anything is repeated."""
        what, age_ms = f"{host.operation.id} look", self._now().ms - host.operation.intent.attempt_ms
        if not self._backoff.may_try(host.name, what, self._now().ms):
            return
        try:
            executor = self._parts.executor(host.operation.kind)
            seen = await executor.poll(host, age_ms / 1000)
        except ExecutorFailure as error:
            self._note(host, what, failed=True)
            is_over = self._backoff.failing_ms(host.name, what, self._now().ms) >= UNSEEN_MS
            await self._record_failure(host, error, MAX_FAILURES if is_over else 0)
            return
        self._note(host, what, failed=False)
        if seen.progress is not WorkProgress.NOT_BEGUN:
            await self._saw(host, seen)
        elif age_ms >= pause_ms(host.operation.intent.attempts - 1):
            await self._repeat(host, executor)

    async def _repeat(self, host: Host, executor: Executor) -> None:
        if host.operation.intent.handle:
            await self._record_failure(host, ExecutorFailure("it was begun, and nothing shows it"))
        operation_id, now_ms = host.operation.id, self._now().ms
        may = await self._store.intend(lambda book: take_attempt(book, host.name, operation_id, now_ms))
        if may is not None:
            await self._begin(host.name, executor, may)

    async def _begin(self, name: str, executor: Executor, may: MayBegin) -> None:
        host = self._store.host(name)
        if host is None:
            return
        operation_id = host.operation.id
        try:
            may.check()
            handle = await executor.begin(host)
        except ExecutorFailure as error:
            await self._record_failure(host, error)
            return
        await self._store.transact(lambda book: take_handle(book, name, operation_id, handle))

    async def _record_failure(self, host: Host, error: ExecutorFailure, times: int = 1) -> None:
        """Record a failure; work that no repetition can mend is given up at once."""
        text, operation_id = str(error), host.operation.id
        times = MAX_FAILURES if isinstance(error, Unfit) else times
        await self._store.transact(lambda book: take_work_failure(book, host.name, operation_id, text, times))

    async def _saw(self, host: Host, seen: PollResult) -> None:
        operation_id = host.operation.id
        await self._store.transact(lambda book: take_seen(book, host.name, operation_id, seen))

    def _note(self, host: Host, what: str, *, failed: bool) -> None:
        self._backoff.note(host.name, what, self._now().ms, failed=failed)


def _is_busy(host: Host | None) -> bool:
    return host is not None and host.HasField("operation")


def _within_bounds(seconds: float) -> float:
    return min(LOOK_S[1], max(LOOK_S[0], seconds))
