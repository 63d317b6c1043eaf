"""An instance as one line of a table: what an operator needs first. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from hqctl.words import age, target, truth
from hqpb.v1 import instance_pb2

NARROW = ("INSTANCE", "SERVICE", "NODE", "READY", "REVISION", "HEARTBEAT")
WIDE = (*NARROW, "AGE", "ENDPOINTS", "REVISIONS", "LABELS", "VERSION")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns a table shows."""

    wide: bool = False
    cluster: bool = False
    label_keys: tuple[str, ...] = ()
    labels: bool = False
    live: bool = False  # kept up to date by a watch, which is not told of heartbeats

    @property
    def names(self) -> tuple[str, ...]:
        names = WIDE if self.wide else (*NARROW[:-1], "SINCE") if self.live else NARROW
        shown = (*names, *(key.rpartition("/")[2].upper() for key in self.label_keys))
        shown = (*shown, "LABELS") if self.labels and not self.wide else shown
        return ("CLUSTER", *shown) if self.cluster else shown

    def row(self, instance: instance_pb2.Instance, now_s: float) -> list[str]:
        """The cells of an instance, `-` where there is nothing to say."""
        cells = [
            instance.meta.id,
            instance.meta.service_id,
            instance.spec.node_name,
            readiness(instance),
            revision(instance),
            age(self._moment(instance), now_s),
        ]
        if self.wide:
            cells.append(age(instance.meta.creation_time, now_s))
            cells += [endpoints(instance), revisions(instance), labels(instance), str(instance.meta.version)]
        cells += [instance.meta.labels.get(key, "") for key in self.label_keys]
        if self.labels and not self.wide:
            cells.append(labels(instance))
        if self.cluster:
            cells.insert(0, instance.meta.cluster)
        return [cell or "-" for cell in cells]

    def _moment(self, instance: instance_pb2.Instance) -> Timestamp:
        return instance.status.ready.last_transition_time if self.live else instance.status.last_heartbeat_time


def spans_clusters(instances: Iterable[instance_pb2.Instance], source_clusters: Iterable[str]) -> bool:
    """More than one cluster answers, so each line has to say which one it is from."""
    return len({*source_clusters, *(instance.meta.cluster for instance in instances)} - {""}) > 1


def readiness(instance: instance_pb2.Instance) -> str:
    """`yes`, `no` with the reason, or `unknown` if nobody has reported yet."""
    condition = instance.status.ready
    word = truth(condition)
    return f"{word}:{reason}" if word == "no" and (reason := _reason(instance)) else word


def revision(instance: instance_pb2.Instance) -> str:
    """The revision wanted READY; another one that is ready in its place is named too."""
    wanted = wanted_ready(instance)
    others = [r.id for r in instance.status.revision if truth(r.ready) == "yes" and r.id != wanted]
    if wanted in ready_revisions(instance) or not others:
        return wanted or "-"
    return f"{wanted or '-'}(now:{others[0]})"


def wanted_ready(instance: instance_pb2.Instance) -> str:
    """Id of the revision wanted READY; empty: none is."""
    wanted = (r.id for r in instance.spec.revision if r.target == instance_pb2.REVISION_TARGET_READY)
    return next(wanted, "")


def ready_revisions(instance: instance_pb2.Instance) -> set[str]:
    """Ids of the revisions that are ready."""
    return {r.id for r in instance.status.revision if truth(r.ready) == "yes"}


def revisions(instance: instance_pb2.Instance) -> str:
    """All revisions of the spec with what is wanted of them."""
    return ",".join(f"{r.id}={target(r.target)}" for r in instance.spec.revision)


def endpoints(instance: instance_pb2.Instance) -> str:
    """Named ports with the host they are on: `http=db-7:8080`."""
    host = instance.spec.allocation.host or instance.spec.node_name
    ports = instance.spec.allocation.port
    return ",".join(f"{p.name}={host}:{p.number}" for p in ports) or instance.spec.allocation.host


def labels(instance: instance_pb2.Instance) -> str:
    """Labels in order: `engine=php,tier=1`."""
    return ",".join(f"{key}={value}" for key, value in sorted(instance.meta.labels.items()))


def _reason(instance: instance_pb2.Instance) -> str:
    wanted = wanted_ready(instance)
    conditions: Sequence[instance_pb2.Condition] = [
        *(r.ready for r in instance.status.revision if r.id == wanted),
        instance.status.ready,
    ]
    return next((condition.reason for condition in conditions if condition.reason), "")
