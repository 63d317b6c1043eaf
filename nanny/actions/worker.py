"""The reconciler of a service: looks at its record and at HQ, and does the next step of whatever is in progress."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from control import Controller, Events
from nanny.actions.activation import Activation
from nanny.actions.checks import RolloutChecks
from nanny.actions.contents import Contents
from nanny.actions.effects import Effects
from nanny.actions.health import HealthMonitor
from nanny.actions.level_steps import LevelSteps
from nanny.actions.own_targets import OwnTargets, holds
from nanny.actions.progress_clock import ProgressClock
from nanny.actions.shares import WeightShares
from nanny.actions.stages import differences
from nanny.actions.subject import ServiceContext
from nanny.automaton.service import RunningAction
from nanny.automaton.states import Action, Current
from nanny.records import kinds
from nanny.records.services import policy_of, service_of
from nanny.rollout.views import Key
from nanny.snapshots.wanted import generation_of
from nanny.world.pictures import ServiceView, ServiceViews
from nannypb.v1.records_pb2 import HealthRecord, InstanceTargetRecord, ServiceEvent, ServiceRecord

log = logging.getLogger(__name__)

_READ_S: Final = 3.0
_CLEAN_S: Final = 1.0
REPAIR: Final = 0


class Worker:
    """`run` is what the kit calls for each service, one run at a time."""

    def __init__(
        self,
        controller: Controller,
        events: Events[ServiceEvent],
        pictures: ServiceViews,
        contents: Contents,
        effects: Effects,
        checks: RolloutChecks,
        drift_every_s: float,
    ) -> None:
        self.controller, self._events, self._pictures = controller, events, pictures
        self._contents, self._effects, self._drift_every_s = contents, effects, drift_every_s
        self._progress = ProgressClock(controller.clock)
        self._levels = LevelSteps(effects, self._progress)
        self._activation = Activation(effects, self._progress, contents, checks)
        self._checks = checks
        self._own = OwnTargets(effects, contents)
        self._shares = WeightShares(effects, contents)
        self._health = HealthMonitor()

    async def run(self, service_id: str) -> float | None:
        """Look once, and do one step of each action. Return in how many seconds to look again."""
        record = self.controller.records(kinds.SERVICE).get(service_id)
        if record is None:
            self._health.forget(service_id)
            return None
        service = service_of(record)
        if service.paused:
            self._progress.pause(service_id)
            return await self._give_back_while_paused(service_id, record)
        async with self.picture(service_id) as picture:
            subject = await self._with_holds(self._subject(service_id, record, picture))
            if await self._went_back(subject):
                return None
            is_clean = await self._effects.clean(subject)
            await self._own.forget_wiped(subject)
            again_s = await self._steps(subject)
            return again_s if is_clean else min(again_s or _CLEAN_S, _CLEAN_S)

    @asynccontextmanager
    async def picture(self, service_id: str) -> AsyncIterator[ServiceView]:
        """A service in HQ, once every location that answers was read."""
        async with self._pictures.view_of(service_id) as picture:
            await picture.settle(picture.is_read, _READ_S)
            yield picture

    @asynccontextmanager
    async def subject(self, service_id: str) -> AsyncIterator[ServiceContext]:
        """A service as it is now, once every location that answers was read. Raises KeyError."""
        async with self.picture(service_id) as picture:
            yield self._subject(service_id, self.controller.records(kinds.SERVICE)[service_id], picture)

    async def _steps(self, subject: ServiceContext) -> float | None:
        waits = [await self._own.step(subject)]
        waits += [await self._step(subject, running) for running in list(subject.service.running())]
        if not any(True for _ in subject.service.running()):
            if not subject.record.drift:
                self._progress.forget(subject.id)
                self._checks.forget(subject.id)
            waits.append(await self._rest(subject))
        waits.append(await self._shares.step(subject))
        told = [wait_s for wait_s in waits if wait_s is not None]
        return min(told) if told else None

    async def _step(self, subject: ServiceContext, running: RunningAction) -> float | None:
        if self._effects.has_leave_of_another(subject, running):
            return _CLEAN_S
        content = await self._contents.content_of(subject.id, running.snapshot)
        if running.action is Action.ACTIVATE:
            return await self._activation.step(subject, running, content)
        wanted = subject.service.wanted_active()
        needs = await self._contents.needs(subject, content)
        if running.action is Action.DEACTIVATE and wanted:
            kept = (await self._contents.content_of(subject.id, wanted)).placements
            return await self._levels.step(subject, running, content, needs, kept)
        return await self._levels.step(subject, running, content, needs)

    async def _rest(self, subject: ServiceContext) -> float | None:
        """While no action runs, show drift in HQ and repair it in batches, as a roll-out does."""
        active = next((one for one, state in subject.service.tuples.items() if state.current is Current.ACTIVE), "")
        wanted = active or subject.service.wanted_active()
        if not wanted:
            self._health.forget(subject.id)
            await self._show(subject, [], HealthRecord())
            return None
        content = await self._contents.content_of(subject.id, wanted)
        found = differences(subject, content) if active else []
        await self._show(subject, found, self._health.health_record(subject, content, self.controller.clock.now()))
        if not active:
            return self._drift_every_s
        if not found:
            return self._drift_every_s
        subject = replace(subject, record=self.controller.records(kinds.SERVICE)[subject.id])
        repair = RunningAction(active, Action.ACTIVATE, REPAIR)
        if not self._effects.has_leave_of_another(subject, repair):
            await self._activation.step(subject, repair, content)
        return 1.0

    async def _show(self, subject: ServiceContext, found: list[str], health: HealthRecord) -> None:
        is_known = list(subject.record.drift) == found
        if is_known and subject.record.health == health:
            return
        if found and not is_known:
            log.warning("%s: HQ differs from the targets: %s", subject.id, "; ".join(found))
        change = self.controller.change()
        record = change.get(kinds.SERVICE, subject.id)
        assert record is not None
        record.drift[:] = found
        record.health.CopyFrom(health)
        change.put(kinds.SERVICE, subject.id, record)
        await change.commit()

    async def _give_back_while_paused(self, service_id: str, record: ServiceRecord) -> float | None:
        """Touch no further instance, but give back the leave of a batch that is ready."""
        async with self._pictures.view_of(service_id) as picture:
            subject = self._subject(service_id, record, picture)
            for snapshot, state in subject.service.tuples.items():
                if state.current is Current.ACTIVATING:
                    running = RunningAction(snapshot, Action.ACTIVATE, state.action)
                    content = await self._contents.content_of(service_id, snapshot)
                    return await self._activation.give_back_if_ready(subject, running, content)
        return None

    async def _went_back(self, subject: ServiceContext) -> bool:
        """Whether a later order than any known here wrote to HQ: records were restored. If so, pause and say so."""
        instances, created_ms = subject.instances, subject.created_ms
        tally = subject.picture.tally(
            ("generation", created_ms),
            lambda key: generation_of(instances[key], created_ms) if key in instances else None,
        )
        newest = max((generation for generation, keys in tally.groups().items() if keys), default=0)
        if newest <= subject.record.generation:
            return False
        event = ServiceEvent(paused=True, generation=newest)
        event.by.author = "nanny"
        event.by.comment = (
            f"Nanny's store was restored to an older state (HQ has changes of request {newest}, Nanny knows only "
            f"{subject.record.generation}): check the targets with `nanny service show {subject.id}`, then "
            f"`nanny resume {subject.id}`"
        )
        await self._events.submit(subject.id, event, request_id=f"went-back-{newest}")
        return True

    async def _with_holds(self, subject: ServiceContext) -> ServiceContext:
        holds = await self._effects.leave.holds_of_others(subject.id)
        if not holds:
            return subject
        instances = subject.instances
        tally = subject.picture.tally("node", lambda key: instances[key].spec.node_name if key in instances else None)
        by_node = tally.groups()
        held: set[Key] = set()
        for hold in holds:
            held.update(hold.instances, *(by_node.get(host, ()) for host in hold.hosts))
        return replace(subject, held_by_others=frozenset(held))

    def _subject(self, service_id: str, record: ServiceRecord, picture: ServiceView) -> ServiceContext:
        subject = ServiceContext(
            service_id,
            record,
            service_of(record),
            policy_of(service_id, record),
            picture,
            away=picture.away(),
        )
        orders = self.controller.records(kinds.INSTANCE_TARGET)
        own: dict[Key, InstanceTargetRecord] = {}
        if any(state.overrides for state in subject.service.tuples.values()):
            for name in [name for name in orders if name.startswith(f"{service_id}/")]:
                if holds(subject, orders[name]):
                    own[kinds.instance_of(name)] = orders[name]
        return replace(subject, own_targets=own)
