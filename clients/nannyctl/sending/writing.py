"""Sending one batch of actions to HQ, and validating a plan with HQ."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from hqclient.client import Client
from hqclient.errors import HqApiError
from hqpb.v1 import instance_pb2
from nannyctl.plans.plan import InstancePlan, PlannedAction, PlannedKind, batches, way_of
from nannyctl.sending.results import Result, UploadOutcome, failure, item_result

SECRETS = "spec.revision.secret"
DEPLOYED = ("meta.service_id", "meta.labels", "meta.annotations", "spec.resource_request", "spec.revision")
SCHEDULED = ("spec.allocation", "spec.node_name")
YOUNGER = ("spec.liveness", "spec.weight")  # a replica that does not know one refuses a write that names it


async def write(client: Client, batch: Sequence[PlannedAction], *, validate_only: bool = False) -> list[Result]:
    """One result for each action of a batch, in order. Never raises for a failed call.

    With `validate_only` HQ reports what it would do and stores nothing; deletions are not sent at all.
    """
    if way_of(batch[0]) == "apply":
        return await _apply(client, batch, validate_only)
    return list(await asyncio.gather(*(_alone(client, action, validate_only) for action in batch)))


def instance_to_send(action: PlannedAction) -> instance_pb2.Instance:
    """The instance as it goes out: the scheduler's fields only if they change."""
    assert action.after is not None
    sent = instance_pb2.Instance()
    sent.CopyFrom(action.after)
    if action.before is not None:
        before = action.before.instance.spec
        if sent.spec.allocation == before.allocation:
            sent.spec.ClearField("allocation")
        if sent.spec.node_name == before.node_name:
            sent.spec.ClearField("node_name")
    return sent


async def _apply(client: Client, batch: Sequence[PlannedAction], validate_only: bool) -> list[Result]:
    try:
        instances = [instance_to_send(action) for action in batch]
        answer = await client.apply(instances, epoch=batch[0].epoch, validate_only=validate_only)
    except HqApiError as error:
        return [_failed_result(action, error) for action in batch]
    return [item_result(item) for item in answer.result]


async def _alone(client: Client, action: PlannedAction, validate_only: bool) -> Result:
    try:
        return await _send(client, action, validate_only)
    except HqApiError as error:
        return _failed_result(action, error)


async def _send(client: Client, action: PlannedAction, validate_only: bool) -> Result:
    match way_of(action):
        case "create":
            # Not by ApplyInstances: without a version it would replace what somebody else created meanwhile.
            created = await client.create(instance_to_send(action), validate_only=validate_only)
            return Result(action.id, UploadOutcome.CREATED, created.instance.meta.version)
        case "delete":
            if not validate_only:
                assert action.before is not None
                await client.delete(action.id, version=action.before.instance.meta.version, epoch=action.epoch)
            return Result(action.id, UploadOutcome.DELETED)
        case _:
            sent = instance_to_send(action)
            fields = fields_to_send(action)
            updated = await client.update(sent, fields=fields, epoch=action.epoch, validate_only=validate_only)
            return Result(action.id, UploadOutcome.UPDATED, updated.instance.meta.version)


def fields_to_send(action: PlannedAction) -> list[str]:
    """What an update names that clears secrets: all that a description can change."""
    assert action.before is not None
    assert action.after is not None
    scheduled = _scheduler_fields(instance_to_send(action))
    return [*DEPLOYED, *_changed_fields(action.before.instance.spec, action.after.spec), *scheduled, SECRETS]


def _changed_fields(before: instance_pb2.InstanceSpec, after: instance_pb2.InstanceSpec) -> list[str]:
    old, new = ({f"spec.{field.name}": value for field, value in spec.ListFields()} for spec in (before, after))
    return [path for path in YOUNGER if old.get(path) != new.get(path)]


def _scheduler_fields(sent: instance_pb2.Instance) -> list[str]:
    """The scheduler's fields that have to be written."""
    told = (sent.spec.HasField("allocation"), bool(sent.spec.node_name))
    return [path for path, is_told in zip(SCHEDULED, told, strict=True) if is_told]


def _failed_result(action: PlannedAction, error: HqApiError) -> Result:
    if error.outcome_unknown:
        return Result(action.id, UploadOutcome.UNKNOWN, message=error.message)
    field = error.violations[0].field if error.violations else ""
    return failure(action.id, error.code.name, error.reason, error.message, field)


_NO = frozenset({UploadOutcome.REFUSED, UploadOutcome.NOT_ALLOWED})


async def check_plan(client: Client, plan: InstancePlan) -> InstancePlan:
    """The plan, with what HQ would refuse as REFUSED.

    A conflict is not a refusal: an upload would read again. Nor is a missing answer: an upload would report it.
    """
    refused: dict[str, Result] = {}
    for batch in batches(plan.writes):
        results = await write(client, batch, validate_only=True)
        refused |= {result.id: result for result in results if result.outcome in _NO}
    return replace(plan, actions=tuple(_mark_refused(action, refused) for action in plan.actions))


def _mark_refused(action: PlannedAction, refused: dict[str, Result]) -> PlannedAction:
    if action.id not in refused:
        return action
    note = f"HQ would refuse it: {refused[action.id].message}"
    return PlannedAction(action.id, PlannedKind.REFUSED, action.before, note=note)
