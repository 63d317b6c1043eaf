"""Reconciles one scenario: asks all CMSs, informs HQ, says when the work may begin, and gives everything back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from serving.errors import ServiceError
from walle.approval.protocol import CmsAnswer, CmsFailure, CmsPort, UnknownTask
from walle.fuses.fuse import Moment
from walle.healing.backoff import Backoff
from walle.healing.operation import Do, Effect
from walle.maintenance import OVER, WORK_MS, effects, is_confirmed, is_held, request_of
from walle.process.ports import Providers
from walle.process.storing import Storing
from walle.work.book import WalleTransaction, World
from walle.work.scenario_kinds import kind_traits
from walle.work.scenarios import (
    forget_scenarios,
    forgettable,
    may_begin,
    settle_scenario,
    show_waiting,
    take_scenario_answer,
    take_scenario_failure,
)
from walle.work.waves import HqView, hosts_to_ask_hq_about, release_decisions, wave_decisions
from wallepb.v1.host_pb2 import Host
from wallepb.v1.project_pb2 import (
    SCENARIO_STAGE_RETURNING,
    Scenario,
    ScenarioHost,
)

POLL_S: Final = 5.0
AT_ONCE: Final = 10  # calls of CMSs by one scenario
RESUME_MS: Final = 900_000
_FORGOTTEN_AT_ONCE: Final = 5  # in one transaction: each may be 21 records
_FORGET_EVERY_S: Final = 86_400.0
SUSPENDED_S: Final = WORK_MS / 1000 + 900  # the hour of work, and 15 minutes for all hosts to come back


class SuspensionPort(Protocol):
    """HQ's planned-work order: silence of a node is not counted meanwhile. Raises ServiceError."""

    async def suspend(self, node: str, seconds: float, reason: str) -> None: ...

    async def resume(self, node: str, reason: str) -> None: ...

    async def view(self, coming: Sequence[str], returning: Sequence[str]) -> HqView | None:
        """Return what is ready on nodes before work, and not ready on nodes after it; None: there is no HQ."""
        ...


