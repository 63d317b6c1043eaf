"""Asks the CMSs of a host about its operation, and stores what they say. What fails is asked again after a pause."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from walle.approval.protocol import CmsAnswer, CmsFailure, UnknownTask
from walle.fuses.fuse import Moment
from walle.healing.backoff import Backoff
from walle.healing.operation import Do, Effect, request_of
from walle.process.ports import Providers, TransactionStore
from walle.work.book import World
from walle.work.repairs import refused_operation
from walle.work.results import take_answer, take_dry_runs, take_failure
from wallepb.v1.host_pb2 import OUTCOME_CANCELLED, VERDICT_OK, VERDICT_REJECTED, Host, Operation

REFUSED: Final = "a dry run that was rejected"


class HostApprovals:
    """The calls of CMSs, for one host at a time."""

    def __init__(
        self,
        store: TransactionStore,
        parts: Providers,
        world: World,
        now: Callable[[], Moment],
        rng: random.Random,
        backoff: Backoff,
    ) -> None:
        self._store, self._parts, self._world = store, parts, world
        self._now, self._rng, self._backoff = now, rng, backoff

    async def dry_run(self, host: Host) -> None:
        """Ask all CMSs for a dry run, before a task is created in any of them."""
        operation_id, answers, now = host.operation.id, await self._dry_runs(host, host.operation), self._now()
        if answers is not None:
            await self._store.decide(lambda book: take_dry_runs(book, host.name, operation_id, answers, now))

    async def ask_again(self, name: str) -> bool:
        """Whether the dry runs of an operation that was rejected pass now. Nothing is stored while they do not."""
        host = self._store.host(name)
        if host is None or host.last_repair.outcome != OUTCOME_CANCELLED or not self._may_try(name, REFUSED):
            return False
        operation = await self._store.transact(lambda book: refused_operation(book, name, self._world, self._now()))
        if operation is None:
            return False
        answers = await self._dry_runs(host, operation)
        return answers is not None and not _is_rejected(answers)

    async def _dry_runs(self, host: Host, operation: Operation) -> list[CmsAnswer] | None:
        """The answer about each task; None: not all CMSs answer now."""
        whats = [f"{Do.DRY_RUN} {task.cms}" for task in operation.task]
        if not all(self._may_try(host.name, what) for what in whats):
            return None
        answers = []
        for task, what in zip(operation.task, whats, strict=True):
            try:
                cms = self._parts.cms(host.project, task.cms)
                answers.append(await cms.dry_run(request_of(operation, task, (host.name,))))
            except CmsFailure as error:
                await self._record_failure(host, task.id, what, error)
                return None
            self._note(host, what, failed=False)
        self._note(host, REFUSED, failed=_is_rejected(answers))
        return answers

    async def ask(self, host: Host, effect: Effect) -> None:
        """Make one call about one task, unless its pause is not over."""
        if effect.do is Do.CONFIRM and not self._may_try(host.name, _name(effect)):
            effect = Effect(Do.POLL, effect.task)  # a CMS may take back an ok that nobody asks about
        what = _name(effect)
        if not self._may_try(host.name, what):
            return
        try:
            answer = await self._call(host, effect)
        except CmsFailure as error:
            await self._record_failure(host, effect.task.id, what, error)
            return
        self._note(host, what, failed=_is_setback(effect, answer))
        jitter, now, operation_id = self._rng.random(), self._now(), host.operation.id
        await self._store.transact(
            lambda book: take_answer(book, host.name, operation_id, effect, answer, jitter, now),
        )

    async def _call(self, host: Host, effect: Effect) -> CmsAnswer | None:
        """Call the CMS; None: it does not know the task (any more)."""
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

    async def _record_failure(self, host: Host, task_id: str, what: str, error: CmsFailure) -> None:
        self._note(host, what, failed=True)
        operation_id, text = host.operation.id, str(error)
        await self._store.transact(lambda book: take_failure(book, host.name, operation_id, task_id, text))

    def _may_try(self, name: str, what: str) -> bool:
        return self._backoff.may_try(name, what, self._now().ms)

    def _note(self, host: Host, what: str, *, failed: bool) -> None:
        self._backoff.note(host.name, what, self._now().ms, failed=failed)


def _name(effect: Effect) -> str:
    return f"{effect.do} {effect.task.cms}"


def _is_rejected(answers: Sequence[CmsAnswer]) -> bool:
    return any(answer.verdict == VERDICT_REJECTED for answer in answers)


def _is_setback(effect: Effect, answer: CmsAnswer | None) -> bool:
    """Whether the CMS lost a task, or took its ok back: it may do so again and again."""
    if effect.do is Do.CONFIRM:
        return answer is None or answer.verdict != VERDICT_OK
    return effect.do is Do.POLL and answer is None
