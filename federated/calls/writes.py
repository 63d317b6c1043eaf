"""Writes over several locations: each instance goes where it belongs, and each item has its own result."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf.message import Message

from federated.calls.asking import caller_metadata
from federated.calls.owners import Owners, OwnerSearch
from federated.clock import FederatedClock
from federated.errors import NAME_IT, relayed_error
from federated.locations.locations import Locations
from federated.locations.plan import select_locations
from hqapi.requests import CLUSTER_HEADER, MAX_ITEMS, REPEATED_HEADER, item_error, requested_cluster
from hqclient.errors import HqApiError
from hqclient.retry import REPEATED, Safety
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import NotFound, Retry, ServiceError, invalid

WRITE_TIMEOUT_S: Final = 10.0


class FederatedWrites:
    """The writing calls of one instance. Each returns the location's encoded answer and raises ServiceError."""

    def __init__(self, locations: Locations, search: OwnerSearch, clock: FederatedClock) -> None:
        self._locations, self._search, self._clock = locations, search, clock

    async def create(self, message: pb.CreateInstanceRequest, call: Call) -> bytes:
        """Create in the location that meta.cluster or the header names; without either, in the only one there is."""
        name = self.requested_location(message.instance.meta.cluster, "instance.meta.cluster", call) or self.only()
        if not name:
            known = ", ".join(self._locations.by_name)
            raise invalid("instance.meta.cluster", f"name the location to create it in: one of {known}")
        plain = pb.CreateInstanceRequest()
        plain.CopyFrom(message)
        plain.instance.meta.ClearField("cluster")  # the location sets it
        repeatable = bool(message.request_id) or message.validate_only
        return await self.send(name, "CreateInstance", plain, call, repeatable=repeatable)

    async def update(self, message: pb.UpdateInstanceRequest, call: Call) -> bytes:
        """Update in the location that meta.cluster or the header names, else where the instance is."""
        meta = message.instance.meta
        name = self.requested_location(meta.cluster, "instance.meta.cluster", call) or await self._owner(
            meta.id, "instance.meta.id", call
        )
        return await self.send(name, "UpdateInstance", message, call, repeatable=message.validate_only)

    async def delete(self, message: pb.DeleteInstanceRequest, call: Call) -> bytes:
        """Delete in the location that the header names, else where the instance is."""
        name = self.requested_location("", "", call) or await self._owner(message.id, "id", call)
        return await self.send(name, "DeleteInstance", message, call, repeatable=False)

    async def put_revision(self, message: pb.PutRevisionRequest, call: Call) -> bytes:
        """Put a revision in the location that the header names, else where the instance is."""
        name = self.requested_location("", "", call) or await self._owner(message.instance_id, "instance_id", call)
        return await self.send(name, "PutRevision", message, call, repeatable=message.validate_only)

    async def delete_revision(self, message: pb.DeleteRevisionRequest, call: Call) -> bytes:
        """Delete a revision in the location that the header names, else where the instance is."""
        name = self.requested_location("", "", call) or await self._owner(message.instance_id, "instance_id", call)
        return await self.send(name, "DeleteRevision", message, call, repeatable=False)

    def requested_location(self, cluster: str, field: str, call: Call) -> str:
        """The location that the caller names; empty: none. Raises InvalidRequest: unknown, or two different ones."""
        requested = requested_cluster(call)
        if requested and cluster and requested != cluster:
            raise invalid(
                field, f"it names {cluster}, but the header {CLUSTER_HEADER} names {requested}: send only one"
            )
        name = cluster or requested
        if name:
            select_locations(self._locations.by_name, [name], field if cluster else CLUSTER_HEADER)
        return name

    def most_items(self) -> int:
        """How many items one request can have: what all locations take together."""
        return MAX_ITEMS * len(self._locations.by_name)

    def only(self) -> str:
        """The only location there is; empty: there are several."""
        return next(iter(self._locations.by_name)) if len(self._locations.by_name) == 1 else ""

    def deadline(self, call: Call) -> float:
        """The caller's deadline, or the default if it set none."""
        return self._clock.now() + WRITE_TIMEOUT_S if call.deadline is None else call.deadline

    async def send(self, name: str, method: str, message: Message, call: Call, *, repeatable: bool) -> bytes:
        """Send a write to one location, and on failure to another of its replicas if that cannot store it twice."""
        safety = Safety.REPEATABLE if repeatable else Safety.UNLESS_STORED
        left_s = max(0.001, self.deadline(call) - self._clock.now())
        # If the configured addresses are another cluster's, its replicas refuse the write because of this header.
        repeated = (REPEATED,) if call.header(REPEATED_HEADER) else ()
        metadata = ((CLUSTER_HEADER, name), *repeated, *caller_metadata(call))
        location = self._locations.get(name)
        if location is None:
            raise Retry(f"location {name} was just removed from the gateway's configuration")
        try:
            return await location.write(method, message.SerializeToString(), safety, left_s, metadata)
        except HqApiError as error:
            raise relayed_error(error, name) from error

    async def _owner(self, instance_id: str, field: str, call: Call) -> str:
        if only := self.only():
            return only
        if not instance_id:
            raise invalid(field, f"an id is needed to find its location: send it, or {NAME_IT}")
        return (await self._search.owners({instance_id: field}, self.deadline(call), call)).one(instance_id)


_INDEX: Final = re.compile(r"\binstance\[(\d+)\]")


class Applying:
    """The call for many instances."""

    def __init__(self, writes: FederatedWrites, search: OwnerSearch) -> None:
        self._writes, self._search = writes, search

    async def apply(self, message: pb.ApplyInstancesRequest, call: Call) -> bytes:
        """Send every item to the location of its meta.cluster, or that of the header, or its owner.

        Raises:
            PermissionDenied: the gateway's own policy denies an item, so none is written.
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
            call.note_write(result.id, result.version, result.error.reason)
        return pb.ApplyInstancesResponse(result=[results[i] for i in range(len(message.instance))]).SerializeToString()

    async def _places(
        self, message: pb.ApplyInstancesRequest, call: Call, results: dict[int, pb.ApplyResult]
    ) -> dict[int, str]:
        """The location of each item; items that have none get their result here."""
        places = {
            i: self._writes.requested_location(item.meta.cluster, f"instance[{i}].meta.cluster", call)
            or self._writes.only()
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
            service_id=message.service_id,
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
                result.error.field = _renumber_items(result.error.field, indexes)
                result.error.message = _renumber_items(result.error.message, indexes)
        return dict(zip(indexes, answer.result, strict=True))


def _check_all(message: pb.ApplyInstancesRequest, places: Mapping[int, str], call: Call) -> None:
    """Raises PermissionDenied: the gateway's policy denies one item, so none goes to any location."""
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


def _renumber_items(text: str, indexes: Sequence[int]) -> str:
    """Positions in the batch of a location become those in the caller's request."""
    return _INDEX.sub(lambda m: f"instance[{indexes[int(m[1])] if int(m[1]) < len(indexes) else m[1]}]", text)
