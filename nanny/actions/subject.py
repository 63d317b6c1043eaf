"""One service while a step works on it: its records, its content, and how HQ shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from descriptions.held import HeldInstance, held_instance
from hqpb.v1 import instance_pb2
from nanny.automaton.service import ManagedService
from nanny.rollout.policy import Policy
from nanny.rollout.views import Key
from nanny.snapshots.wanted import stamp_of
from nanny.world.pictures import ServiceView
from nanny.world.writing import InstanceWrite
from nannypb.v1.records_pb2 import InstanceTargetRecord, ServiceRecord


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """A service as a step sees it.

    Attributes:
        own_targets: orders in force for single instances, by instance.
        away: locations that must not be acted on, with the reason.
        held_by_others: instances that somebody else has leave to disrupt.
    """

    id: str
    record: ServiceRecord
    service: ManagedService
    policy: Policy
    picture: ServiceView
    own_targets: Mapping[Key, InstanceTargetRecord] = field(default_factory=dict)
    away: Mapping[str, str] = field(default_factory=dict)
    held_by_others: frozenset[Key] = frozenset()

    @property
    def instances(self) -> Mapping[Key, instance_pb2.Instance]:
        """Instances as HQ shows them now: read it again after each await."""
        return self.picture.instances

    @property
    def created_ms(self) -> int:
        """When the service was created: it tells its records from those of another service of that name."""
        return self.record.created.time.ToMilliseconds()

    @property
    def is_whole(self) -> bool:
        """Whether every location that roll-outs touch answers."""
        return self.away.keys() <= self.policy.leave_out

    @property
    def stamp(self) -> str:
        """Return the mark of writes to HQ."""
        return stamp_of(self.id, self.created_ms, self.record.generation)

    def held_instance(self, key: Key) -> HeldInstance | None:
        """An instance with the version and epoch to write it with; None: HQ has none."""
        instance = self.instances.get(key)
        return held_instance(instance, self.picture.seen[key[0]].epoch) if instance is not None else None

    def write(self, key: Key, after: instance_pb2.Instance) -> InstanceWrite:
        """The write that changes an instance to `after`."""
        instance = self.instances.get(key)
        version = instance.meta.version if instance is not None else 0
        return InstanceWrite(key, after, version, self.picture.seen[key[0]].epoch, self.id)

    def delete(self, key: Key) -> InstanceWrite:
        return InstanceWrite(key, None, self.instances[key].meta.version, self.picture.seen[key[0]].epoch, self.id)


@dataclass(slots=True)
class Look:
    """The findings of an action that works on all instances at once.

    Attributes:
        writes: the first writes of what is missing in HQ.
        missing: how many such instances there are.
        costly: serving instances, which may be switched off one by one, with leave.
        waiting: instances that are not finished; `why`: what the first one's agent reports.
        done: how many are finished.
        away: locations that do not answer.
        left: how many instances need a change but are left to others, or for later.
    """

    writes: list[InstanceWrite] = field(default_factory=list)
    missing: int = 0
    costly: list[Key] = field(default_factory=list)
    waiting: list[Key] = field(default_factory=list)
    why: str = ""
    done: int = 0
    away: dict[str, str] = field(default_factory=dict)
    left: int = 0

    @property
    def is_over(self) -> bool:
        return not (self.writes or self.costly or self.waiting or self.away)

    def message(self, policy: Policy) -> str:
        """Describe for people what it waits for."""
        parts = [f"{location} {why}" for location, why in self.away.items()]
        if self.away:
            parts.append(policy.go_on_without(self.away))
        if self.missing:
            parts.append(f"{self.missing} to write")
        if self.waiting:
            location, name = self.waiting[0]
            more = f" and {len(self.waiting) - 1} more" if len(self.waiting) > 1 else ""
            parts.append(f"waits for {name} ({location}): {self.why}{more}")
        return "; ".join(parts)
