"""The instances that the benchmark measures with: which there are, and their records as a replica would store them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from hq.keys import HqKeys
from hq.memory import statuses
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2, service_pb2

SIZES = (1, 10, 100, 1_000, 10_000)  # instances of the services that lookups ask for
_PER_FILLER, _PER_NODE = 100, 20
_REVISION = "r-0042-2026-11-20"
_INCARNATION = 0x1234_5678_9ABC_DEF0
_WALL_MS = 1_790_000_000_000


class Stored(NamedTuple):
    """One instance: its id, and the values of its two records, some 600 bytes together."""

    id: str
    service: str
    node: str
    uid: int
    spec: bytes
    status: bytes


class Population:
    """`size` instances: services with 1, 10, 100, ... as many as fit, and fillers with a hundred each. All are ready.

    In another cluster than `default` there are fillers only, and ids end in the cluster's name.
    """

    def __init__(self, size: int, cluster: str = "default") -> None:
        self.size, self.cluster = size, cluster
        self._status = _status_template()

    def __iter__(self) -> Iterator[Stored]:
        rng = random.Random(1)
        for number, (service, instance_id) in enumerate(self._names()):
            yield self._stored(number, service, instance_id, rng.getrandbits(62) | 1, rng.getrandbits(64))

    def _names(self) -> Iterator[tuple[str, str]]:
        left, suffix = self.size, "" if self.cluster == "default" else f".{self.cluster}"
        for size in () if suffix else SIZES:
            if size <= left // 2 or size == 1:
                yield from ((f"lookup-{size}", f"lookup-{size}.{i:05d}") for i in range(size))
                left -= size
        for i in range(left):
            service = f"filler-{i // _PER_FILLER:05d}"
            yield service, f"{service}.{i % _PER_FILLER:03d}{suffix}"

    def _stored(self, number: int, service: str, instance_id: str, uid: int, word: int) -> Stored:
        node = f"node-{number // _PER_NODE:06d}.dc1"
        labels = {"engine": "native" if number % 3 else "jvm", "group": service}
        meta = instance_pb2.InstanceMeta(
            id=instance_id, uid=uid, service_id=service, cluster=self.cluster, labels=labels
        )
        meta.creation_time.seconds = meta.modification_time.seconds = _WALL_MS // 1000
        spec = storage_pb2.SpecRecord(
            write_id=word, meta=meta.SerializeToString(), spec=_spec(node, number).SerializeToString()
        )
        self._status.uid, self._status.write_id = uid, word ^ 1
        return Stored(instance_id, service, node, uid, spec.SerializeToString(), self._status.SerializeToString())


def report_of(stored: Stored) -> service_pb2.ReportStatusRequest:
    """What this instance's agent says again and again: a heartbeat."""
    return service_pb2.ReportStatusRequest(instance_id=stored.id, uid=stored.uid, node=stored.node, revision=_report())


def change_of(stored: Stored, sequence: int) -> service_pb2.ReportStatusRequest:
    """A report that is always a change, if its sequence is newer than the one before."""
    report = report_of(stored)
    report.unsettled, report.revision.sequence = True, sequence
    return report


def puts(keys: HqKeys, stored: Stored) -> list[tuple[bytes, bytes]]:
    """The instance as it lies in etcd; and, for raw etcd to be asked, as much under one key that is none of HQ's."""
    plain = (f"/raw/{stored.id}".encode(), stored.spec + stored.status)
    return [(keys.spec(stored.id), stored.spec), (keys.status(stored.id), stored.status), plain]


def _report() -> instance_pb2.RevisionStatus:
    report = instance_pb2.RevisionStatus(id=_REVISION, incarnation=_INCARNATION, sequence=3)
    for condition in (report.installed, report.ready):
        condition.status = instance_pb2.CONDITION_STATUS_TRUE
        condition.last_transition_time.FromMilliseconds(_WALL_MS)
    container = report.container.add(name="main", ready=True)
    container.state.running.start_time.FromMilliseconds(_WALL_MS)
    return report


def _status_template() -> storage_pb2.StatusRecord:
    report, heard = _report(), statuses.ReportReceipt("replica-0", _WALL_MS)
    draft = statuses.StatusDraft(1, instance_pb2.InstanceStatus(), ())
    draft.begin(_REVISION, _INCARNATION, heard)
    draft.report(report, heard, statuses.digest(report))
    return draft.record(1, _WALL_MS)


def _spec(node: str, number: int) -> instance_pb2.InstanceSpec:
    spec = instance_pb2.InstanceSpec(node_name=node)
    for sizes in (spec.resource_request, spec.allocation):
        sizes.cpu_millicores, sizes.memory_bytes = 2000, 4 << 30
    spec.resource_request.port.add(name="http")
    spec.allocation.port.add(name="http", number=20_000 + number % 20_000)
    revision = spec.revision.add(id=_REVISION, target=instance_pb2.REVISION_TARGET_READY)
    container = revision.container.add(name="main", image=f"images.example/team/application@sha256:{number:064x}")
    container.command.extend(["/bin/application", "--config", "/etc/application/production.yaml"])
    container.environment["LOG_LEVEL"] = "info"
    return spec
