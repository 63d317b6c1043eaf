"""Sending actions to one installation, once. What a failure means for the whole is for `uploading.py` to say."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from clients.client import Client
from clients.errors import HqApiError
from clients.nanny.actions import Action
from clients.nanny.batches import way_of
from clients.nanny.results import Outcome, Result, failure, of_item
from hqpb.v1 import instance_pb2

SECRETS = "spec.revision.secret"
DEPLOYED = ("meta.service_id", "meta.labels", "meta.annotations", "spec.resource_request", "spec.revision")
SCHEDULED = ("spec.allocation", "spec.node_name")


async def write(client: Client, batch: Sequence[Action]) -> list[Result]:
    """One result for each action of a batch, in order. Never raises for what a call ended with."""
    if way_of(batch[0]) == "apply":
        return await _apply(client, batch)
    return list(await asyncio.gather(*(_alone(client, action) for action in batch)))


def to_send(action: Action) -> instance_pb2.Instance:
    """The instance as it goes out: what belongs to the scheduler only where it changes."""
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


async def _apply(client: Client, batch: Sequence[Action]) -> list[Result]:
    try:
        answer = await client.apply([to_send(action) for action in batch], epoch=batch[0].epoch)
    except HqApiError as error:
        return [_failed(action, error) for action in batch]
    return [of_item(item) for item in answer.result]


async def _alone(client: Client, action: Action) -> Result:
    try:
        return await _send(client, action)
    except HqApiError as error:
        return _failed(action, error)


async def _send(client: Client, action: Action) -> Result:
    match way_of(action):
        case "create":
            # Not by ApplyInstances: without a version it would replace what somebody else created meanwhile.
            created = await client.create(to_send(action))
            return Result(action.id, Outcome.CREATED, created.instance.meta.version)
        case "delete":
            assert action.before is not None
            await client.delete(action.id, version=action.before.instance.meta.version, epoch=action.epoch)
            return Result(action.id, Outcome.DELETED)
        case _:
            sent = to_send(action)
            told = [path for path in SCHEDULED if sent.spec.HasField("allocation") and path == SCHEDULED[0]]
            told += [SCHEDULED[1]] if sent.spec.node_name else []
            updated = await client.update(sent, fields=(*DEPLOYED, *told, SECRETS), epoch=action.epoch)
            return Result(action.id, Outcome.UPDATED, updated.instance.meta.version)


def _failed(action: Action, error: HqApiError) -> Result:
    if error.outcome_unknown:
        return Result(action.id, Outcome.UNKNOWN, message=error.message)
    field = error.violations[0].field if error.violations else ""
    return failure(action.id, error.code.name, error.reason, error.message, field)
