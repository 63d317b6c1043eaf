"""What a client of service discovery knows: the instances as a watch told them. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

_TRUE = instance_pb2.CONDITION_STATUS_TRUE


class Seen(NamedTuple):
    """What discovery knows of one instance.

    Attributes:
        revision: the one that is ready; empty: none is.
        reason: of its readiness, one word.
    """

    service: str
    revision: str
    reason: str


class Turn(NamedTuple):
    """An instance that became ready, or ceased to be, and why."""

    ready: bool
    reason: str
    location: str


class View:
    """All instances of all locations, and how many of them are ready."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], Seen] = {}
        self._doubted: set[tuple[str, str]] = set()

    def put(self, instance: instance_pb2.Instance) -> Turn | None:
        """An instance as it is now; what that means for its readiness."""
        key = (instance.meta.cluster, instance.meta.id)
        before, now = self._seen.get(key), _seen(instance)
        self._seen[key] = now
        self._doubted.discard(key)
        was_ready, is_ready = bool(before and before.revision), bool(now.revision)
        return None if was_ready == is_ready else Turn(is_ready, now.reason, key[0])

    def delete(self, ref: pb.InstanceRef) -> None:
        """An instance that is no more."""
        self._seen.pop((ref.cluster, ref.id), None)

    def doubt(self, locations: Collection[str]) -> None:
        """A new snapshot of these locations begins; none named: of all."""
        self._doubted |= {key for key in self._seen if not locations or key[0] in locations}

    def settle(self, locations: Collection[str]) -> None:
        """Their snapshots are complete: what they did not mention is no more."""
        gone = {key for key in self._doubted if key[0] in locations}
        self._doubted -= gone
        self._seen = {key: seen for key, seen in self._seen.items() if key not in gone}

    def ready_in(self, location: str, instance_ids: Iterable[str], revision: str) -> int:
        """How many of these instances are ready with that very revision."""
        found = (self._seen.get((location, id_)) for id_ in instance_ids)
        return sum(seen is not None and seen.revision == revision for seen in found)

    def total(self) -> Counter[tuple[str, str]]:
        """Instances by location and service."""
        return Counter((location, seen.service) for (location, _), seen in self._seen.items())

    def ready(self) -> Counter[tuple[str, str]]:
        """Those of them that are ready."""
        return Counter((location, seen.service) for (location, _), seen in self._seen.items() if seen.revision)

    def revisions(self, service: str) -> Counter[str]:
        """Ready instances of a service by the revision that is ready."""
        return Counter(seen.revision for seen in self._seen.values() if seen.service == service and seen.revision)


def _seen(instance: instance_pb2.Instance) -> Seen:
    ready = [revision.id for revision in instance.status.revision if revision.ready.status == _TRUE]
    condition = instance.status.ready
    revision = ready[0] if ready and condition.status == _TRUE else ""
    return Seen(instance.meta.service_id, revision, condition.reason)
