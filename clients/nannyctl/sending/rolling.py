"""Rolling a switch out over one installation, batch by batch, paced by what agents report."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import aclosing

from hqclient.client import Client
from hqclient.errors import HqApiError
from hqclient.watch_items import Shown
from hqpb.v1.instance_pb2 import Instance
from nannyctl.following import instances_as_they_change, instances_now
from nannyctl.plans.pacing import PacingSettings, PacingStep, Roll
from nannyctl.plans.plan import InstancePlan, PlannedAction
from nannyctl.sending.results import Result, UploadOutcome
from nannyctl.sending.uploading import Upload, result_without_write

_NOT_WAITED_FOR = "was not ready before, not waited for"
_HELD_BACK = "the roll-out stopped before it"


class Rolling:
    """Rolls one plan over one installation.

    Args:
        settled: called with the result of each instance, as soon as it is final.
    """

    def __init__(
        self, client: Client, plan: InstancePlan, revision: str, pace: PacingSettings, settled: Callable[[Result], None]
    ) -> None:
        self._client = client
        self._plan = plan
        self._pace = pace
        self._settled = settled
        self._revision = revision
        self._actions = {action.id: action for action in plan.writes}
        self._results: dict[str, Result] = {}
        self._upload = Upload(client, self._take, random.Random(), parallel=1)

    async def run(self) -> list[Result]:
        """One result for each action of the plan."""
        try:
            if self._actions:
                await self._roll()
        except HqApiError as error:
            self._hold_back(UploadOutcome.AWAY, f"the roll-out stopped before it: {error.message}")
        return [self._result(action) for action in self._plan.actions]

    async def _roll(self) -> None:
        shown = await instances_now(self._client, [self._plan.service])
        roll = Roll(self._revision, list(self._actions), self._pace, self._pace.limit(len(shown.instances)))
        async with aclosing(instances_as_they_change(self._client, [self._plan.service])) as states:
            coming: asyncio.Future[Shown] | None = None
            try:
                while not (step := roll.look(_by_id(shown), time.monotonic())).is_done:
                    if step.late or not await self._switch(step, roll):
                        self._stop(step)
                        return
                    if step.switch:
                        continue
                    coming = coming or asyncio.ensure_future(anext(states))
                    await asyncio.wait({coming}, timeout=step.wake_in_s)
                    if coming.done():
                        shown, coming = coming.result(), None
            finally:
                if coming is not None:
                    coming.cancel()
                    await asyncio.wait({coming})

    async def _switch(self, step: PacingStep, roll: Roll) -> bool:
        """Switch a batch; return whether all of it was stored."""
        actions = tuple(self._actions[one] for one in step.switch)
        done = await self._upload.run(InstancePlan(self._plan.service, self._plan.intent, actions)) if actions else []
        for result in done:
            if result.id in roll.unwatched and not result.failed:
                self._results[result.id] = Result(result.id, result.outcome, result.version, _NOT_WAITED_FOR)
        return not any(result.failed for result in done)

    def _take(self, result: Result) -> None:
        self._results[result.id] = result
        self._settled(result)

    def _stop(self, step: PacingStep) -> None:
        waited = f"did not become ready within {self._pace.patience_s:.0f} s"
        for one in step.late:
            self._results[one] = Result(one, UploadOutcome.NOT_READY, self._results[one].version, waited)
        self._hold_back(UploadOutcome.HELD_BACK, _HELD_BACK)

    def _hold_back(self, outcome: UploadOutcome, why: str) -> None:
        for one in self._actions.keys() - self._results.keys():
            self._take(Result(one, outcome, message=why))

    def _result(self, action: PlannedAction) -> Result:
        return self._results.get(action.id) or result_without_write(action)


def _by_id(shown: Shown) -> dict[str, Instance]:
    return {instance.meta.id: instance for instance in shown.instances.values()}