class Planner:
    """`reconcile` may be called for a scenario at any time, by one task at a time."""

    def __init__(
        self,
        storing: Storing,
        scenarios: Mapping[str, Scenario],
        parts: Providers,
        silence: SuspensionPort,
        world: World,
        now: Callable[[], Moment],
        unclear: Callable[[Iterable[str]], str],
        held: Callable[[str], Collection[str]],
        rng: random.Random,
    ) -> None:
        """`held`: names of the hosts that a scenario holds."""
        self._held = held
        self._storing, self._scenarios, self._parts, self._silence = storing, scenarios, parts, silence
        self._scenario = scenarios.get
        self._backoff = Backoff(rng)
        self._world, self._now, self._unclear = world, now, unclear

    async def reconcile(self, name: str) -> float | None:
        """Do what there is to do now; returns after how many seconds to look again."""
        scenario = self._scenario(name)
        if scenario is None or scenario.stage in OVER:
            self._backoff.forget(name)
            return None if scenario is None else await self._after_end(name, scenario.by)
        if kind_traits(scenario.kind).in_waves:
            await self._waves(name, scenario)
        else:
            await self._switch(name, scenario)
            await self._settle(name)
        return POLL_S

    async def _after_end(self, name: str, author: str) -> float:
        """Give back hosts that ended work still holds, as earlier versions left it; forget old work that holds none."""
        now, held = self._now(), partial(self._held, name)
        for decision in release_decisions(partial(self._scenario, name), held, now):
            await self._storing.decide(decision)
        very_old = forgettable(self._scenarios.values(), author, now.ms)
        names = [one for one in very_old if not self._held(one)][:_FORGOTTEN_AT_ONCE]
        if names:
            await self._storing.transact(lambda book: forget_scenarios(book, names))
        return 0.0 if len(names) == _FORGOTTEN_AT_ONCE else _FORGET_EVERY_S

    async def _waves(self, name: str, scenario: Scenario) -> None:
        """Take work in waves further; while nothing may begin, only work that is over: it gives its hosts back."""
        why = self._storing.why_nothing_begins()
        if why and scenario.stage != SCENARIO_STAGE_RETURNING:
            await self._storing.transact(lambda book: show_waiting(book, name, why))
            return
        coming, returning = hosts_to_ask_hq_about(scenario, self._now().ms)
        hq = await self._silence.view(coming, returning)
        now, held = self._now(), partial(self._held, name)
        for decision in wave_decisions(partial(self._scenario, name), held, self._world, now, hq):
            await self._storing.decide(decision)

    async def _switch(self, name: str, scenario: Scenario) -> None:
        held = [host.name for host in scenario.host if is_held(host)]
        if scenario.stage == SCENARIO_STAGE_RETURNING:
            await self._resume(scenario, held)  # before the tasks go: with the last one the scenario is over
        await self._ask_all(name, scenario)
        await self._settle(name)
        fresh = self._scenario(name)
        if fresh is None or not is_confirmed(fresh):
            return
        if why := self._unclear(held):
            await self._storing.transact(lambda book: show_waiting(book, name, why))
            return
        await self._suspend(name, held)
        await self._storing.decide(lambda book: may_begin(book, name, self._now()))

    async def _suspend(self, name: str, held: Sequence[str]) -> None:
        """Have HQ not count silence there. If HQ does not accept this, the scenario shows that it waits for HQ."""
        try:
            await asyncio.gather(*(self._silence.suspend(one, SUSPENDED_S, f"scenario {name}") for one in held))
        except ServiceError as error:
            text = f"HQ still expires silent instances: {error}"
            await self._storing.transact(lambda book: show_waiting(book, name, text))
            raise

    async def _resume(self, scenario: Scenario, held: Sequence[str]) -> None:
        """Have HQ count silence again. If HQ is away, hosts are not kept waiting: suspensions expire by themselves."""
        calls = (self._silence.resume(one, f"scenario {scenario.id}") for one in held)
        failed = [one for one in await asyncio.gather(*calls, return_exceptions=True) if one is not None]
        if failed and self._now().ms - scenario.since_ms < RESUME_MS:
            raise failed[0]

    async def _settle(self, name: str) -> None:
        await self._storing.decide(lambda book: settle_scenario(book, name, self._now()))

    async def _ask_all(self, name: str, scenario: Scenario) -> None:
        """Ask all, a few in parallel, and store the answers in one transaction: a rack has minutes, not an hour."""
        room = asyncio.Semaphore(AT_ONCE)
        now_ms = self._now().ms
        due = [pair for pair in effects(scenario) if self._backoff.may_try(name, _call_name(pair[1]), now_ms)]
        answers = await asyncio.gather(*(self._ask(room, scenario, *pair) for pair in due))
        now = self._now()
        for effect, answer in answers:
            self._backoff.note(name, _call_name(effect), now.ms, failed=isinstance(answer, CmsFailure))

        def take(book: WalleTransaction) -> None:
            for effect, answer in answers:
                if isinstance(answer, CmsFailure):
                    take_scenario_failure(book, name, effect.task.id, str(answer))
                else:
                    take_scenario_answer(book, name, effect, answer, now)

        await self._storing.transact(take)

    async def _ask(
        self, room: asyncio.Semaphore, scenario: Scenario, host: ScenarioHost, effect: Effect
    ) -> tuple[Effect, CmsAnswer | CmsFailure | None]:
        async with room:
            try:
                cms = self._parts.cms(self._project_of(host.name), effect.task.cms)
                return effect, await _call(cms, scenario, host, effect)
            except CmsFailure as error:
                return effect, error

    def _project_of(self, name: str) -> str:
        host: Host | None = self._storing.host(name)
        return host.project if host is not None else ""


def _call_name(effect: Effect) -> str:
    return f"{effect.do} {effect.task.id}"


async def _call(cms: CmsPort, scenario: Scenario, host: ScenarioHost, effect: Effect) -> CmsAnswer | None:
    """Call the CMS; None: it does not know the task (any more)."""
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
