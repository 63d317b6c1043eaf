"""ApplyInstances over several locations: each item goes where it belongs, each has its own result."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from federated.calls.owners import Owners, OwnerSearch
from federated.calls.writes import Writes
from federated.errors import NAME_IT
from hqapi.requests import item_error
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import NotFound, ServiceError, invalid

_INDEX: Final = re.compile(r"\binstance\[(\d+)\]")


class Applying:
    """The call for many instances."""

    def __init__(self, writes: Writes, search: OwnerSearch) -> None:
        self._writes, self._search = writes, search

    async def apply(self, message: pb.ApplyInstancesRequest, call: Call) -> bytes:
        """Send every item to the location of its meta.cluster, or that of the header, or its owner.

        Raises:
            PermissionDenied: the front's own policy denies an item, so none is written.
            ServiceError: a location is not known, an id is malformed, or there are more items than all locations take;
                faults of single items are in their results.
        """
        if (count := len(message.instance)) > (most := self._writes.most_items()):
            raise invalid("instance", f"{count} items are too many: send at most {most} at once")
        results: dict[int, pb.ApplyResult] = {}
        places = await self._places(message, call, results)
        _check_all(message, places, call)
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for index, name in places.items():
            groups[name].append(index)
        told = await asyncio.gather(*(self._send(name, message, indexes, call) for name, indexes in groups.items()))
        for part in told:
            results.update(part)
        for _, result in sorted(results.items()):
            call.touched(result.id, result.version, result.error.reason)
        return pb.ApplyInstancesResponse(result=[results[i] for i in range(len(message.instance))]).SerializeToString()

    async def _places(
        self, message: pb.ApplyInstancesRequest, call: Call, results: dict[int, pb.ApplyResult]
    ) -> dict[int, str]:
        """The location of each item; items that have none get their result here."""
        places = {
            i: self._writes.named(item.meta.cluster, f"instance[{i}].meta.cluster", call) or self._writes.only()
            for i, item in enumerate(message.instance)
        }
        unnamed = {i: message.instance[i].meta.id for i, name in places.items() if not name}
        if not unnamed:
            return places
        fields = {instance_id: f"instance[{i}].meta.id" for i, instance_id in reversed(unnamed.items())}
        owners = await self._search.owners(fields, self._writes.deadline(call), call)
        for i, instance_id in unnamed.items():
            try:
                places[i] = _owner(owners, instance_id, i)
            except ServiceError as error:
                del places[i]
                results[i] = pb.ApplyResult(id=instance_id, error=item_error(error))
        return places

    async def _send(
        self, name: str, message: pb.ApplyInstancesRequest, indexes: Sequence[int], call: Call
    ) -> Mapping[int, pb.ApplyResult]:
        batch = pb.ApplyInstancesRequest(
            instance=[message.instance[i] for i in indexes],
            validate_only=message.validate_only,
            epoch=message.epoch,
        )
        try:
            body = await self._writes.send(name, "ApplyInstances", batch, call, repeatable=message.validate_only)
        except ServiceError as error:
            if len(indexes) == len(message.instance):
                raise
            failed = item_error(error)
            return {i: pb.ApplyResult(id=message.instance[i].meta.id, error=failed) for i in indexes}
        answer = pb.ApplyInstancesResponse.FromString(body)
        for result in answer.result:
            if result.HasField("error"):
                result.error.field = _renumbered(result.error.field, indexes)
                result.error.message = _renumbered(result.error.message, indexes)
        return dict(zip(indexes, answer.result, strict=True))


def _check_all(message: pb.ApplyInstancesRequest, places: Mapping[int, str], call: Call) -> None:
    """Raises PermissionDenied: the front's policy denies one item, so none goes to any location."""
    for i, item in enumerate(message.instance):
        access = call.access.within(places[i]) if i in places else call.access
        access.check(item.meta.id, item.meta.service_id, item.spec.node_name)


def _owner(owners: Owners, instance_id: str, index: int) -> str:
    try:
        return owners.one(instance_id)
    except NotFound:
        known = ", ".join(owners.asked)
        text = f"no location has {instance_id} yet: to create it, {NAME_IT} (one of {known})"
        raise invalid(f"instance[{index}].meta.cluster", text) from None


def _renumbered(text: str, indexes: Sequence[int]) -> str:
    """Positions in the batch of a location become those in the caller's request."""
    return _INDEX.sub(lambda m: f"instance[{indexes[int(m[1])] if int(m[1]) < len(indexes) else m[1]}]", text)
