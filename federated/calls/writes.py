"""Writes go to one location: the one that the caller names, or the owner of the instance if exactly one has it."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

from federated.calls.asking import passed_on
from federated.calls.owners import OwnerSearch
from federated.clock import Clock
from federated.errors import NAME_IT, relayed
from federated.locations.locations import Locations
from federated.locations.plan import chosen
from hqapi.requests import CLUSTER_HEADER, MAX_ITEMS, requested_cluster
from hqclient.errors import HqApiError
from hqclient.retry import Safety
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import Retry, invalid

WRITE_TIMEOUT_S: Final = 10.0


class Writes:
    """The writing calls of one instance. Each returns the location's encoded answer and raises ServiceError."""

    def __init__(self, locations: Locations, search: OwnerSearch, clock: Clock) -> None:
        self._locations, self._search, self._clock = locations, search, clock

    async def create(self, message: pb.CreateInstanceRequest, call: Call) -> bytes:
        """Into the location that meta.cluster or the header names; without either into the only one there is."""
        name = self.named(message.instance.meta.cluster, "instance.meta.cluster", call) or self.only()
        if not name:
            known = ", ".join(self._locations.by_name)
            raise invalid("instance.meta.cluster", f"name the location to create it in: one of {known}")
        plain = pb.CreateInstanceRequest()
        plain.CopyFrom(message)
        plain.instance.meta.ClearField("cluster")  # there it is the location's to set
        repeatable = bool(message.request_id) or message.validate_only
        return await self.send(name, "CreateInstance", plain, call, repeatable=repeatable)

    async def update(self, message: pb.UpdateInstanceRequest, call: Call) -> bytes:
        """In the location that meta.cluster or the header names, else where the instance is."""
        meta = message.instance.meta
        name = self.named(meta.cluster, "instance.meta.cluster", call) or await self._owner(
            meta.id, "instance.meta.id", call
        )
        return await self.send(name, "UpdateInstance", message, call, repeatable=message.validate_only)

    async def delete(self, message: pb.DeleteInstanceRequest, call: Call) -> bytes:
        """In the location that the header names, else where the instance is."""
        name = self.named("", "", call) or await self._owner(message.id, "id", call)
        return await self.send(name, "DeleteInstance", message, call, repeatable=False)

    async def put_revision(self, message: pb.PutRevisionRequest, call: Call) -> bytes:
        """In the location that the header names, else where the instance is."""
        name = self.named("", "", call) or await self._owner(message.instance_id, "instance_id", call)
        return await self.send(name, "PutRevision", message, call, repeatable=message.validate_only)

    async def delete_revision(self, message: pb.DeleteRevisionRequest, call: Call) -> bytes:
        """In the location that the header names, else where the instance is."""
        name = self.named("", "", call) or await self._owner(message.instance_id, "instance_id", call)
        return await self.send(name, "DeleteRevision", message, call, repeatable=False)

    def named(self, cluster: str, field: str, call: Call) -> str:
        """The location that the caller names; empty: none. Raises InvalidRequest: unknown, or two different ones."""
        meant = requested_cluster(call)
        if meant and cluster and meant != cluster:
            raise invalid(field, f"it names {cluster}, but the header {CLUSTER_HEADER} names {meant}: send only one")
        name = cluster or meant
        if name:
            chosen(self._locations.by_name, [name], field if cluster else CLUSTER_HEADER)
        return name

    def most_items(self) -> int:
        """How many items one request can have: what all locations take together."""
        return MAX_ITEMS * len(self._locations.by_name)

    def only(self) -> str:
        """The only location there is; empty: there are several."""
        return next(iter(self._locations.by_name)) if len(self._locations.by_name) == 1 else ""

    def deadline(self, call: Call) -> float:
        """When the caller stops waiting; without a word of it, the default."""
        return self._clock.now() + WRITE_TIMEOUT_S if call.deadline is None else call.deadline

    async def send(self, name: str, method: str, message: Message, call: Call, *, repeatable: bool) -> bytes:
        """Send a write to one location; again, to another of its replicas, only if that cannot store it twice."""
        safety = Safety.REPEATABLE if repeatable else Safety.UNLESS_STORED
        left_s = max(0.001, self.deadline(call) - self._clock.now())
        # Whose addresses they are is a matter of configuration: a replica of another cluster refuses the order.
        metadata = (("x-request-id", call.request_id), (CLUSTER_HEADER, name), *passed_on(call))
        location = self._locations.get(name)
        if location is None:
            raise Retry(f"location {name} was just removed from the gateway's configuration")
        try:
            return await location.write(method, message.SerializeToString(), safety, left_s, metadata)
        except HqApiError as error:
            raise relayed(error, name) from error

    async def _owner(self, instance_id: str, field: str, call: Call) -> str:
        if only := self.only():
            return only
        if not instance_id:
            raise invalid(field, f"an id is needed to find its location: send it, or {NAME_IT}")
        return (await self._search.owners({instance_id: field}, self.deadline(call), call)).one(instance_id)
