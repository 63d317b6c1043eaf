"""Writes of hq.v1.InstanceService: checked requests in, use cases, the stored instance out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from google.protobuf.message import Message

from hq.memory.entry import Entry
from hq.registry.changes import SCHEDULER_PATHS
from hq.registry.preconditions import Permit, Precondition
from hq.registry.registry import Registry
from hq.validation import (
    check_id,
    check_instance_update,
    check_item_count,
    check_new_instance,
    check_request_id,
    check_revision,
    check_service,
    require,
)
from hqapi.requests import REPEATED_HEADER, item_error
from hqpb.v1 import service_pb2
from serving.calls.methods import Answer, Call
from serving.encoding.jsonio import MessageAnswer
from serving.errors import invalid
from serving.rights.access import WRITERS, Access


class Edits:
    """The writing calls of deploy systems and schedulers."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def create(self, request: service_pb2.CreateInstanceRequest, call: Call) -> Answer:
        check_new_instance(request.instance)
        require(check_request_id(request.request_id))
        entry = await self._registry.writes.create(
            request.instance,
            request.request_id,
            self._registry.deadline(call.deadline),
            validate_only=request.validate_only,
            permit=call.access.check,
            repeated=call.header(REPEATED_HEADER) != "",
        )
        return _stored_answer(service_pb2.CreateInstanceResponse, entry, call)

    async def update(self, request: service_pb2.UpdateInstanceRequest, call: Call) -> Answer:
        mask = list(request.update_mask.paths) if request.HasField("update_mask") else None
        whole = not mask or "meta.service_id" in mask or "*" in mask or "meta" in mask
        check_instance_update(request.instance, service_required=whole)
        require(check_service(request.service_id))
        demanded = Precondition(request.instance.meta.version, request.epoch, request.service_id)
        entry = await self._registry.writes.update(
            request.instance,
            mask,
            demanded,
            self._registry.deadline(call.deadline),
            validate_only=request.validate_only,
            permit=_update_permit(call.access, mask),
        )
        return _stored_answer(service_pb2.UpdateInstanceResponse, entry, call)

    async def delete(self, request: service_pb2.DeleteInstanceRequest, call: Call) -> Answer:
        require(check_id(request.id, "id"), check_service(request.service_id))
        demanded = Precondition(request.version, request.epoch, request.service_id)
        version = await self._registry.writes.delete(
            request.id, demanded, self._registry.deadline(call.deadline), call.access.check
        )
        call.note_write(request.id, version)
        return MessageAnswer(service_pb2.DeleteInstanceResponse(version=version))

    async def apply(self, request: service_pb2.ApplyInstancesRequest, call: Call) -> Answer:
        require(check_item_count(len(request.instance), "instance"), check_service(request.service_id))
        _check_unique([instance.meta.id for instance in request.instance])
        results = await self._registry.apply.apply(
            list(request.instance),
            request.epoch,
            self._registry.deadline(call.deadline),
            validate_only=request.validate_only,
            permit=call.access.check,
            service=request.service_id,
        )
        for result in results:
            call.note_write(result.instance_id, result.version, result.error.reason if result.error else "")
        items = [
            service_pb2.ApplyResult(
                id=r.instance_id,
                outcome=r.outcome,
                version=r.version,
                error=item_error(r.error) if r.error else None,
            )
            for r in results
        ]
        return MessageAnswer(service_pb2.ApplyInstancesResponse(result=items))

    async def put_revision(self, request: service_pb2.PutRevisionRequest, call: Call) -> Answer:
        require(check_id(request.instance_id, "instance_id"), check_service(request.service_id))
        check_revision(request.revision)
        if other := set(request.update_mask.paths) - {"secret"}:
            raise invalid("update_mask", f"{min(other)!r} cannot be named here; only `secret` can")
        entry = await self._registry.writes.put_revision(
            request.instance_id,
            request.revision,
            Precondition(request.version, request.epoch, request.service_id),
            self._registry.deadline(call.deadline),
            clear_secrets="secret" in request.update_mask.paths,
            validate_only=request.validate_only,
            permit=call.access.check,
        )
        return _stored_answer(service_pb2.PutRevisionResponse, entry, call)

    async def delete_revision(self, request: service_pb2.DeleteRevisionRequest, call: Call) -> Answer:
        require(
            check_id(request.instance_id, "instance_id"),
            check_id(request.revision_id, "revision_id"),
            check_service(request.service_id),
        )
        demanded = Precondition(request.version, request.epoch, request.service_id)
        entry = await self._registry.writes.delete_revision(
            request.instance_id,
            request.revision_id,
            demanded,
            self._registry.deadline(call.deadline),
            call.access.check,
        )
        return _stored_answer(service_pb2.DeleteRevisionResponse, entry, call)


def _stored_answer(answer: Callable[..., Message], entry: Entry, call: Call) -> Answer:
    call.note_write(entry.traits.id, entry.version)
    return MessageAnswer(answer(instance=entry.instance()))


def _update_permit(access: Access, mask: list[str] | None) -> Permit:
    """What an update may touch: a scheduler must name the fields it writes, and may name only its own."""
    if mask and set(mask) <= set(SCHEDULER_PATHS):
        return access.check
    if access.is_checked and not set(WRITERS) & access.grants.keys():
        access.deny(f"an update_mask beyond {' and '.join(SCHEDULER_PATHS)}", WRITERS)
    return partial(access.check, roles=WRITERS)


def _check_unique(ids: list[str]) -> None:
    seen: set[str] = set()
    for i, instance_id in enumerate(ids):
        if instance_id in seen:
            raise invalid(f"instance[{i}].meta.id", f"{instance_id!r} occurs twice in one request")
        seen.add(instance_id)
