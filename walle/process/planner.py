"""Reconciles one scenario: asks all CMS's, tells HQ, says when the work may begin, gives everything back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from walle.approval.port import Answer, Cms, CmsFailure, UnknownTask
from walle.fuses.fuse import Moment
from walle.healing.operation import Do, Effect
from walle.process.healer import Parts
from walle.process.storing import Storing
from walle.scenarios.stages import OVER, WORK_MS
from walle.scenarios.switch import effects, is_confirmed, is_held, request_of
from walle.work.book import Notice, World
from walle.work.scenarios import may_begin, settle_scenario, step_wave, take_scenario_answer, take_scenario_failure
from wallepb.v1.host_pb2 import Host
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_SWITCH_MAINTENANCE,
    SCENARIO_STAGE_RETURNING,
    Scenario,
    ScenarioHost,
)

POLL_S: Final = 5.0
SUSPENDED_S: Final = WORK_MS / 1000 + 900  # the hour, and a quarter for everybody to come back


class Silence(Protocol):
    """HQ's planned-work order: silence of a node is not counted meanwhile. Raises ServiceError."""

    async def suspend(self, node: str, seconds: float, reason: str) -> None: ...

    async def resume(self, node: str, reason: str) -> None: ...


class Planner:
    """`reconcile` may be called for a scenario at any time, by one task at a time."""

    def __init__(
        self,
        storing: Storing,
        scenario: Callable[[str], Scenario | None],
        parts: Parts,
        silence: Silence,
        world: World,
        now: Callable[[], Moment],
        notify: Callable[[Sequence[Notice]], None],
    ) -> None:
        self._storing, self._scenario, self._parts, self._silence = storing, scenario, parts, silence
        self._world, self._now, self._notify = world, now, notify

    async def reconcile(self, name: str) -> float | None:
        """Do what there is to do now; returns after how many seconds to look again."""
        scenario = self._scenario(name)
        if scenario is None or scenario.stage in OVER:
            return None
        if scenario.kind == SCENARIO_KIND_SWITCH_MAINTENANCE:
            await self._switch(name, scenario)
        else:
            await self._storing.transact(lambda book: step_wave(book, name, self._world, self._now()))
        await self._settle(name)
        return POLL_S

    async def _switch(self, name: str, scenario: Scenario) -> None:
        for host, effect in effects(scenario):
            await self._ask(scenario, host, effect)
        await self._settle(name)
        fresh = self._scenario(name)
        if fresh is None:
            return
        if is_confirmed(fresh):
            for host in filter(is_held, fresh.host):
                await self._silence.suspend(host.name, SUSPENDED_S, f"scenario {name}")
            self._notify(await self._storing.transact(lambda book: may_begin(book, name, self._now())))
        elif fresh.stage == SCENARIO_STAGE_RETURNING:
            for host in filter(is_held, fresh.host):
                await self._silence.resume(host.name, f"scenario {name}")

    async def _settle(self, name: str) -> None:
        self._notify(await self._storing.transact(lambda book: settle_scenario(book, name, self._now())))

    async def _ask(self, scenario: Scenario, host: ScenarioHost, effect: Effect) -> None:
        name = scenario.id
        try:
            cms = self._parts.cms(self._project_of(host.name), effect.task.cms)
            answer = await _call(cms, scenario, host, effect)
        except CmsFailure as error:
            text = str(error)
            await self._storing.transact(lambda book: take_scenario_failure(book, name, effect.task.id, text))
            return
        now = self._now()
        await self._storing.transact(lambda book: take_scenario_answer(book, name, effect, answer, now))

    def _project_of(self, name: str) -> str:
        host: Host | None = self._storing.host(name)
        return host.project if host is not None else ""


async def _call(cms: Cms, scenario: Scenario, host: ScenarioHost, effect: Effect) -> Answer | None:
    """None: the CMS does not know the task (any more)."""
    try:
        if effect.do is Do.CREATE:
            return await cms.create(request_of(scenario, host, effect.task))
        if effect.do is Do.POLL:
            return await cms.poll(effect.task.id)
        if effect.do is Do.CONFIRM:
            return await cms.confirm(effect.task.id)
        await cms.delete(effect.task.id)
    except UnknownTask:
        pass
    return None
