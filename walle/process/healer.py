"""Reconciles one host: considers it, asks CMSs, does the work, and stores every step before the next."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from walle.approval.protocol import Answer, Cms, CmsFailure, UnknownTask
from walle.executors.port import Executor, ExecutorFailure, Progress, Seen
from walle.fuses.fuse import Moment
from walle.healing.operation import Do, Effect, effects, is_confirmed, request_of
from walle.work.book import Book, Notice, World
from walle.work.repairs import consider, settle, start_work
from walle.work.results import (
    take_answer,
    take_attempt,
    take_dry_runs,
    take_failure,
    take_handle,
    take_seen,
    take_work_failure,
)
from wallepb.v1.host_pb2 import STAGE_REQUESTED, STAGE_RUNNING, Host, OperationKind

log = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_S: Final = (1.0, 10.0)  # between looks at an operation: short after it moved on, then growing


class MayBegin(Protocol):
    """Proof that an intent was stored just now."""

    def check(self) -> None:
        """Call it right before the effect; raises if it may not begin (any more)."""


class Store(Protocol):
    """Transactions over the records."""

    def host(self, name: str) -> Host | None:
        """As in memory; shared, not to be changed."""

    def why_nothing_begins(self) -> str:
        """Why nothing begins (frozen or stopped): no operation is begun, running ones finish."""

    async def transact(self, decide: Callable[[Book], T]) -> T:
        """Run `decide` and store what it put; again if something it read has changed meanwhile."""

    async def intend(self, decide: Callable[[Book], bool]) -> MayBegin | None:
        """The same for an intent; None: `decide` said no."""


class Parts(Protocol):
    """Where an operation's CMSs and executors come from."""

    def cms(self, project: str, url: str) -> Cms:
        """Raises CmsFailure: the project has no such CMS any more."""

    def executor(self, kind: OperationKind) -> Executor:
        """Raises ExecutorFailure: none is configured for this kind."""


class Healer:
    """`reconcile` may be called for a host at any time, but for one host by one task at a time."""

    def __init__(
        self,
        store: Store,
        parts: Parts,
        world: World,
        now: Callable[[], Moment],
        rng: random.Random,
        notify: Callable[[Sequence[Notice]], None],
    ) -> None:
        self._store, self._parts, self._world = store, parts, world
        self._now, self._rng, self._notify = now, rng, notify

    async def reconcile(self, name: str) -> float | None:
        """Do what there is to do now. Returns after how many seconds to look again; None: when something changes."""
        if not self._store.why_nothing_begins():
            self._notify(await self._store.transact(lambda book: consider(book, name, self._world, self._now())))
        await self._settle(name)
        host = self._store.host(name)
        if host is None or not host.HasField("operation"):
            is_failing = host is not None and any(check.failing for check in host.check)
            return _within_bounds(self._world.settle_ms / 1000) if is_failing else None
        await self._drive(host)
        await self._settle(name)
        return _within_bounds((self._now().ms - host.operation.since_ms) / 2000)

    async def _settle(self, name: str) -> None:
        self._notify(await self._store.transact(lambda book: settle(book, name, self._world, self._now())))

    async def _drive(self, host: Host) -> None:
        if host.operation.stage == STAGE_REQUESTED:
            await self._dry_run(host)
            return
        wanted = effects(host.operation, self._now().ms)
        for effect in wanted:
            if effect.do is not Do.EXECUTE:
                await self._ask(host, effect)
        fresh = self._store.host(host.name)
        if fresh is None or fresh.operation.id != host.operation.id:
            return
        if is_confirmed(fresh.operation):
            await self._start(fresh)
        elif fresh.operation.stage == STAGE_RUNNING and not fresh.operation.intent.done:
            await self._work(fresh)

    # --- leave ------------------------------------------------------------------------------------------------------

    async def _dry_run(self, host: Host) -> None:
        """All CMSs are asked before a task is created in any of them."""
        name, operation, answers = host.name, host.operation, []
        for task in operation.task:
            try:
                cms = self._parts.cms(host.project, task.cms)
                answers.append(await cms.dry_run(request_of(operation, task, (name,))))
            except CmsFailure as error:
                await self._failed(host, task.id, f"{task.cms}: {error}")
                return
        now = self._now()
        self._notify(
            await self._store.transact(lambda book: take_dry_runs(book, name, operation.id, answers, now)),
        )

    async def _ask(self, host: Host, effect: Effect) -> None:
        try:
            answer = await self._call(host, effect)
        except CmsFailure as error:
            await self._failed(host, effect.task.id, f"{effect.task.cms}: {error}")
            return
        jitter, now, operation_id = self._rng.random(), self._now(), host.operation.id
        await self._store.transact(
            lambda book: take_answer(book, host.name, operation_id, effect, answer, jitter, now),
        )

    async def _call(self, host: Host, effect: Effect) -> Answer | None:
        """None: the CMS does not know the task (any more)."""
        cms, task = self._parts.cms(host.project, effect.task.cms), effect.task
        try:
            if effect.do is Do.CREATE:
                return await cms.create(request_of(host.operation, task, (host.name,)))
            if effect.do is Do.POLL:
                return await cms.poll(task.id)
            if effect.do is Do.CONFIRM:
                return await cms.confirm(task.id)
            await cms.delete(task.id)
        except UnknownTask:
            pass
        return None

    async def _failed(self, host: Host, task_id: str, text: str) -> None:
        operation_id = host.operation.id
        await self._store.transact(lambda book: take_failure(book, host.name, operation_id, task_id, text))

    # --- work -------------------------------------------------------------------------------------------------------

    async def _start(self, host: Host) -> None:
        """The intent is stored with what the machine shows, then the work begins at once."""
        try:
            executor = self._parts.executor(host.operation.kind)
            before = await executor.before(host)
        except ExecutorFailure as error:
            await self._failed(host, "", str(error))
            return
        now = self._now()
        may = await self._store.intend(
            lambda book: start_work(book, host.name, executor.name, before, self._world, now)
        )
        if may is not None:
            await self._begin(host.name, executor, may)

    async def _work(self, host: Host) -> None:
        """Work that a process has begun, perhaps one that died: the world is asked before anything is repeated."""
        try:
            executor = self._parts.executor(host.operation.kind)
            age_s = (self._now().ms - host.operation.intent.attempt_ms) / 1000
            seen = await executor.look(host, age_s)
        except ExecutorFailure as error:
            log.warning("%s: cannot look at %s: %s", host.name, host.operation.id, error)
            return
        if seen.progress is Progress.NOT_BEGUN:
            await self._repeat(host, executor)
        else:
            await self._saw(host, seen)

    async def _repeat(self, host: Host, executor: Executor) -> None:
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
            text = str(error)
            await self._store.transact(lambda book: take_work_failure(book, name, operation_id, text))
            return
        await self._store.transact(lambda book: take_handle(book, name, operation_id, handle))

    async def _saw(self, host: Host, seen: Seen) -> None:
        operation_id = host.operation.id
        await self._store.transact(lambda book: take_seen(book, host.name, operation_id, seen))


def _within_bounds(seconds: float) -> float:
    return min(LOOK_S[1], max(LOOK_S[0], seconds))
