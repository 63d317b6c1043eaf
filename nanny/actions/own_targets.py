"""Targets of single instances: HQ is changed for that instance only, with leave if it would stop serving."""

from __future__ import annotations

from typing import Final

from hqpb.v1 import instance_pb2
from nanny.actions import reports
from nanny.actions.contents import Contents
from nanny.actions.effects import Effects
from nanny.actions.needs import kept_target
from nanny.actions.subject import ServiceContext
from nanny.automaton.service import RunningAction
from nanny.automaton.states import Action
from nanny.records import kinds
from nanny.rollout.views import Key
from nanny.snapshots.wanted import CREATED, INSTALLED, READY, lowered_instance, switched_instance
from nannypb.v1 import service_pb2
from nannypb.v1.records_pb2 import ActionRecord, InstanceKey, InstanceTargetRecord

SOON_S: Final = 2.0


class OwnTargets:
    """Brings single instances to the targets they were given."""

    def __init__(self, effects: Effects, contents: Contents) -> None:
        self._effects, self._contents = effects, contents

    async def step(self, subject: ServiceContext) -> float | None:
        """Look once at all instances with own targets; return in how many seconds to look again."""
        again = None
        for key, order in subject.own_targets.items():
            if key[0] in subject.away or key not in subject.instances:
                continue
            if order.cms_task not in ("", _task(subject, key, order)):  # from the previous order
                if await self._effects.leave.give_back(order.cms_task):
                    await self._note(subject, key, order, "")
                again = SOON_S
                continue
            after = await self._after(subject, key, order)
            if after is not None:
                again = SOON_S
                await self._write(subject, key, order, after)
            elif not await self._is_finished(subject, key, order):
                again = SOON_S
        return again

    async def forget_wiped(self, subject: ServiceContext) -> None:
        """Remove orders that a roll-out or a stop has cancelled."""
        orders = self._effects.controller.records(kinds.INSTANCE_TARGET)
        for name in [name for name in orders if name.startswith(f"{subject.id}/")]:
            if holds(subject, orders[name]):
                continue
            key = kinds.instance_of(name)
            for task in {orders[name].cms_task, _task(subject, key, orders[name])} - {""}:
                await self._effects.leave.give_back(task)
            change = self._effects.controller.change()
            change.get(kinds.INSTANCE_TARGET, name)
            change.delete(kinds.INSTANCE_TARGET, name)
            await change.commit()

    async def _after(
        self, subject: ServiceContext, key: Key, order: InstanceTargetRecord
    ) -> instance_pb2.Instance | None:
        content = await self._contents.content_of(subject.id, order.snapshot_id)
        held = subject.held_instance(key)
        if held is None:
            return None
        if order.target == service_pb2.TARGET_ACTIVE:
            return switched_instance(content, key, held, subject.stamp) if key in content.placements else None
        target = INSTALLED if order.target == service_pb2.TARGET_PREPARED else CREATED
        needs = await self._contents.needs(subject, content)
        return lowered_instance(content.revision_id, held, kept_target(target, needs.get(key)), subject.stamp)

    async def _write(
        self, subject: ServiceContext, key: Key, order: InstanceTargetRecord, after: instance_pb2.Instance
    ) -> None:
        """Write an instance; one that serves is switched to another revision, or off, only with leave."""
        write = subject.write(key, after)
        if reports.is_ready(subject.instances[key]):
            comment = f"target of instance {key[1]}"
            answer = await self._effects.ask(_task(subject, key, order), subject, [key], comment)
            if not answer.granted:
                return
            await self._note(subject, key, order, _task(subject, key, order))
        running = RunningAction(order.snapshot_id, Action.ACTIVATE, 0)
        record = ActionRecord(batch=[InstanceKey(location=key[0], id=key[1])], message=f"target of {key[1]}")
        await self._effects.write(subject, running, record, [write])

    async def _is_finished(self, subject: ServiceContext, key: Key, order: InstanceTargetRecord) -> bool:
        """Whether an instance is as ordered; its leave is given back once it serves again or is no longer meant to."""
        instance = subject.instances.get(key)
        if instance is None:
            return False
        wants = any(revision.target == READY for revision in instance.spec.revision)
        if wants and not reports.is_ready(instance):
            return False
        if not await self._effects.leave.give_back(_task(subject, key, order)):
            return False
        await self._note(subject, key, order, "")
        return True

    async def _note(self, subject: ServiceContext, key: Key, order: InstanceTargetRecord, task: str) -> None:
        """Record what the CMS granted, so that it can be declared to a CMS whose store has a new history."""
        if order.cms_task == task or not self._effects.leave.address:
            return
        change = self._effects.controller.change()
        name = kinds.of_instance(subject.id, key)
        stored = change.get(kinds.INSTANCE_TARGET, name)
        if stored is not None and stored.overrides == order.overrides:
            stored.cms_task = task
            change.put(kinds.INSTANCE_TARGET, name, stored)
            await change.commit()


def holds(subject: ServiceContext, order: InstanceTargetRecord) -> bool:
    """Whether an order for one instance is still in force."""
    state = subject.service.tuples.get(order.snapshot_id)
    return state is not None and bool(state.overrides) and state.overrides == order.overrides


def _task(subject: ServiceContext, key: Key, order: InstanceTargetRecord) -> str:
    return f"nanny-{subject.id}-own-{order.overrides}-{key[0]}-{key[1]}-{order.target}"
