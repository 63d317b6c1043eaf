"""A ready instance, the endpoint that one of its ports makes, and how the endpoints of a service change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from hqpb.v1 import instance_pb2

DEFAULT_WEIGHT: Final = 100
MAX_WEIGHT: Final = 1_000
Key = tuple[str, str]
"""Cluster and instance id: an id is unique in its cluster only."""


@dataclass(frozen=True, slots=True)
class KnownInstance:
    """The fields kept of an instance. Not its version: an update that changes none of these fields is not a change.

    Attributes:
        host: its own name or address, else its node's; empty: neither is known.
        ports: allocated numbers by name.
        revisions: ids of the revisions that are ready, the one wanted READY first.
        is_ready: False only if instances that are not ready were requested, too.
        weight: its share of new traffic; 0: none.
    """

    cluster: str
    id: str
    uid: int
    service: str
    node: str
    host: str
    ports: Mapping[str, int] = field(hash=False)
    labels: Mapping[str, str] = field(hash=False)
    revisions: tuple[str, ...] = ()
    is_ready: bool = True
    weight: int = DEFAULT_WEIGHT

    @property
    def key(self) -> Key:
        return self.cluster, self.id


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one ready instance of a service is reached.

    Attributes:
        service: the service asked for.
        host: name or address.
        port: number of the port asked for by name.
        revision: the ready revision; the one wanted READY if two are.
        uid: an instance that is recreated under the same id gets a new one.
        weight: its share of new traffic; 0: none.
    """

    service: str
    host: str
    port: int
    node: str
    instance_id: str
    uid: int
    cluster: str
    revision: str
    labels: Mapping[str, str] = field(hash=False)
    weight: int = DEFAULT_WEIGHT

    @property
    def address(self) -> str:
        """`host:port`; an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def key(self) -> Key:
        """Which instance: endpoints are ordered by this."""
        return self.cluster, self.instance_id

    @property
    def identity(self) -> tuple[str, str, int, str, int]:
        """Who answers there: the endpoint's health record is discarded when this changes."""
        return self.cluster, self.instance_id, self.uid, self.host, self.port


def ready_instance(instance: instance_pb2.Instance) -> KnownInstance | None:
    """Return the fields that discovery keeps of an instance; None: it is not ready."""
    return known_instance(instance) if _holds(instance.status.ready) else None


def known_instance(instance: instance_pb2.Instance) -> KnownInstance:
    """Return the fields that discovery keeps of any instance, ready or not."""
    meta, spec = instance.meta, instance.spec
    return KnownInstance(
        cluster=meta.cluster,
        id=meta.id,
        uid=meta.uid,
        service=meta.service_id,
        node=spec.node_name,
        host=spec.allocation.host or spec.node_name,
        ports={port.name: port.number for port in spec.allocation.port},
        labels=dict(meta.labels),
        revisions=_ready_revisions(instance),
        is_ready=_holds(instance.status.ready),
        weight=spec.weight if spec.HasField("weight") else DEFAULT_WEIGHT,
    )


def endpoint(instance: KnownInstance, port: str, revision: str = "") -> Endpoint | None:
    """The endpoint that a named port makes.

    None: the instance is not ready, has no such port or no host, or the revision asked for is not ready in it.
    """
    if not instance.is_ready or port not in instance.ports or not instance.host:
        return None
    if revision and revision not in instance.revisions:
        return None
    return Endpoint(
        service=instance.service,
        host=instance.host,
        port=instance.ports[port],
        node=instance.node,
        instance_id=instance.id,
        uid=instance.uid,
        cluster=instance.cluster,
        revision=revision or (instance.revisions[0] if instance.revisions else ""),
        labels=instance.labels,
        weight=instance.weight,
    )


Weighted = TypeVar("Weighted", KnownInstance, Endpoint)


def with_traffic(among: Sequence[Weighted]) -> Sequence[Weighted]:
    """The endpoints that take new traffic: weight above 0, or all if every weight is 0."""
    return [one for one in among if one.weight] or among


def _ready_revisions(instance: instance_pb2.Instance) -> tuple[str, ...]:
    wanted = {r.id for r in instance.spec.revision if r.target == instance_pb2.REVISION_TARGET_READY}
    ready = [r.id for r in instance.status.revision if _holds(r.ready)]
    return tuple(sorted(ready, key=lambda id_: (id_ not in wanted, id_)))


def _holds(condition: instance_pb2.Condition) -> bool:
    return condition.status == instance_pb2.CONDITION_STATUS_TRUE


@dataclass(frozen=True, slots=True)
class EndpointChanges:
    """One step from one list to the next.

    Attributes:
        service: the one that the endpoints belong to.
        added: new endpoints; in a subscriber's first call: all that exist.
        removed: endpoints that are gone, in their last state.
        changed: (before, after) of those whose address, revision, labels, weight or uid differ.
        resync: why continuity was lost before this step; empty: it was not.
        collapsed: steps in between may be missing: HQ or the subscriber could not keep up, or there was a resync.
    """

    service: str
    added: tuple[Endpoint, ...] = ()
    removed: tuple[Endpoint, ...] = ()
    changed: tuple[tuple[Endpoint, Endpoint], ...] = ()
    resync: str = ""
    collapsed: bool = False

    def __bool__(self) -> bool:
        """Whether something changed, or may have changed in between."""
        return bool(self.added or self.removed or self.changed or self.resync or self.collapsed)


class NotReady(TimeoutError):
    """`ready` timed out; str() says what it waited for and what is known instead."""


class NoEndpoints(LookupError):
    """There is nothing to pick from; str() says why."""
