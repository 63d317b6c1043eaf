"""Carrying out a plan: batches in parallel, each until its instances are as wanted or cannot be."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable

from hqclient.client import Client
from hqclient.errors import HqApiError
from nannyctl.plans.plan import InstancePlan, PlannedAction, PlannedKind, batches
from nannyctl.sending.holdings import InstanceReader
from nannyctl.sending.results import Result, UploadOutcome
from nannyctl.sending.writing import write

TRIES = 8
FIRST_WAIT_S = 0.05
AGAIN = frozenset({UploadOutcome.CONFLICT, UploadOutcome.UNKNOWN, UploadOutcome.AWAY})
_DONE = {
    PlannedKind.CREATE: UploadOutcome.CREATED,
    PlannedKind.UPDATE: UploadOutcome.UPDATED,
    PlannedKind.DELETE: UploadOutcome.DELETED,
}


class Upload:
    """Carries out one plan in one installation.

    After a conflict or an unknown outcome, the instance is read and decided again. After the first batch
    that finds the installation unreachable no other is tried: the rest is AWAY, and the next run does it.

    Args:
        settled: called with the result of each write, as soon as it is final.
        parallel: batches at the same time.
    """

    def __init__(self, client: Client, settled: Callable[[Result], None], rng: random.Random, *, parallel: int) -> None:
        self._client = client
        self._holdings = InstanceReader(client)
        self._settled = settled
        self._rng = rng
        self._turns = asyncio.Semaphore(parallel)
        self._away = ""

    async def run(self, plan: InstancePlan) -> list[Result]:
        """One result for each action of the plan, in order of ids."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._batch(plan, batch)) for batch in batches(plan.writes)]
        done = {result.id: result for task in tasks for result in task.result()}
        return [done.get(action.id) or result_without_write(action) for action in plan.actions]

    async def _batch(self, plan: InstancePlan, batch: list[PlannedAction]) -> list[Result]:
        final: list[Result] = []
        pending = batch
        async with self._turns:
            for attempt in range(TRIES):
                results = await self._once(pending)
                hopeful = attempt + 1 < TRIES and not self._away
                again = [result for result in results if hopeful and result.outcome in AGAIN]
                self._settle(final, (result for result in results if result not in again))
                if not again:
                    break
                await asyncio.sleep(self._rng.random() * FIRST_WAIT_S * 2**attempt)
                pending = await self._look_again(plan, pending, again, final)
        return final

    async def _once(self, actions: Iterable[PlannedAction]) -> list[Result]:
        """Send each action once, unless the installation is already known to be away."""
        results: list[Result] = []
        for batch in batches(actions):
            if self._away:
                results += [Result(action.id, UploadOutcome.AWAY, message=self._away) for action in batch]
            else:
                results += await write(self._client, batch)
        return results

    async def _look_again(
        self, plan: InstancePlan, sent: list[PlannedAction], again: list[Result], final: list[Result]
    ) -> list[PlannedAction]:
        """Return the actions that remain after others' writes; finished results go to `final`."""
        try:
            found = await self._holdings.read_instances([result.id for result in again])
            found = await self._holdings.with_secrets(found, plan.intent)
        except HqApiError as error:
            self._away = error.message
            self._settle(final, again)
            return []
        kinds = {action.id: action.kind for action in sent}
        actions = [plan.intent.action(result.id, found.get(result.id)) for result in again]
        by_id = {result.id: result for result in again}
        finished = [_as_found(action, by_id[action.id], kinds[action.id]) for action in actions if not action.writes]
        self._settle(final, finished)
        return [action for action in actions if action.writes]

    def _settle(self, final: list[Result], results: Iterable[Result]) -> None:
        for result in results:
            final.append(result)
            self._settled(result)


def result_without_write(action: PlannedAction) -> Result:
    """Return the result of an instance for which there was nothing to send."""
    outcome = UploadOutcome.REFUSED if action.kind is PlannedKind.REFUSED else UploadOutcome.UNCHANGED
    version = action.before.instance.meta.version if action.before is not None else 0
    return Result(action.id, outcome, version, action.note)


def _as_found(action: PlannedAction, told: Result, kind: PlannedKind) -> Result:
    """The result for an instance that needs no write any more: ours was stored after all, or somebody did the same."""
    result = result_without_write(action)
    if told.outcome is UploadOutcome.CONFLICT or result.failed:
        return result
    return Result(result.id, _DONE.get(kind, UploadOutcome.UNCHANGED), result.version, "its write had been stored")
