"""How far the agents of a service got: wanted, installed, ready, and who is slow. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from descriptions.desired import READY
from hqcli.readable import plural
from hqpb.v1 import instance_pb2

_TRUE = instance_pb2.CONDITION_STATUS_TRUE
_FALSE = instance_pb2.CONDITION_STATUS_FALSE


@dataclass(slots=True)
class RevisionCount:
    """One revision over all instances of a service.

    Attributes:
        wanted_ready, wanted_installed: instances that want it so.
        installed, ready: instances whose agents report it so, whatever is wanted.
        reached: instances where it is as wanted.
    """

    revision: str
    wanted_ready: int = 0
    wanted_installed: int = 0
    installed: int = 0
    ready: int = 0
    reached: int = 0

    @property
    def wanted(self) -> int:
        """Instances that want it, READY or INSTALLED."""
        return self.wanted_ready + self.wanted_installed


@dataclass(frozen=True, slots=True)
class Slow:
    """An instance that is not finished yet, and why. `revision` is empty if the instance itself is missing."""

    instance: str
    revision: str
    why: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class Rollout:
    """The state of a service in one installation: counts by revision, in order, and the slow ones by name."""

    service: str
    instances: int
    counts: Mapping[str, RevisionCount] = field(default_factory=dict)
    slow: tuple[Slow, ...] = ()

    @property
    def is_done(self) -> bool:
        """Every agent has reached its wanted state, and there is at least one."""
        return self.instances > 0 and not self.slow

    def words(self) -> str:
        """The state in a few words."""
        if not self.instances:
            return "has no instance"
        late = len({slow.instance for slow in self.slow})
        return f"{late} of {plural(self.instances, 'instance')} not there yet" if late else "everything is as desired"


def rollout(service: str, instances: Iterable[instance_pb2.Instance], expected: Iterable[str] = ()) -> Rollout:
    """The state of a service. `expected`: ids that a description names; those that are absent are slow."""
    listed = sorted(instances, key=lambda instance: instance.meta.id)
    counts: dict[str, RevisionCount] = {}
    slow: list[Slow] = []
    for instance in listed:
        statuses = {status.id: status for status in instance.status.revision}
        for revision in instance.spec.revision:
            count = counts.setdefault(revision.id, RevisionCount(revision.id))
            status = statuses.get(revision.id)
            why = _why_not(revision, status, instance.meta.version)
            _count(count, revision, status, reached=not why)
            if why:
                slow.append(Slow(instance.meta.id, revision.id, why, instance.spec.node_name))
    missing = sorted(set(expected) - {instance.meta.id for instance in listed})
    slow += [Slow(one, "", "is not in HQ: run `nanny upload`") for one in missing]
    return Rollout(service, len(listed) + len(missing), counts, tuple(slow))


def _count(
    count: RevisionCount,
    revision: instance_pb2.InstanceRevision,
    status: instance_pb2.RevisionStatus | None,
    *,
    reached: bool,
) -> None:
    if revision.target == READY:
        count.wanted_ready += 1
    else:
        count.wanted_installed += 1
    if status is not None:
        count.installed += status.installed.status == _TRUE
        count.ready += status.ready.status == _TRUE
    count.reached += reached


def _why_not(revision: instance_pb2.InstanceRevision, status: instance_pb2.RevisionStatus | None, version: int) -> str:
    """Why a revision is not as wanted; empty: it is."""
    if status is None or not (status.installed.status or status.ready.status):
        return "no agent has reported it"
    if status.installed.status == _FALSE:
        return f"not installed{_because(status.installed)}"
    if revision.target == READY and status.ready.status != _TRUE:
        return f"not ready{_because(status.ready)}"
    if revision.target != READY and status.ready.status == _TRUE:
        return "still runs"
    if revision.target != READY and status.installed.status != _TRUE:
        return f"not installed yet{_because(status.installed)}"
    # Its report is about an older spec: the revision's files may have changed since.
    return "its agent has not seen the newest spec" if 0 < status.spec_version < version else ""


def _because(condition: instance_pb2.Condition) -> str:
    words = ": ".join(part for part in (condition.reason, condition.message.replace("\n", " ").rstrip(".")) if part)
    return f": {words}" if words else ""
